//! Authority rules in Sentinel's form.

use tidegate_abi::decision::Mode;

use super::Foreign;
use super::code::{Code, Id, id};
use crate::config::schema::kind::{Maybe, Name, OneOf, Required};
use crate::config::schema::settings::{Section, settings};
use crate::rule::authority::{AuthorityOptions, Listing};
use crate::rule::effect::{Effect, Effects};

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
        resource: String = String::new(), Required(Name, "\"order-admin\"");
        /// Origins with commas between; blanks count.
        limit_app as "limitApp": String = String::new(), Required(Name, "\"order-admin\"");
        /// Allow or deny.
        strategy: Listing = Listing::Allow, STRATEGIES;
    }
}

/// Our form answers for all of them.
impl Effects for AuthorityFields {
    const EFFECTS: &'static [Effect<Self>] = &[];
}

impl Foreign for AuthorityFields {
    type Ours = AuthorityOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[("origins", "limitApp")];
    fn ours(&self, _section: &mut Section<'_, '_>) -> AuthorityOptions {
        let parts = self.limit_app.split(',').filter(|part| !part.is_empty());
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
