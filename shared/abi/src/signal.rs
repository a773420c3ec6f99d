//! The table of signals: one row for each measured quantity.
//!
//! A new signal is a row in [`SignalId`] and its unit in [`SignalId::unit`]; the reader that fills it
//! stands in `agent/src/signal/`. Numbers are part of the protocol and are never used again.

use crate::list::wire_enum;

wire_enum! {
    /// Which quantity of a scope.
    SignalId {
        /// Share of the effective CPUs in use since the last sample. Of the host: all that is not
        /// idle, steal included. Of a group: its own use; a burst can lift it above 1.
        Cpu = 0, "cpu";
        /// Share of the quota periods in which the group, or one above it, ran out of quota.
        Throttle = 1, "throttle";
        /// Share of the wanted run time that throttling took away.
        ThrottledTime = 2, "throttled_time";
        /// One-minute load average.
        Load1 = 3, "load1";
        /// Tasks that run or wait for a CPU.
        Runnable = 4, "runnable";
        /// Share of the time since the last sample in which some task waited for a CPU.
        PsiCpu = 5, "psi_cpu";
        /// Share of the CPU time that the hypervisor took.
        Steal = 6, "steal";
        /// CPUs that the scope may use: tightest quota, CPU sets and online CPUs, fractional.
        EffectiveCpus = 7, "effective_cpus";
        /// Five-minute load average.
        Load5 = 8, "load5";
        /// Fifteen-minute load average.
        Load15 = 9, "load15";
        /// Tasks in uninterruptible sleep, as a rule on storage.
        Blocked = 10, "blocked";
        /// Share of the time in which all tasks waited for a CPU at once.
        PsiCpuFull = 11, "psi_cpu_full";
        /// Share of the time in which some task waited for memory.
        PsiMemory = 12, "psi_memory";
        /// Share of the time in which all tasks waited for memory at once.
        PsiMemoryFull = 13, "psi_memory_full";
        /// Share of the time in which some task waited for storage.
        PsiIo = 14, "psi_io";
        /// Share of the time in which all tasks waited for storage at once.
        PsiIoFull = 15, "psi_io_full";
        /// CPUs in use: CPU seconds per second, whatever the limit.
        UsedCpus = 16, "used_cpus";
        /// Share of the effective CPUs that ran user code.
        CpuUser = 17, "cpu_user";
        /// Share of the effective CPUs that ran kernel code.
        CpuSystem = 18, "cpu_system";
        /// Share of the quota periods in which the group used saved-up quota.
        Burst = 19, "burst";
        /// Tasks that waited for a CPU, on average since the last look at each.
        RunqueueWait = 20, "runqueue_wait";
        /// Live threads.
        Threads = 21, "threads";
        /// Times a second that a task was put on a CPU.
        ContextSwitches = 22, "context_switches";
        /// Share of the group's CPU time that went to garbage collectors' threads.
        GcCpu = 23, "gc_cpu";
        /// Share of the time in which garbage collection stopped a JVM; of several JVMs the worst.
        GcShare = 24, "gc_share";
        /// Full garbage collections in the last 10 s.
        FullGc = 25, "full_gc";
        /// Share of the largest heap in use; of several JVMs the fullest.
        HeapUsed = 26, "heap_used";
        /// How late the agent's own ticks were: what 99 of 100 in the last minute did not exceed.
        TickLate = 27, "tick_late";
        /// Connections that wait in the accept queues of the listening sockets that services have shown.
        AcceptQueue = 28, "accept_queue";
        /// Wait for a CPU that half of all waits in the last second did not exceed.
        RunqueueWaitP50 = 29, "runqueue_wait_p50";
        /// Wait for a CPU that 99 of 100 waits in the last second did not exceed.
        RunqueueWaitP99 = 30, "runqueue_wait_p99";
        /// Share of the time in which tasks wanted a CPU that they waited for it.
        RunqueueWaitShare = 31, "runqueue_wait_share";
        /// Tasks on the run queue of a CPU, the running one included, on average. Of a group: of CPUs
        /// while they ran it.
        RunqueueLength = 32, "runqueue_length";
        /// Times a second that a task had to make way for one of another scope.
        PreemptedBy = 33, "preempted_by";
        /// Longest stop of a JVM for garbage collection in the last 10 s.
        GcPause = 34, "gc_pause";
    }
}

/// Unit of a signal's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalUnit {
    /// A share; 1 is the whole.
    Ratio,
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
    /// Times in a second.
    PerSecond,
}

impl SignalUnit {
    /// The word used in JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Count => "count",
            Self::Seconds => "seconds",
            Self::PerSecond => "per_second",
        }
    }
}

impl SignalId {
    /// How many signals there are; a table of readings has this many rows.
    pub const COUNT: usize = Self::ALL.len();

    /// Unit of the value.
    pub const fn unit(self) -> SignalUnit {
        match self {
            Self::Cpu
            | Self::Throttle
            | Self::ThrottledTime
            | Self::PsiCpu
            | Self::Steal
            | Self::PsiCpuFull
            | Self::PsiMemory
            | Self::PsiMemoryFull
            | Self::PsiIo
            | Self::PsiIoFull
            | Self::CpuUser
            | Self::CpuSystem
            | Self::Burst
            | Self::GcCpu
            | Self::GcShare
            | Self::HeapUsed
            | Self::RunqueueWaitShare => SignalUnit::Ratio,
            Self::Load1
            | Self::Runnable
            | Self::EffectiveCpus
            | Self::Load5
            | Self::Load15
            | Self::Blocked
            | Self::UsedCpus
            | Self::RunqueueWait
            | Self::Threads
            | Self::FullGc
            | Self::AcceptQueue
            | Self::RunqueueLength => SignalUnit::Count,
            Self::TickLate | Self::RunqueueWaitP50 | Self::RunqueueWaitP99 | Self::GcPause => {
                SignalUnit::Seconds
            }
            Self::ContextSwitches | Self::PreemptedBy => SignalUnit::PerSecond,
        }
    }
}
