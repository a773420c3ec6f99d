//! What the rules of a file are: told by their fields, else by the file's name.

use tidegate_abi::decision::RefusalKind;

use crate::schema::{FileMember, Value};

/// What one rule of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentinelForm {
    /// A rule in Sentinel's own form.
    Rule(RefusalKind),
    /// A rule in the form of Sentinel's Go version.
    Go(Go),
    /// A rule for a gateway, or a group of its paths.
    Gateway,
}

/// Kinds of rules of Sentinel's Go version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// `flow.Rule`.
    Flow,
    /// `circuitbreaker.Rule`.
    Breaker,
    /// `hotspot.Rule`.
    Hotspot,
    /// `isolation.Rule`.
    Isolation,
    /// `system.Rule`.
    System,
}

/// Words for a kind in the names of files and data ids, without what is between the words.
const WORDS: &[(&str, SentinelForm)] = &[
    ("param", SentinelForm::Rule(RefusalKind::Param)),
    ("paramflow", SentinelForm::Rule(RefusalKind::Param)),
    ("hotflow", SentinelForm::Rule(RefusalKind::Param)),
    ("hotspot", SentinelForm::Rule(RefusalKind::Param)),
    ("authority", SentinelForm::Rule(RefusalKind::Authority)),
    ("auth", SentinelForm::Rule(RefusalKind::Authority)),
    ("degrade", SentinelForm::Rule(RefusalKind::Degrade)),
    ("circuitbreaker", SentinelForm::Rule(RefusalKind::Degrade)),
    ("circuitbreaking", SentinelForm::Rule(RefusalKind::Degrade)),
    ("system", SentinelForm::Rule(RefusalKind::System)),
    ("flow", SentinelForm::Rule(RefusalKind::Flow)),
    ("flowcontrol", SentinelForm::Rule(RefusalKind::Flow)),
    ("isolation", SentinelForm::Go(Go::Isolation)),
    ("gwflow", SentinelForm::Gateway),
    ("gatewayflow", SentinelForm::Gateway),
    ("gwapi", SentinelForm::Gateway),
    ("gwapigroup", SentinelForm::Gateway),
    ("gatewayapi", SentinelForm::Gateway),
    ("gatewayapigroup", SentinelForm::Gateway),
];

/// What the name of a file or a data id tells, such as `order-flow-rules.json`: the last word for a kind counts, since
/// the application's name comes first. Of words that end together the longest counts.
pub fn of_name(name: &str) -> Option<SentinelForm> {
    let letters = squashed(name);
    let ends = WORDS.iter().filter_map(|(word, form)| {
        let end = letters.rfind(word)?.saturating_add(word.len());
        Some((end, word.len(), *form))
    });
    let last = ends.max_by_key(|(end, length, _form)| (*end, *length));
    last.map(|(_end, _length, form)| form)
}

/// Whether a name is that of a data id: one without an extension that ends with a kind, such as `order-flow-rules`.
pub fn is_data_id(name: &str) -> bool {
    let name = squashed(name);
    let name = name
        .strip_suffix("rules")
        .or(name.strip_suffix("rule"))
        .unwrap_or(&name);
    WORDS.iter().any(|(word, _form)| name.ends_with(word))
}

/// A name in lower case without what is between its words.
pub(super) fn squashed(name: &str) -> String {
    let between = |one: &char| !matches!(one, '_' | '-' | '.' | ' ');
    name.chars()
        .filter(between)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Fields that one form alone has, and which.
const TELLING: &[(&[&str], SentinelForm)] = &[
    (
        &[
            "resourceMode",
            "intervalSec",
            "paramItem",
            "apiName",
            "predicateItems",
        ],
        SentinelForm::Gateway,
    ),
    (&["triggerCount"], SentinelForm::Go(Go::System)),
    (
        &[
            "paramIndex",
            "paramKey",
            "specificItems",
            "paramsMaxCapacity",
        ],
        SentinelForm::Go(Go::Hotspot),
    ),
    (
        &[
            "retryTimeoutMs",
            "maxAllowedRtMs",
            "statSlidingWindowBucketCount",
            "probeNum",
        ],
        SentinelForm::Go(Go::Breaker),
    ),
    (&["metricType"], SentinelForm::Go(Go::Isolation)),
    (
        &[
            "threshold",
            "tokenCalculateStrategy",
            "relationStrategy",
            "statIntervalInMs",
        ],
        SentinelForm::Go(Go::Flow),
    ),
    (
        &["paramIdx", "paramFlowItemList", "durationInSec"],
        SentinelForm::Rule(RefusalKind::Param),
    ),
    (
        &[
            "timeWindow",
            "slowRatioThreshold",
            "minRequestAmount",
            "statIntervalMs",
        ],
        SentinelForm::Rule(RefusalKind::Degrade),
    ),
    (
        &[
            "highestSystemLoad",
            "highestCpuUsage",
            "avgRt",
            "maxThread",
            "qps",
        ],
        SentinelForm::Rule(RefusalKind::System),
    ),
    (
        &["refResource", "warmUpPeriodSec"],
        SentinelForm::Rule(RefusalKind::Flow),
    ),
];

impl SentinelForm {
    /// The kind of rule that it is here; `None` for what is no rule here.
    fn kind(self) -> Option<RefusalKind> {
        match self {
            Self::Rule(kind) => Some(kind),
            Self::Go(Go::Flow | Go::Isolation) => Some(RefusalKind::Flow),
            Self::Go(Go::Breaker) => Some(RefusalKind::Degrade),
            Self::Go(Go::Hotspot) => Some(RefusalKind::Param),
            Self::Go(Go::System) => Some(RefusalKind::System),
            Self::Gateway => None,
        }
    }
}

/// A field that makes a rule another one than the file's name says.
#[derive(Debug)]
pub(super) struct Contradiction<'m> {
    /// The field.
    pub(super) member: &'m FileMember,
    /// What it makes of the rule.
    pub(super) told: RefusalKind,
    /// What the file's name says.
    pub(super) named: RefusalKind,
}

/// The field by which a rule is not what the file's name says, if there is one and nothing says what is meant.
pub(super) fn contradiction(
    members: &[FileMember],
    hint: Option<SentinelForm>,
) -> Option<Contradiction<'_>> {
    if said(members).is_some() {
        return None;
    }
    let named = hint?.kind()?;
    let (fields, form) = TELLING
        .iter()
        .find(|(fields, _form)| given(members, fields).is_some())?;
    let told = form.kind().filter(|told| *told != named)?;
    let member = given(members, fields)?;
    Some(Contradiction {
        member,
        told,
        named,
    })
}

/// The kind that a rule's `type` says.
fn said(members: &[FileMember]) -> Option<RefusalKind> {
    let said = members.iter().find(|member| member.key == "type")?;
    RefusalKind::from_name(said.node.value.text()?)
}

/// The first of these fields that a rule has.
fn given<'m>(members: &'m [FileMember], fields: &[&str]) -> Option<&'m FileMember> {
    let mut members = members.iter();
    members.find(|member| fields.contains(&member.key.as_str()) && member.node.value != Value::Null)
}

/// What one rule is: what its `type` says, else what its fields tell, else the file's name.
pub(super) fn of_rule(members: &[FileMember], hint: Option<SentinelForm>) -> Option<SentinelForm> {
    let has = |names: &[&str]| given(members, names).is_some();
    let named = said(members);
    let told = TELLING.iter().find(|(fields, _form)| has(fields));
    let told = told.map(|(_fields, form)| *form);
    // The rules for a gateway have these as well.
    let shaped = || has(&["controlBehavior", "maxQueueingTimeMs"]);
    let shaped = (hint != Some(SentinelForm::Gateway) && shaped())
        .then_some(SentinelForm::Rule(RefusalKind::Flow));
    let last = if has(&["count", "grade"]) {
        Some(SentinelForm::Rule(RefusalKind::Flow))
    } else {
        has(&["limitApp"]).then_some(SentinelForm::Rule(RefusalKind::Authority))
    };
    named
        .map(SentinelForm::Rule)
        .or(told)
        .or(shaped)
        .or(hint)
        .or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_r1_the_last_word_of_a_name_tells_the_kind() {
        let kinds = [
            ("order-flow-rules.json", RefusalKind::Flow),
            ("order-system-flow-rules.json", RefusalKind::Flow),
            ("authority-service-degrade.json", RefusalKind::Degrade),
            ("shop-param-flow-rules", RefusalKind::Param),
            ("paramFlowRules.json", RefusalKind::Param),
            ("sentinel-system", RefusalKind::System),
            ("AuthorityRule.json", RefusalKind::Authority),
        ];
        for (name, kind) in kinds {
            assert_eq!(of_name(name), Some(SentinelForm::Rule(kind)), "{name}");
        }
        assert_eq!(of_name("gw-flow.json"), Some(SentinelForm::Gateway));
        assert_eq!(
            of_name("shop-gw-api-group-rules"),
            Some(SentinelForm::Gateway)
        );
        assert_eq!(of_name("rules.json"), None);
        assert!(is_data_id("shop-flow-rules") && is_data_id("sentinel-degrade"));
        assert!(!is_data_id("README") && !is_data_id("flow-notes"));
    }
}
