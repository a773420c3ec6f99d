//! Manual pages of the files, in section 5, from the tables of options.

use roff::{Inline, Roff, bold, roman};
use tidegate_agent::config::Config;
use tidegate_agent::rule::file::RuleFile;
use tidegate_agent::schema::kind::ShownValue;
use tidegate_agent::schema::settings::{OptionRow, OptionTable as _};

use crate::PackagedFile;

const CONFIGURATION: &str = "The configuration of the agent. Every option has a default, so an empty file is valid. \
     Durations carry their unit: \"100ms\", \"2s\", \"1m\". A change takes effect on reload (SIGHUP); of sockets and \
     pages, on restart. `tidegate check FILE` says what is wrong with a file.";

const RULES: &str = "Rules of resources, one table for each rule, in files NAME.toml of the rules directory \
     (rules.dir). All files of the directory are one set: it is taken over as a whole, or not at all. \
     Files of Sentinel (NAME.json) are taken as they are.";

/// `tidegate.toml(5)` and `tidegate-rules(5)`.
pub(crate) fn pages() -> Vec<PackagedFile> {
    let configuration = Page {
        name: "tidegate.toml",
        about: "configuration of the agent",
        file: "/etc/tidegate/tidegate.toml",
        description: CONFIGURATION,
        see_also: "tidegate-rules(5), tidegate-run(8), tidegate-check(1)",
    };
    let rules = Page {
        name: "tidegate-rules",
        about: "rules of resources",
        file: "/etc/tidegate/rules.d/*.toml",
        description: RULES,
        see_also: "tidegate.toml(5), tidegate-check(1), tidegate-explain(1)",
    };
    vec![
        configuration.of(&Config::default().rows()),
        rules.of(&RuleFile::default().rows()),
    ]
}

/// What a page says beside its options.
struct Page {
    name: &'static str,
    about: &'static str,
    file: &'static str,
    description: &'static str,
    see_also: &'static str,
}

impl Page {
    fn of(&self, rows: &[OptionRow]) -> PackagedFile {
        let version = concat!("tidegate ", env!("CARGO_PKG_VERSION"));
        let mut page = Roff::new();
        page.control("TH", [self.name, "5", "", version, "Tidegate"]);
        page.control("SH", ["NAME"]);
        page.text([roman(format!("{} - {}", self.name, self.about))]);
        page.control("SH", ["SYNOPSIS"]);
        page.text([bold(self.file)]);
        page.control("SH", ["DESCRIPTION"]);
        page.text([roman(self.description)]);
        table(&mut page, "", rows);
        page.control("SH", ["SEE ALSO"]);
        page.text([roman(self.see_also)]);
        PackagedFile {
            path: format!("man/{}.5", self.name),
            content: page.to_roff().into_bytes(),
        }
    }
}

/// The options of a table, then the tables in it, each under a heading of its own.
fn table(page: &mut Roff, path: &str, rows: &[OptionRow]) {
    for row in rows {
        let default = match &row.shown {
            ShownValue::Value(value) => format!("Default: {value}."),
            ShownValue::Unset(example) => format!("Not set by default; for example {example}."),
            ShownValue::Table(_) | ShownValue::Tables(_) => continue,
        };
        page.control("TP", []);
        page.text([bold(row.key)]);
        page.text([docs(row)]);
        page.control("RS", []);
        page.text([roman(format!("Allowed: {}. {default}", row.allowed))]);
        page.control("RE", []);
    }
    for row in rows {
        let path = if path.is_empty() {
            row.key.to_owned()
        } else {
            format!("{path}.{}", row.key)
        };
        let (heading, inner) = match &row.shown {
            ShownValue::Value(_) | ShownValue::Unset(_) => continue,
            ShownValue::Table(inner) => (format!("[{path}]"), inner),
            ShownValue::Tables(inner) => (format!("[[{path}]]"), inner),
        };
        page.control("SH", [heading.as_str()]);
        page.text([docs(row)]);
        table(page, &path, inner);
    }
}

fn docs(row: &OptionRow) -> Inline {
    let lines: Vec<&str> = row.docs.iter().map(|line| line.trim()).collect();
    roman(lines.join(" "))
}
