//! Authority rules in Sentinel's form.

use tidegate_abi::decision::Mode;

use super::Foreign;
use super::code::{Code, Id, id};
use super::origins::Origins;
use crate::rule::authority::{AuthorityOptions, Listing};
use crate::rule::effect::{Effects, OptionEffect};
use crate::schema::kind::{Maybe, NameText, OneOf, RequiredOption};
use crate::schema::settings::{Section, settings};

const STRATEGIES: Code<Listing> = Code {
    codes: &[(0, Listing::Allow), (1, Listing::Deny)],
    other: None,
};

settings! {
    /// The fields of an authority rule.
    pub(super) struct AuthorityFields {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-admin\"");
        /// Origins with commas between.
        limit_app as "limitApp": String = String::new(), RequiredOption(Origins, "\"console,cron\"");
        /// Allow or deny.
        strategy: Listing = Listing::Allow, STRATEGIES;
    }
}

/// Our form answers for all of them.
impl Effects for AuthorityFields {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for AuthorityFields {
    type Ours = AuthorityOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[("origins", "limitApp")];
    fn ours(&self, section: &mut Section<'_, '_>) -> AuthorityOptions {
        // Of its blanks and commas more is said below.
        section.take_for_unset(["limitApp"]);
        let parts = self
            .limit_app
            .split(',')
            .filter(|part| !part.trim().is_empty());
        if parts.clone().any(|part| part.trim() != part) {
            let hint = "blanks around an origin do not count; with quirks = \"sentinel-1.8.9\" they do, and no caller \
                        has such a name";
            section.warn("origins", "origins with nothing but commas between", hint);
        }
        AuthorityOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            expires: None,
            resource: self.resource.clone(),
            strategy: self.strategy,
            origins: parts.map(str::to_owned).collect(),
        }
    }
}
