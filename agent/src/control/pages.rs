//! The pages of a tenant as the tick needs them.

use tidegate_segment::board::TickWriter;
use tidegate_segment::ledger::Ledger;

/// The pages of a tenant as the tick needs them: its role on the board, and the ledger.
#[derive(Debug)]
pub struct TenantPages {
    /// Writes heartbeat, clock and scopes.
    pub writer: TickWriter,
    /// Counts what the tenant's services do.
    pub ledger: Ledger,
}
