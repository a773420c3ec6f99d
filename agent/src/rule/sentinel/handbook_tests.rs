//! The handbook says of each field of Sentinel's rules what it is here.

use std::path::Path;

use super::authority::AuthorityFields;
use super::cluster::ClusterFields;
use super::degrade::DegradeFields;
use super::flow::FlowFields;
use super::param::{ItemFields, ParamFields};
use super::system::SystemFields;
use crate::schema::settings::OptionTable;

fn fields<F: OptionTable>() -> Vec<&'static str> {
    let rows = F::default().rows().into_iter();
    rows.map(|row| row.key).collect()
}

/// The chapter of a page.
fn chapter<'p>(page: &'p str, heading: &str) -> &'p str {
    let after = page.split(&format!("\n## {heading}\n")).nth(1);
    let after = after.unwrap_or_else(|| panic!("no chapter {heading}"));
    after.split("\n## ").next().unwrap_or_default()
}

#[test]
fn every_field_of_sentinel_is_in_the_handbook() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/from-sentinel.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (heading, fields) in [
        ("Flow rules", fields::<FlowFields>()),
        ("Degrade rules", fields::<DegradeFields>()),
        ("Hot-parameter rules", fields::<ParamFields>()),
        ("Hot-parameter rules", fields::<ItemFields>()),
        ("System rules", fields::<SystemFields>()),
        ("Authority rules", fields::<AuthorityFields>()),
        ("Cluster part", fields::<ClusterFields>()),
    ] {
        let chapter = chapter(&page, heading);
        for field in fields {
            assert!(
                chapter.contains(&format!("`{field}`")),
                "docs/from-sentinel.md, {heading}: {field} is missing"
            );
        }
    }
}
