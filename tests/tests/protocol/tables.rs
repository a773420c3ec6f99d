//! Tables of numbers: regions, words, bits, enums, limits.

use std::fmt::Write as _;

use tidegate_abi::board::{self, Needs};
use tidegate_abi::decision::{
    Cause, Class, Direction, LossMode, Mode, Outcome, Reason, RefusalKind, ScopeState,
};
use tidegate_abi::geometry::{self, BoardMap, Geometry, LINE, LedgerMap, Region};
use tidegate_abi::ledger;
use tidegate_abi::list::ProtocolConstant;
use tidegate_abi::message::{self, FaultCode, FrameKind, Part};
use tidegate_abi::{NAME_MAX, VERSION, rule};

const WORD_BYTES: usize = size_of::<u64>();

pub(crate) fn blocks() -> Vec<(&'static str, String)> {
    let mut blocks = vec![
        ("constants", constants()),
        (
            "board regions",
            regions(&board_regions(), example().board().words),
        ),
        (
            "ledger regions",
            regions(&ledger_regions(), example().ledger().words),
        ),
        ("needs bits", bits(Needs::BITS)),
        ("rule flags", values(rule::flag::VALUES)),
        ("rule behaviors", values(rule::behavior::VALUES)),
        ("rule origins", values(rule::origin::VALUES)),
        ("rule subjects", values(rule::subject::VALUES)),
        ("rule trips", values(rule::trip::VALUES)),
    ];
    blocks.extend(words());
    blocks.extend(enums());
    blocks
}

/// The geometry that the tables of regions are for.
pub(crate) fn example() -> Geometry {
    Geometry::new(16_384, 256, 4, 64).expect("sizes are allowed")
}

fn constants() -> String {
    let rows: [(&str, String); 17] = [
        ("version", VERSION.to_string()),
        ("board magic", format!("`{:#018x}`", board::MAGIC)),
        ("ledger magic", format!("`{:#018x}`", ledger::MAGIC)),
        ("bytes of a word", WORD_BYTES.to_string()),
        ("bytes of a cache line", (LINE * WORD_BYTES).to_string()),
        ("most resources", geometry::RESOURCES_MAX.to_string()),
        ("most seats", geometry::SEATS_MAX.to_string()),
        ("most lanes of a seat", geometry::LANES_MAX.to_string()),
        ("most scopes", geometry::SCOPES_MAX.to_string()),
        ("longest name, bytes", NAME_MAX.to_string()),
        ("longest frame, bytes", message::FRAME_MAX.to_string()),
        (
            "bytes before the fields of a frame",
            message::HEADER.to_string(),
        ),
        ("most arguments of a request", message::ARGS_MAX.to_string()),
        (
            "most values of them together",
            message::VALUES_MAX.to_string(),
        ),
        ("bytes of a token", message::TOKEN.to_string()),
        (
            "seat number for \"no seat\"",
            format!("`{:#010x}`", message::NO_SEAT),
        ),
        (
            "hello flag \"map the pages\"",
            format!("`{:#x}`", message::HELLO_MAP),
        ),
    ];
    let mut table = "| constant | value |\n|---|---|\n".to_owned();
    for (name, value) in rows {
        writeln!(table, "| {name} | {value} |").expect("a string grows");
    }
    table
}

fn board_regions() -> Vec<(&'static str, Region)> {
    // Whole, so that a new region is not forgotten here.
    let BoardMap {
        header,
        scopes,
        seats,
        directory,
        names,
        records: [even, odd],
        rules: [rules_even, rules_odd],
        pool: [pool_even, pool_odd],
        words: _,
    } = example().board();
    vec![
        ("header", header),
        ("scopes", scopes),
        ("seats", seats),
        ("directory", directory),
        ("names", names),
        ("records, even copy", even),
        ("records, odd copy", odd),
        ("rules, even copy", rules_even),
        ("rules, odd copy", rules_odd),
        ("pool, even copy", pool_even),
        ("pool, odd copy", pool_odd),
    ]
}

fn ledger_regions() -> Vec<(&'static str, Region)> {
    let LedgerMap {
        header,
        scopes,
        seats,
        nodes,
        states,
        values,
        totals,
        cells,
        times,
        words: _,
    } = example().ledger();
    vec![
        ("header", header),
        ("scopes", scopes),
        ("seats", seats),
        ("nodes", nodes),
        ("states", states),
        ("values", values),
        ("totals", totals),
        ("cells", cells),
        ("times", times),
    ]
}

fn regions(regions: &[(&str, Region)], words: usize) -> String {
    let mut table = "| region | offset | bytes of a record | records | first byte after |\n\
                     |---|---:|---:|---:|---:|\n"
        .to_owned();
    for (name, region) in regions {
        let (start, stride) = (region.start() * WORD_BYTES, region.stride() * WORD_BYTES);
        let end = start + stride * region.count();
        let count = region.count();
        writeln!(table, "| {name} | {start} | {stride} | {count} | {end} |")
            .expect("a string grows");
    }
    let bytes = words * WORD_BYTES;
    write!(table, "\nWhole page: {words} words, {bytes} bytes.").expect("a string grows");
    table
}

/// The words of each kind of record.
fn words() -> Vec<(&'static str, String)> {
    let header_words = |lines: usize| lines * LINE;
    [
        (
            "board header",
            board::header::FIELDS,
            header_words(board::header::LINES),
        ),
        ("board scope", board::scope::FIELDS, board::scope::WORDS),
        ("board seat", board::seat::FIELDS, board::seat::WORDS),
        (
            "board directory",
            board::directory::FIELDS,
            board::directory::WORDS,
        ),
        ("board record", board::record::FIELDS, board::record::WORDS),
        (
            "short board record",
            board::short::FIELDS,
            board::record::WORDS,
        ),
        ("board system", board::system::FIELDS, LINE),
        ("rule", rule::FIELDS, rule::WORDS),
        ("rule of flow", rule::flow::FIELDS, rule::WORDS),
        ("rule of param", rule::param::FIELDS, rule::WORDS),
        ("rule of degrade", rule::degrade::FIELDS, rule::WORDS),
        (
            "ledger header",
            ledger::header::FIELDS,
            header_words(ledger::header::LINES),
        ),
        ("ledger scope", ledger::scope::FIELDS, ledger::scope::WORDS),
        ("ledger seat", ledger::seat::FIELDS, ledger::seat::WORDS),
        ("ledger node", ledger::node::FIELDS, ledger::node::WORDS),
        ("ledger state", ledger::state::FIELDS, ledger::state::WORDS),
        ("ledger total", ledger::total::FIELDS, ledger::total::WORDS),
        ("ledger cell", ledger::cell::FIELDS, ledger::cell::WORDS),
        ("ledger times", ledger::times::FIELDS, ledger::times::WORDS),
    ]
    .map(|(name, fields, size)| (name, record(name, fields, size)))
    .to_vec()
}

/// Offsets in bytes from the start of the record; one word each.
fn record(name: &str, fields: &[ProtocolConstant], words: usize) -> String {
    let mut table = "| offset | size | word | meaning |\n|---:|---:|---|---|\n".to_owned();
    let mut next = 0;
    for field in fields {
        let word = usize::try_from(field.value).expect("a word number is small");
        assert!(
            word >= next && word < words,
            "{name}: {} = {word} is out of order, taken twice, or not below {words}",
            field.name
        );
        next = word + 1;
        let (offset, text) = (word * WORD_BYTES, text(field.text));
        writeln!(
            table,
            "| {offset} | {WORD_BYTES} | `{}` | {text} |",
            field.name
        )
        .expect("a string grows");
    }
    let bytes = words * WORD_BYTES;
    write!(
        table,
        "\n{bytes} bytes in all; words that are not listed are not used."
    )
    .expect("a string grows");
    table
}

fn bits(list: &[ProtocolConstant]) -> String {
    let mut table = "| bit | mask | name | meaning |\n|---:|---|---|---|\n".to_owned();
    for ProtocolConstant {
        name,
        value,
        text: meaning,
    } in list
    {
        assert!(
            value.is_power_of_two(),
            "{name} = {value:#x} is not one bit"
        );
        let (bit, meaning) = (value.trailing_zeros(), text(meaning));
        writeln!(table, "| {bit} | `{value:#x}` | `{name}` | {meaning} |").expect("a string grows");
    }
    table
}

/// Named numbers that are not bits.
fn values(list: &[ProtocolConstant]) -> String {
    let mut table = "| number | name | meaning |\n|---:|---|---|\n".to_owned();
    for ProtocolConstant {
        name,
        value,
        text: meaning,
    } in list
    {
        let meaning = text(meaning);
        writeln!(table, "| {value} | `{name}` | {meaning} |").expect("a string grows");
    }
    table
}

macro_rules! enum_block {
    ($block:literal, $name:ident) => {{
        let mut table = "| number | word | meaning |\n|---:|---|---|\n".to_owned();
        for value in $name::ALL {
            let (number, meaning) = (*value as u8, text(value.meaning()));
            writeln!(table, "| {number} | `{}` | {meaning} |", value.name())
                .expect("a string grows");
        }
        ($block, table)
    }};
}

fn enums() -> Vec<(&'static str, String)> {
    vec![
        enum_block!("refusal kind", RefusalKind),
        enum_block!("reason", Reason),
        enum_block!("outcome", Outcome),
        enum_block!("direction", Direction),
        enum_block!("class", Class),
        enum_block!("scope state", ScopeState),
        enum_block!("cause", Cause),
        enum_block!("loss mode", LossMode),
        enum_block!("mode", Mode),
        enum_block!("frame kind", FrameKind),
        enum_block!("fault code", FaultCode),
        enum_block!("part", Part),
    ]
}

/// A doc comment as text of a table: links lose their brackets and paths.
fn text(doc: &str) -> String {
    let mut plain = String::new();
    let mut rest = doc.trim();
    while let Some((before, link)) = rest.split_once("[`") {
        let (target, after) = link.split_once("`]").expect("a link is closed");
        let name = target.rsplit("::").next().unwrap_or(target);
        write!(plain, "{before}`{name}`").expect("a string grows");
        rest = after;
    }
    plain + rest
}
