//! Hot-parameter rules: a limit for each value of an argument.

use tidegate_abi::decision::{Reason, RefusalKind};
use tidegate_limits::number::whole_ms;
use tidegate_limits::param::token_bucket::TokenBucket;
use tidegate_limits::param::value_pacing::ValuePacing;
use tidegate_limits::strict::ValueLimit;
use tidegate_limits::verdict::Verdict;

use super::request::{Arg, PassHoldings, VALUES, remember};
use super::walk::{Answer, TimedRule, Walk};
use super::{Gate, Refusal};
use crate::board::{ParamLimit, ParamRule};
use crate::ledger::{StepResult, ValueKey};

const NS_PER_S: u64 = 1_000_000_000;

/// When to come again where waiting alone does not help, ns.
const LONG_WAIT_NS: u64 = 1_000_000_000;

/// A value whose calls at once are limited, as a walk notes it for its commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    key: ValueKey,
    limit: u32,
    rule: u32,
    /// Whether the rule refuses, or only observes what it would refuse.
    enforced: bool,
}

impl Run {
    /// Puts it beside those noted before. What a rule only observes makes room for what another one holds to.
    fn note(self, runs: &mut [Option<Self>]) -> bool {
        if remember(runs, self) {
            return true;
        }
        let mut noted = runs.iter_mut().flatten();
        match noted.find(|noted| self.enforced && !noted.enforced) {
            Some(observed) => {
                *observed = self;
                true
            }
            None => false,
        }
    }

    #[cold]
    fn refusal(&self, running: u64) -> Refusal {
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        Refusal {
            kind: RefusalKind::Param,
            ..Refusal::concurrency(self.rule, running, self.limit)
        }
    }
}

/// What a value is held to.
#[derive(Debug, Clone, Copy)]
enum ValueStep {
    Bucket(TokenBucket),
    Strict(ValueLimit),
    Pace(ValuePacing),
}

impl Gate {
    /// Asks a hot-parameter rule: each value of its argument in turn, up to the first that refuses.
    /// What earlier values took stays taken.
    pub(super) fn look_at_param(
        &self,
        asked: &TimedRule<'_>,
        param: &ParamRule,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let args = walk.request().args;
        let index = self.index(asked, param.index, args.len());
        match argument(args, index) {
            Arg::None => Answer::Go,
            Arg::One(value) => self.look_at_value(asked, param, value, walk),
            Arg::Many(values) => {
                while let Some(value) = values.get(walk.element) {
                    walk.element = walk.element.saturating_add(1);
                    match self.look_at_value(asked, param, *value, walk) {
                        Answer::Go => {}
                        Answer::Wait(wait_ns) if walk.element < values.len() => {
                            return Answer::WaitHere(wait_ns);
                        }
                        last @ (Answer::Wait(_)
                        | Answer::WaitHere(_)
                        | Answer::Borrowed(..)
                        | Answer::Refuse(_)) => return last,
                    }
                }
                Answer::Go
            }
        }
    }

    /// The index to look at. In Sentinel the first call turns one from the end into one from the
    /// beginning, for all calls after it.
    fn index(&self, asked: &TimedRule<'_>, index: i32, args: usize) -> i32 {
        let state = self.ledger.state(asked.rule.state);
        let (Some(state), true, true) = (state, index < 0, asked.rule.quirks.wanted()) else {
            return index;
        };
        let back = u64::from(index.unsigned_abs());
        let fixed = state.word().step(|seen| {
            let first = u64::try_from(args).unwrap_or(0).checked_sub(back);
            // Stored plus one: 0 is a rule that was never asked.
            let next = if seen == 0 {
                first.unwrap_or(back).saturating_add(1)
            } else {
                seen
            };
            (next, next)
        });
        let place = fixed.and_then(|fixed| i32::try_from(fixed.saturating_sub(1)).ok());
        place.unwrap_or(index)
    }

    fn look_at_value(
        &self,
        asked: &TimedRule<'_>,
        param: &ParamRule,
        value: u64,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let item = asked.view.find(param.items, value);
        let limit = item.map_or(param.count, |(_number, limit)| {
            u32::try_from(limit).unwrap_or(u32::MAX)
        });
        let key = self.ledger.value_key(param.sets, value);
        let Some(step) = value_step(asked, param, limit) else {
            return self.look_at_running(asked, key, limit, walk);
        };
        let count = walk.request().count;
        let state = asked.rule.state;
        let item = item.and_then(|(number, _limit)| self.ledger.item(state, number));
        let verdict = match (item, key) {
            (Some(item), _) => item.step(|held| step.run(asked, held, count)),
            (None, Some(key)) => {
                let left = |state: u64| step.left(asked, state);
                self.ledger
                    .step_value(key, left, |held| step.run(asked, held, count))
            }
            (None, None) => Some(Verdict::ADMIT),
        };
        answer(asked, verdict, limit)
    }

    /// A limit on the calls of a value that run at once. It is only looked at here; the walk commits
    /// it, since a request that still waits does not run.
    fn look_at_running(
        &self,
        asked: &TimedRule<'_>,
        key: Option<ValueKey>,
        limit: u32,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let Some(key) = key else { return Answer::Go };
        let running = self.ledger.running(&self.board, key);
        let run = Run {
            key,
            limit,
            rule: asked.rule.number,
            enforced: !asked.observes(),
        };
        if running >= u64::from(limit) {
            return Answer::Refuse(run.refusal(running));
        }
        // A value that could not be remembered would never be given back and block itself for ever.
        if run.note(&mut walk.runs) {
            Answer::Go
        } else {
            Answer::Refuse(too_many_values(asked))
        }
    }

    /// Begins the calls of the values that a walk noted, each held to its limit once.
    ///
    /// # Errors
    /// The refusal of the rule whose limit is reached by now; no call is begun then.
    pub(super) fn begin_values(&self, walk: &Walk<'_>) -> Result<PassHoldings, Refusal> {
        let seat = (self.seat, self.generation);
        let mut held = walk.held;
        for run in walk.runs.iter().flatten() {
            let again = held.values.iter().flatten().any(|key| *key == run.key);
            let held_to_it = run.enforced && !again && !walk.looked_before;
            let limit = if held_to_it {
                u64::from(run.limit)
            } else {
                u64::MAX
            };
            if !self.ledger.begin_run(&self.board, seat, run.key, limit) {
                if !run.enforced {
                    continue;
                }
                self.end_values(&held);
                let running = self.ledger.running(&self.board, run.key);
                return Err(run.refusal(running));
            }
            remember(&mut held.values, run.key);
        }
        Ok(held)
    }

    /// Ends the calls of values that a request counts for.
    pub(super) fn end_values(&self, held: &PassHoldings) {
        for key in held.values.iter().flatten() {
            self.ledger.end_run((self.seat, self.generation), *key);
        }
    }
}

/// The argument of a rule; a negative index counts from the end.
fn argument<'a>(args: &[Arg<'a>], index: i32) -> Arg<'a> {
    let place = usize::try_from(index).ok().or_else(|| {
        let back = usize::try_from(index.unsigned_abs()).ok()?;
        args.len().checked_sub(back)
    });
    place
        .and_then(|place| args.get(place))
        .copied()
        .unwrap_or(Arg::None)
}

/// The step of a rule for a limit; `None` for calls that run at once.
fn value_step(asked: &TimedRule<'_>, param: &ParamRule, limit: u32) -> Option<ValueStep> {
    match param.limit {
        ParamLimit::Bucket { burst, duration_s } => Some(ValueStep::Bucket(TokenBucket::new(
            limit, burst, duration_s,
        ))),
        ParamLimit::Strict { duration_s } => {
            let window_ns = u64::from(duration_s).saturating_mul(NS_PER_S);
            let largest = limit.min(ValueLimit::LIMIT_MAX);
            ValueLimit::new(largest, window_ns).map(ValueStep::Strict)
        }
        ParamLimit::Pace {
            duration_s,
            max_wait_ms,
        } => Some(ValueStep::Pace(ValuePacing {
            limit,
            duration_s,
            max_wait_ms: u64::from(max_wait_ms),
            quirks: asked.rule.quirks,
        })),
        ParamLimit::Concurrency => None,
    }
}

impl ValueStep {
    /// One step; a rule that only observes takes nothing where it would have refused.
    fn run(self, asked: &TimedRule<'_>, held: Option<u64>, count: u32) -> StepResult<Verdict> {
        let now_ns = whole_ms(asked.now_ns);
        match self {
            Self::Bucket(bucket) => bucket.step(held, now_ns, count),
            Self::Pace(pacing) => pacing.step(held, now_ns, count),
            Self::Strict(strict) => {
                let state = held.unwrap_or(0);
                if let Some(next) = strict.try_add(state, asked.now_ns, count) {
                    return (Verdict::ADMIT, Some(next));
                }
                let retry_after_ns = strict.fits_after_ns(state, asked.now_ns, count);
                (Verdict::Refuse { retry_after_ns }, None)
            }
        }
    }

    /// How much a state has left, in the step's own measure.
    fn left(self, asked: &TimedRule<'_>, state: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => u64::from(bucket.tokens(Some(state), whole_ms(asked.now_ns))),
            // The later the last release, the less is left.
            Self::Pace(_) => u64::MAX.saturating_sub(state),
            // The longer one more must wait, the less is left.
            Self::Strict(strict) => {
                let wait_ns = strict.fits_after_ns(state, asked.now_ns, 1);
                u64::MAX.saturating_sub(wait_ns.unwrap_or(u64::MAX))
            }
        }
    }
}

fn answer(asked: &TimedRule<'_>, verdict: Option<Verdict>, limit: u32) -> Answer {
    match verdict {
        Some(Verdict::Admit { wait_ns: 0 }) => Answer::Go,
        Some(Verdict::Admit { wait_ns }) => Answer::Wait(wait_ns),
        Some(Verdict::Refuse { retry_after_ns }) => {
            Answer::Refuse(Refusal::value(asked, limit, retry_after_ns))
        }
        None => Answer::Refuse(Refusal::value(asked, limit, None)),
    }
}

/// A request has more values under concurrency rules than it may hold; it will not have fewer next time.
#[cold]
fn too_many_values(asked: &TimedRule<'_>) -> Refusal {
    let held = u32::try_from(VALUES).unwrap_or(u32::MAX);
    let values = held.saturating_add(1);
    Refusal {
        kind: RefusalKind::Param,
        retry: false,
        ..Refusal::flow(
            Reason::Values,
            asked.rule.number,
            values,
            held,
            LONG_WAIT_NS,
        )
    }
}

impl Refusal {
    /// A hot-parameter rule refused a value.
    #[cold]
    fn value(asked: &TimedRule<'_>, limit: u32, retry_after_ns: Option<u64>) -> Self {
        let wait_ns = retry_after_ns.unwrap_or(LONG_WAIT_NS);
        Self {
            kind: RefusalKind::Param,
            ..Self::flow(Reason::Qps, asked.rule.number, limit, limit, wait_ns)
        }
    }
}
