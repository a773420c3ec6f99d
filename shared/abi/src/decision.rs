//! The words of a decision: who asks, what was answered, how it ended.

use crate::list::wire_enum;

wire_enum! {
    /// Who refused. The order is the order of the gate's pipeline.
    RefusalKind {
        /// The caller's origin is not allowed.
        Authority = 1, "authority";
        /// A scope is overloaded, or a system rule refused.
        System = 2, "system";
        /// A hot-parameter rule refused.
        Param = 3, "param";
        /// A flow rule refused.
        Flow = 4, "flow";
        /// A circuit breaker is open.
        Degrade = 5, "degrade";
    }
}

wire_enum! {
    /// What exactly was over its limit.
    Reason {
        /// More passes than the rule allows in its window.
        Qps = 1, "qps";
        /// More requests in flight than the rule allows.
        Concurrency = 2, "concurrency";
        /// The scope is in overload and its in-flight limit is reached.
        Overload = 3, "overload";
        /// The scope refuses all inbound work (`action = "reject"`).
        Reject = 4, "reject";
        /// The agent has been silent past the grace time and `agent_loss.mode = "closed"`.
        AgentLost = 5, "agent_lost";
        /// A caller that holds no permit is over the scope's allowed QPS.
        AllowedQps = 6, "allowed_qps";
        /// The wait a pacing rule asks for is longer than its limit.
        Queue = 7, "queue";
        /// The breaker is open.
        BreakerOpen = 8, "breaker_open";
        /// The origin is on the deny list or not on the allow list.
        Origin = 9, "origin";
        /// The load average is over a system rule's mark.
        Load = 10, "load";
        /// The CPU is over a system rule's mark.
        Cpu = 11, "cpu";
        /// The average response time is over a system rule's mark.
        AvgRt = 12, "avg_rt";
        /// The request has more values under concurrency rules than one request may hold.
        Values = 13, "values";
    }
}

wire_enum! {
    /// How an admitted request ended.
    Outcome {
        /// It did its work; its response time counts.
        Ok = 1, "ok";
        /// It failed; its response time does not count.
        Error = 2, "error";
        /// Nothing is known of it (dropped permit, cancelled call).
        Ignore = 3, "ignore";
    }
}

wire_enum! {
    /// Which way the work goes.
    Direction {
        /// A request that comes to the service; scopes look at these.
        In = 1, "in";
        /// A call that the service makes.
        Out = 2, "out";
    }
}

wire_enum! {
    /// How important the request is.
    Class {
        /// Shed last.
        Critical = 1, "critical";
        /// The default.
        Normal = 2, "normal";
        /// Shed first.
        Sheddable = 3, "sheddable";
        /// Health checks and administration: counted, not shed, within a budget.
        Probe = 4, "probe";
    }
}

wire_enum! {
    /// What a scope does with inbound work.
    ScopeState {
        /// Admits all up to the wide entry limit.
        Healthy = 0, "healthy";
        /// Healthy without history; its limits are a declared guess.
        Cold = 1, "cold";
        /// Admits while in flight stays under the tight limit.
        Overload = 2, "overload";
        /// Refuses all inbound work.
        Reject = 3, "reject";
    }
}

wire_enum! {
    /// Why a scope is in the state it is in.
    Cause {
        /// Nothing is wrong.
        None = 0, "none";
        /// The scope's own work has used up its CPUs.
        Cpu = 1, "cpu";
        /// Its own quota throttles it.
        Quota = 2, "quota";
        /// Other work on the host takes the CPU.
        Neighbour = 3, "neighbour";
        /// Garbage collection.
        Gc = 4, "gc";
        /// The hypervisor takes the CPU.
        Steal = 5, "steal";
        /// The load average is over its mark.
        Load = 6, "load";
        /// Far more in flight than the entry limit, CPU unknown or idle.
        InFlight = 7, "in_flight";
        /// Tasks wait for a CPU.
        RunQueue = 8, "run_queue";
        /// Pressure stall information says the CPU is short.
        Pressure = 9, "pressure";
        /// Too many live threads.
        Threads = 10, "threads";
    }
}

wire_enum! {
    /// What adaptive limits do when the agent stays silent past the grace time.
    LossMode {
        /// Adaptive limits off, static rules on.
        Open = 0, "open";
        /// Adaptive limits stay as they were.
        Last = 1, "last";
        /// All inbound work is refused.
        Closed = 2, "closed";
    }
}

wire_enum! {
    /// What a rule does.
    Mode {
        /// Refuses.
        Enforce = 0, "enforce";
        /// Counts what it would have refused and reserves nothing.
        Observe = 1, "observe";
        /// Nothing.
        Off = 2, "off";
    }
}
