//! The sampler thread: wakes at absolute times, or early when tasks begin to wait; measures how late it was, ticks.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;
use tidegate_segment::clock::monotonic_ns;

use super::driver::Driver;
use super::scheduling::Scheduling;
use super::tick_time;
use crate::background::{Background, END_WITHIN};
use crate::signal::{FiredTriggers, PressureTriggers};

/// The running sampler thread.
#[derive(Debug)]
pub struct Ticking(Background);

impl Ticking {
    /// Ends the thread after its present tick; one that hangs is left behind.
    pub fn stop(self) {
        self.0.end_within(END_WITHIN);
    }
}

/// Starts the sampler thread with a tick of this length, which `triggers` can make come early.
///
/// `on_late` is told how late each tick was that came when it was due; it runs in the tick and must neither allocate nor wait.
///
/// # Errors
/// The system has no thread left.
pub fn start(
    mut driver: Box<Driver>,
    mut triggers: PressureTriggers,
    tick: Duration,
    mut on_late: impl FnMut(Duration) + Send + 'static,
) -> io::Result<Ticking> {
    driver.begin_with(triggers.states());
    let thread = Background::start("sampler", move |stop| {
        driver.begin(Scheduling::best(), tick);
        let mut schedule = Schedule::starting(monotonic_ns(), tick);
        while !stop.is_told() {
            let fired = wait(&schedule, &mut triggers);
            driver.tell_triggers(triggers.states());
            let now_ns = monotonic_ns();
            if let Some(fired) = fired.filter(|_fired| now_ns < schedule.due_ns) {
                schedule.wake_early(now_ns);
                driver.tick_early(now_ns, fired);
            } else if schedule.is_short {
                schedule.wake_early(now_ns);
                driver.tick_short(now_ns);
            } else {
                let late = schedule.wake(now_ns);
                on_late(late);
                driver.tick(now_ns, late);
            }
            if driver.hurries(now_ns) {
                schedule.shorten(now_ns);
            }
        }
    });
    thread.map(Ticking)
}

/// Waits until a tick is due, or until one may come early because of triggers that fired.
fn wait(schedule: &Schedule, triggers: &mut PressureTriggers) -> Option<FiredTriggers> {
    let fired = triggers.wait_until(schedule.due_ns);
    sleep_until(match fired {
        Some(_fired) => schedule.earliest_ns,
        None => schedule.due_ns,
    });
    fired
}

fn sleep_until(due_ns: u64) {
    const SECOND_NS: u64 = 1_000_000_000;
    let due = Timespec {
        tv_sec: i64::try_from(due_ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(due_ns % SECOND_NS).unwrap_or(0),
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &due) == Err(Errno::INTR) {}
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The times at which ticks are due: multiples of the tick from the start, so that a late tick does
/// not move the ones after it. Ticks that were missed altogether are not made up for. A tick that comes early
/// begins the multiples anew, so that none follows it too soon to measure a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Schedule {
    due_ns: u64,
    /// Half a tick after the last one.
    earliest_ns: u64,
    tick_ns: u64,
    /// Length of a short tick; 0 = there is none.
    short_ns: u64,
    /// Whether the next tick is a short one.
    is_short: bool,
}

impl Schedule {
    fn starting(now_ns: u64, tick: Duration) -> Self {
        let tick_ns = nanoseconds(tick).max(1);
        Self {
            due_ns: now_ns.saturating_add(tick_ns),
            earliest_ns: now_ns.saturating_add(tick_ns / 2),
            tick_ns,
            short_ns: tick_time::short(tick).map_or(0, nanoseconds),
            is_short: false,
        }
    }

    /// The next tick is a short one after the one at `now_ns`.
    fn shorten(&mut self, now_ns: u64) {
        if self.short_ns > 0 {
            self.due_ns = now_ns.saturating_add(self.short_ns);
            self.earliest_ns = self.due_ns;
            self.is_short = true;
        }
    }

    /// The thread woke before a whole tick was due.
    fn wake_early(&mut self, now_ns: u64) {
        self.is_short = false;
        self.due_ns = now_ns.saturating_add(self.tick_ns);
        self.earliest_ns = now_ns.saturating_add(self.tick_ns / 2);
    }

    /// The thread woke for the tick that was due; returns how late that is.
    fn wake(&mut self, now_ns: u64) -> Duration {
        let late_ns = now_ns.saturating_sub(self.due_ns);
        let ticks = late_ns.checked_div(self.tick_ns).unwrap_or(0);
        self.due_ns = ticks
            .saturating_add(1)
            .saturating_mul(self.tick_ns)
            .saturating_add(self.due_ns);
        self.earliest_ns = now_ns.saturating_add(self.tick_ns / 2);
        Duration::from_nanos(late_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_tick_does_not_move_the_next_and_missed_ones_are_left_out() {
        let mut schedule = Schedule::starting(1_000, Duration::from_nanos(100));
        assert_eq!(schedule.due_ns, 1_100);
        assert_eq!(schedule.wake(1_100), Duration::ZERO);
        assert_eq!(schedule.due_ns, 1_200);
        assert_eq!(schedule.wake(1_260), Duration::from_nanos(60));
        assert_eq!(schedule.due_ns, 1_300);
        assert_eq!(schedule.wake(1_750), Duration::from_nanos(450));
        assert_eq!(schedule.due_ns, 1_800);
    }

    #[test]
    fn an_early_tick_is_half_a_tick_after_the_last_and_the_next_a_whole_one_after_it() {
        let mut schedule = Schedule::starting(1_000, Duration::from_nanos(100));
        assert_eq!(schedule.earliest_ns, 1_050);
        schedule.wake_early(1_060);
        assert_eq!((schedule.earliest_ns, schedule.due_ns), (1_110, 1_160));
        assert_eq!(schedule.wake(1_165), Duration::from_nanos(5));
        assert_eq!((schedule.earliest_ns, schedule.due_ns), (1_215, 1_260));
    }

    #[test]
    fn field_l14_short_ticks_come_a_quarter_after_the_last_and_a_whole_one_after_them() {
        let mut schedule = Schedule::starting(0, Duration::from_millis(100));
        let ms = 1_000_000;
        assert_eq!(schedule.wake(100 * ms), Duration::ZERO);
        schedule.shorten(100 * ms);
        assert_eq!((schedule.is_short, schedule.due_ns), (true, 125 * ms));
        schedule.wake_early(125 * ms);
        assert_eq!((schedule.is_short, schedule.due_ns), (false, 225 * ms));
        let mut tiny = Schedule::starting(0, Duration::from_millis(20));
        tiny.shorten(0);
        assert!(!tiny.is_short, "there is none so short");
    }

    #[test]
    fn a_sleep_into_the_past_ends_at_once() {
        sleep_until(0);
    }
}
