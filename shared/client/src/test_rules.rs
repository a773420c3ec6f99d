//! Rules for tests.

use tidegate_abi::board::Needs;
use tidegate_segment::board::ResourceRecord;

/// A rule that admits `limit` requests in a second.
pub(crate) fn qps(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::QPS),
        qps_limit: limit,
        ..ResourceRecord::default()
    }
}

/// A rule that admits `limit` requests at a time.
pub(crate) fn concurrency(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::CONCURRENCY),
        concurrency_limit: limit,
        ..ResourceRecord::default()
    }
}
