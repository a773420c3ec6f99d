//! How many of each thing the pages hold, and where each region begins.
//!
//! All offsets and lengths are in 64-bit words from the start of the page. Every region begins on a
//! cache line (8 words).

/// Words in a cache line of 64 bytes.
pub const LINE: usize = 8;

/// The most resources a page pair can be made for.
pub const RESOURCES_MAX: u32 = 1 << 20;
/// The most seats (connected processes) of a page pair.
pub const SEATS_MAX: u32 = 1024;
/// The most lanes of a seat.
pub const LANES_MAX: u32 = 16;
/// The most scopes of a page pair.
pub const SCOPES_MAX: u32 = 256;

/// Words of name text kept for each resource, on average (40 bytes).
const NAME_WORDS: usize = 5;

/// Words of the pool for each rule of the table, on average.
const POOL_WORDS: usize = 2;

/// Sizes of a page pair, fixed when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    resources: u32,
    seats: u32,
    lanes: u32,
    scopes: u32,
}

/// A size is zero or over its maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeFault {
    /// Which size.
    pub what: &'static str,
    /// The value given.
    pub value: u32,
    /// The largest value allowed; the least is 1.
    pub max: u32,
}

impl Geometry {
    /// Checks the four sizes.
    ///
    /// # Errors
    /// The first size that is zero or over its maximum.
    pub const fn new(
        resources: u32,
        seats: u32,
        lanes: u32,
        scopes: u32,
    ) -> Result<Self, SizeFault> {
        let checks = [
            ("resources", resources, RESOURCES_MAX),
            ("seats", seats, SEATS_MAX),
            ("lanes", lanes, LANES_MAX),
            ("scopes", scopes, SCOPES_MAX),
        ];
        let [a, b, c, d] = checks;
        if let Some(fault) = over(a) {
            return Err(fault);
        }
        if let Some(fault) = over(b) {
            return Err(fault);
        }
        if let Some(fault) = over(c) {
            return Err(fault);
        }
        if let Some(fault) = over(d) {
            return Err(fault);
        }
        Ok(Self {
            resources,
            seats,
            lanes,
            scopes,
        })
    }

    /// Slots for resources; slot 0 is the overflow resource.
    pub const fn resources(self) -> u32 {
        self.resources
    }
    /// Places in the rule table: a resource with more than plain limits has one for each of its
    /// rules.
    pub const fn rules(self) -> usize {
        (self.resources as usize).wrapping_mul(2)
    }
    /// Sets of hot-parameter values; each holds [`crate::ledger::value::WORDS`] values.
    pub const fn value_sets(self) -> usize {
        (self.resources as usize).wrapping_mul(4)
    }
    /// Places for connected processes; seat 0 is the agent itself.
    pub const fn seats(self) -> u32 {
        self.seats
    }
    /// Private rows of counters in a seat; lane 0 is shared by threads that found no own lane.
    pub const fn lanes(self) -> u32 {
        self.lanes
    }
    /// Places for scopes; scope 0 is the host.
    pub const fn scopes(self) -> u32 {
        self.scopes
    }
}

const fn over((what, value, max): (&'static str, u32, u32)) -> Option<SizeFault> {
    if value == 0 || value > max {
        Some(SizeFault { what, value, max })
    } else {
        None
    }
}

/// A run of equal records: where it begins, how long each record is, how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    start: usize,
    stride: usize,
    count: usize,
}

impl Region {
    /// First word of record `index`, if there is one.
    #[inline]
    pub const fn at(self, index: usize) -> Option<usize> {
        if index < self.count {
            // The geometry's maxima bound the whole page far below usize::MAX.
            Some(self.start.wrapping_add(index.wrapping_mul(self.stride)))
        } else {
            None
        }
    }
    /// First word of the region.
    pub const fn start(self) -> usize {
        self.start
    }
    /// Words of one record.
    pub const fn stride(self) -> usize {
        self.stride
    }
    /// Number of records.
    pub const fn count(self) -> usize {
        self.count
    }
    const fn end(self) -> usize {
        self.start
            .wrapping_add(self.stride.wrapping_mul(self.count))
    }
    const fn after(previous: Self, stride: usize, count: usize) -> Self {
        Self {
            start: previous.end().next_multiple_of(LINE),
            stride,
            count,
        }
    }
}

/// Where everything is on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardMap {
    /// The header, see [`crate::board::header`].
    pub header: Region,
    /// One record for each scope, see [`crate::board::scope`].
    pub scopes: Region,
    /// One record for each seat, see [`crate::board::seat`].
    pub seats: Region,
    /// One record for each resource slot, see [`crate::board::directory`].
    pub directory: Region,
    /// Name text, packed; a directory record says where a name begins.
    pub names: Region,
    /// The two copies of the resources' records, see [`crate::board::record`].
    pub records: [Region; 2],
    /// The two copies of the rule table, see [`crate::rule`].
    pub rules: [Region; 2],
    /// The two copies of the pool: words that rules refer to.
    pub pool: [Region; 2],
    /// Words of the whole board.
    pub words: usize,
}

/// Where everything is on a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerMap {
    /// The header, see [`crate::ledger::header`].
    pub header: Region,
    /// One record for each scope, see [`crate::ledger::scope`].
    pub scopes: Region,
    /// One record for each seat, see [`crate::ledger::seat`].
    pub seats: Region,
    /// One record for each node, see [`crate::ledger::node`].
    pub nodes: Region,
    /// One line for each rule of the table, see [`crate::ledger::state`].
    pub states: Region,
    /// Sets of hot-parameter values, see [`crate::ledger::value`].
    pub values: Region,
    /// One record for each (seat, lane), see [`crate::ledger::total`].
    pub totals: Region,
    /// One record for each (seat, lane, node), see [`crate::ledger::cell`].
    pub cells: Region,
    /// One record for each node, see [`crate::ledger::times`].
    pub times: Region,
    /// Words of the whole ledger.
    pub words: usize,
}

impl Geometry {
    /// Lays the board out.
    pub const fn board(self) -> BoardMap {
        let header = Region {
            start: 0,
            stride: LINE,
            count: crate::board::header::LINES,
        };
        let scopes = Region::after(header, crate::board::scope::WORDS, self.scopes as usize);
        let seats = Region::after(scopes, crate::board::seat::WORDS, self.seats as usize);
        let directory = Region::after(
            seats,
            crate::board::directory::WORDS,
            self.resources as usize,
        );
        let names = Region::after(directory, NAME_WORDS, self.resources as usize);
        let first = Region::after(names, crate::board::record::WORDS, self.resources as usize);
        let second = Region::after(first, crate::board::record::WORDS, self.resources as usize);
        let rule_count = self.rules();
        let rules_first = Region::after(second, crate::rule::WORDS, rule_count);
        let rules_second = Region::after(rules_first, crate::rule::WORDS, rule_count);
        let pool_first = Region::after(rules_second, POOL_WORDS, rule_count);
        let pool_second = Region::after(pool_first, POOL_WORDS, rule_count);
        BoardMap {
            header,
            scopes,
            seats,
            directory,
            names,
            records: [first, second],
            rules: [rules_first, rules_second],
            pool: [pool_first, pool_second],
            words: pool_second.end(),
        }
    }

    /// Lays the ledger out.
    pub const fn ledger(self) -> LedgerMap {
        let header = Region {
            start: 0,
            stride: LINE,
            count: crate::ledger::header::LINES,
        };
        let scopes = Region::after(header, crate::ledger::scope::WORDS, self.scopes as usize);
        let seats = Region::after(scopes, crate::ledger::seat::WORDS, self.seats as usize);
        let nodes = Region::after(seats, crate::ledger::node::WORDS, self.resources as usize);
        let states = Region::after(nodes, crate::ledger::state::WORDS, self.rules());
        let values = Region::after(states, crate::ledger::value::WORDS, self.value_sets());
        let rows = (self.seats as usize).wrapping_mul(self.lanes as usize);
        let totals = Region::after(values, crate::ledger::total::WORDS, rows);
        let cells = Region::after(
            totals,
            crate::ledger::cell::WORDS,
            rows.wrapping_mul(self.resources as usize),
        );
        let times = Region::after(cells, crate::ledger::times::WORDS, self.resources as usize);
        let words = times.end();
        LedgerMap {
            header,
            scopes,
            seats,
            nodes,
            states,
            values,
            totals,
            cells,
            times,
            words,
        }
    }

    /// Index of a lane's row of totals, and of its first cell when multiplied by the resources.
    #[inline]
    pub const fn row(self, seat: u32, lane: u32) -> Option<usize> {
        if seat < self.seats && lane < self.lanes {
            Some(
                (seat as usize)
                    .wrapping_mul(self.lanes as usize)
                    .wrapping_add(lane as usize),
            )
        } else {
            None
        }
    }

    /// Index of the cell of a lane's row for a node.
    #[inline]
    pub const fn cell(self, row: usize, slot: u32) -> Option<usize> {
        if slot < self.resources {
            Some(
                row.wrapping_mul(self.resources as usize)
                    .wrapping_add(slot as usize),
            )
        } else {
            None
        }
    }
}
