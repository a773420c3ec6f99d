//! Every number of every kind of rule, in both forms of files, against numbers that are none, endless, negative,
//! too large or a text. The fields come from the tables of the forms, so that a new one is asked as well.

use std::fs;

use tempfile::tempdir;

use super::authority::AuthorityOptions;
use super::cluster::Cluster;
use super::degrade::DegradeOptions;
use super::flow::FlowOptions;
use super::param::{ItemOptions, ParamOptions};
use super::system::SystemOptions;
use super::{QuirksOption, RuleSet, sentinel};
use crate::rule_source::RuleSource as _;
use crate::rule_source::directory::DirectorySource;
use crate::schema::fault::Fault;
use crate::schema::kind::ShownValue;
use crate::schema::settings::{OptionRow, OptionTable as _};

/// A table of a rule file, around one field.
struct Form {
    /// The kind, or the part of one.
    kind: &'static str,
    /// Path of its fields in faults.
    path: &'static str,
    fields: Vec<OptionRow>,
    /// What stands before the fields, and after them.
    around: (&'static str, &'static str),
    /// Fields that it needs, and such that let others count.
    needed: &'static [(&'static str, &'static str)],
}

/// A form of our own.
fn own(
    kind: &'static str,
    path: &'static str,
    fields: Vec<OptionRow>,
    head: &'static str,
    needed: &'static [(&'static str, &'static str)],
) -> Form {
    Form {
        kind,
        path,
        fields,
        around: (head, ""),
        needed,
    }
}

const WARMS: &[(&str, &str)] = &[
    ("resource", "\"a\""),
    ("count", "1"),
    ("behavior", "\"warm_up_pace\""),
];
const SLOW: &[(&str, &str)] = &[
    ("resource", "\"a\""),
    ("grade", "\"slow_ratio\""),
    ("threshold", "1"),
    ("max_rt", "\"1s\""),
    ("recovery_timeout", "\"1s\""),
];
const IN_CLUSTER: &str = "[[flow]]\nresource = \"a\"\ncount = 1\n[flow.cluster]\n";
const WITH_ITEMS: &str = "[[param]]\nresource = \"a\"\nindex = 0\ncount = 1\n[[param.items]]\n";

fn own_forms() -> Vec<Form> {
    let (flow, param) = (FlowOptions::default(), ParamOptions::default());
    let plain: &[_] = &[("resource", "\"a\""), ("count", "1")];
    let value: &[_] = &[("resource", "\"a\""), ("index", "0"), ("count", "1")];
    let item: &[_] = &[("value", "\"v\""), ("count", "1")];
    let listed: &[_] = &[("resource", "\"a\""), ("origins", "[\"b\"]")];
    let (items, cluster) = (ItemOptions::default(), Cluster::default());
    let degrade = DegradeOptions::default().rows();
    let system = SystemOptions::default().rows();
    let authority = AuthorityOptions::default().rows();
    vec![
        own("flow", "flow[0].", flow.rows(), "[[flow]]\n", plain),
        own(
            "flow warming up",
            "flow[0].",
            flow.rows(),
            "[[flow]]\n",
            WARMS,
        ),
        own(
            "cluster",
            "flow[0].cluster.",
            cluster.rows(),
            IN_CLUSTER,
            &[("flow_id", "7")],
        ),
        own("degrade", "degrade[0].", degrade, "[[degrade]]\n", SLOW),
        own("param", "param[0].", param.rows(), "[[param]]\n", value),
        own(
            "items",
            "param[0].items[0].",
            items.rows(),
            WITH_ITEMS,
            item,
        ),
        own("system", "system[0].", system, "[[system]]\n", &[]),
        own(
            "authority",
            "authority[0].",
            authority,
            "[[authority]]\n",
            listed,
        ),
    ]
}

const LISTED: &[(&str, &str)] = &[("resource", "\"a\""), ("limitApp", "\"b\"")];

fn sentinel_forms() -> Vec<Form> {
    let form = |kind, path, around, needed| Form {
        kind,
        path,
        fields: sentinel::fields_of(kind),
        around,
        needed,
    };
    let rule = ("[{\n", "\n}]\n");
    vec![
        form(
            "flow",
            "[0].",
            rule,
            &[
                ("resource", "\"a\""),
                ("controlBehavior", "3"),
                ("count", "1"),
            ],
        ),
        form(
            "cluster",
            "[0].clusterConfig.",
            (
                "[{\"resource\": \"a\", \"count\": 1, \"clusterMode\": true, \"clusterConfig\": {\n",
                "\n}}]\n",
            ),
            &[("flowId", "7")],
        ),
        form(
            "degrade",
            "[0].",
            rule,
            &[("resource", "\"a\""), ("count", "1"), ("timeWindow", "1")],
        ),
        form(
            "param",
            "[0].",
            rule,
            &[("resource", "\"a\""), ("paramIdx", "0"), ("count", "1")],
        ),
        form(
            "items",
            "[0].paramFlowItemList[0].",
            (
                "[{\"resource\": \"a\", \"paramIdx\": 0, \"count\": 1, \"paramFlowItemList\": [{\n",
                "\n}]}]\n",
            ),
            &[
                ("object", "\"v\""),
                ("classType", "\"String\""),
                ("count", "1"),
            ],
        ),
        form("system", "[0].", rule, &[("type", "\"system\"")]),
        form("authority", "[0].", rule, LISTED),
    ]
}

impl Form {
    /// A file where a field has this value, and the line it stands on.
    fn file(&self, json: bool, field: &str, value: &str) -> (String, usize) {
        let needed = self.needed.iter().filter(|(key, _value)| *key != field);
        let fields = needed.copied().chain([(field, value)]);
        let line = |(key, value): (&str, &str)| {
            if json {
                format!("\"{key}\": {value}")
            } else {
                format!("{key} = {value}")
            }
        };
        let lines: Vec<String> = fields.map(line).collect();
        let (head, tail) = self.around;
        let text = format!("{head}{}", lines.join(if json { ",\n" } else { "\n" }));
        let last = text.lines().count();
        (format!("{text}{tail}"), last)
    }

    /// Fields that hold a number or a time.
    fn numbers(&self) -> impl Iterator<Item = &OptionRow> {
        let numeric = |row: &&OptionRow| {
            let single = matches!(row.shown, ShownValue::Value(_) | ShownValue::Unset(_));
            let words = ["number", "duration", "0 ("];
            // Ids and values may be texts as well, and what stands there is only compared.
            let numeric = words.iter().any(|word| row.allowed.contains(word));
            single && numeric && !row.allowed.contains("text")
        };
        self.fields.iter().filter(numeric)
    }
}

const VALUES: [&str; 10] = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "-0.0",
    "1e308",
    "1e999",
    "18446744073709551615",
    "9223372036854775807",
    "\"\"",
];
/// As JSON has them.
fn in_json(value: &str) -> String {
    match value {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        other => other.to_owned(),
    }
}

/// Loads a directory with that file beside one that is sound, as a reload does.
fn loaded(name: &str, text: &str) -> Result<RuleSet, Vec<Fault>> {
    let directory = tempdir().unwrap();
    let sound = "[[flow]]\nresource = \"sound\"\ncount = 1\n";
    fs::write(directory.path().join("a-sound.toml"), sound).unwrap();
    fs::write(directory.path().join(name), text).unwrap();
    DirectorySource::new(directory.path())
        .read()
        .build(QuirksOption::None)
}

/// What was taken of all that was tried, each as `FORM FIELD VALUE`.
fn taken(forms: &[Form], json: bool) -> Vec<String> {
    let mut taken = Vec::new();
    for form in forms {
        for (row, value) in form
            .numbers()
            .flat_map(|row| VALUES.map(|value| (row, value)))
        {
            let value = if json {
                in_json(value)
            } else {
                value.to_owned()
            };
            let (text, line) = form.file(json, row.key, &value);
            let name = format!("{}.{}", form.kind, if json { "json" } else { "toml" });
            let case = format!("{} {} {value}", form.kind, row.key);
            let option = format!("{}{}", form.path, row.key);
            match loaded(&name, &text) {
                // Of values with a threshold of their own, Sentinel leaves those out that are not valid.
                Ok(set)
                    if set
                        .warnings()
                        .iter()
                        .any(|warning| warning.option == option) =>
                {
                    check(set.warnings(), &case, &name, line, &option);
                }
                Ok(_set) => taken.push(case),
                Err(faults) => check(&faults, &case, &name, line, &option),
            }
        }
    }
    taken
}

/// The fault names file and line, the option and what is allowed. A number that JSON has no word for is no option's.
fn check(faults: &[Fault], case: &str, file: &str, line: usize, option: &str) {
    let found = faults.iter().find(|fault| {
        let point = fault.place.point.as_ref();
        let here = point.is_some_and(|point| point.line == line);
        here && fault.place.file.ends_with(file)
            && (fault.option == option || fault.option == "syntax")
    });
    let found = found.unwrap_or_else(|| panic!("{case}: {faults:?}"));
    assert!(
        !found.allowed.is_empty() && !found.value.is_empty(),
        "{case}: {found:?}"
    );
}

/// What the checks of our form take: a zero is a zero, and the last argument is the first from the end.
const TAKEN: [&str; 10] = [
    "flow count -0.0",
    "flow strained_count -0.0",
    "flow warming up count -0.0",
    "flow warming up strained_count -0.0",
    "cluster flow_id 9223372036854775807",
    "degrade threshold -0.0",
    "param index -1",
    "system load -0.0",
    "system cpu -0.0",
    "system qps -0.0",
];

/// And of Sentinel's: what is negative is not set, and what is too large for a count is as much as one can be.
const TAKEN_OF_SENTINEL: [&str; 17] = [
    "cluster flowId 9223372036854775807",
    "cluster strategy -1",
    "cluster strategy 9223372036854775807",
    "cluster resourceTimeout -1",
    "cluster resourceTimeoutStrategy -1",
    "cluster resourceTimeoutStrategy 9223372036854775807",
    "cluster acquireRefuseStrategy -1",
    "cluster acquireRefuseStrategy 9223372036854775807",
    "cluster clientOfflineTime -1",
    "degrade count 1e308",
    "degrade count 18446744073709551615",
    "degrade count 9223372036854775807",
    "param paramIdx -1",
    "system highestSystemLoad -1",
    "system highestCpuUsage -1",
    "system qps -1",
    "system avgRt -1",
];

#[test]
fn no_number_of_our_form_is_taken_where_it_is_out_of_range() {
    assert_eq!(taken(&own_forms(), false), TAKEN);
}

#[test]
fn no_number_of_sentinels_form_is_taken_where_it_is_out_of_range() {
    let mut taken = taken(&sentinel_forms(), true);
    // It knows no largest number of threads.
    let threads = ["-1", "9223372036854775807"].map(|value| format!("system maxThread {value}"));
    taken.retain(|case| !threads.contains(case));
    // A zero with a sign and a fraction is a zero to its readers, wherever one may stand.
    let (zeros, taken): (Vec<_>, Vec<_>) =
        taken.into_iter().partition(|case| case.ends_with(" -0.0"));
    assert!(zeros.contains(&"flow grade -0.0".to_owned()), "{zeros:?}");
    assert_eq!(taken, TAKEN_OF_SENTINEL);
}

#[test]
fn every_number_is_asked() {
    let count = |forms: &[Form]| -> Vec<(&str, usize)> {
        let counts = forms.iter().map(|form| (form.kind, form.numbers().count()));
        counts.filter(|(_kind, count)| *count > 0).collect()
    };
    let own = [
        ("flow", 7),
        ("flow warming up", 7),
        ("cluster", 5),
        ("degrade", 7),
        ("param", 6),
        ("items", 1),
        ("system", 6),
        ("authority", 1),
    ];
    assert_eq!(count(&own_forms()), own);
    let sentinels = [
        ("flow", 6),
        ("cluster", 9),
        ("degrade", 6),
        ("param", 7),
        ("items", 1),
        ("system", 5),
        ("authority", 1),
    ];
    assert_eq!(count(&sentinel_forms()), sentinels);
}
