//! Authority rules: which origins may call.

use tidegate_abi::decision::Mode;

use super::effect::{self, Effects, Idle, OptionEffect};
use super::expiry::{Ending, Expires};
use super::{Body, RuleOptions};
use crate::schema::kind::{ListOf, Maybe, NameText, OneOf, RequiredOption, words};
use crate::schema::settings::{Section, settings};

words! {
    /// What a list of origins means. An empty origin always passes.
    pub enum Listing {
        /// Only these may call.
        Allow = "allow",
        /// All but these may call.
        Deny = "deny",
    }
}

/// Which origins may call a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    /// Name of the resource.
    pub resource: String,
    /// What the list means.
    pub listing: Listing,
    /// Origins, compared as they are. At least one.
    pub origins: Vec<String>,
}

settings! {
    /// Which origins may call a resource.
    pub struct AuthorityOptions {
        /// Name in refusals, metrics and logs. Not set: file and place.
        id: Option<String> = None, Maybe(NameText, "\"orders-callers\"");
        /// `enforce` refuses; `observe` counts what it would have refused; `off` does nothing.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// When it ends by itself: after a time in force, or at a time. Not set: never. Reading the same
        /// text again does not begin anew; a restart of the agent does.
        expires: Option<Expires> = None, Maybe(Ending, "\"30s\"");
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-admin\"");
        /// Whether the origins are the only ones that may call, or the ones that may not.
        strategy: Listing = Listing::Allow, OneOf::<Listing>::ANY;
        /// The origins. A request without origin always passes.
        origins: Vec<String> = Vec::new(), ListOf(NameText);
    }
}

impl RuleOptions for AuthorityOptions {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn mode(&self) -> Mode {
        self.mode
    }
    fn expires(&self) -> Option<Expires> {
        self.expires
    }
    fn body(&self, section: &mut Section<'_, '_>) -> Option<Body> {
        if self.origins.is_empty() {
            section.refuse(
                &["origins"],
                "a list of at least one origin",
                "name the callers",
            );
            return None;
        }
        Some(Body::Authority(Authority {
            resource: self.resource.clone(),
            listing: self.strategy,
            origins: self.origins.clone(),
        }))
    }
}

impl Effects for AuthorityOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("id"),
        OptionEffect::new("expires", |rule| effect::ended(rule.expires)),
        OptionEffect::new("mode", |authority| effect::off(authority.mode)),
        OptionEffect::new("resource", |authority| {
            effect::literal(&authority.resource, false)
        }),
        OptionEffect::always("strategy"),
        OptionEffect::new("origins", |authority| {
            let mut origins = authority.origins.iter();
            let odd = origins.find(|origin| origin.contains(',') || origin.trim() != *origin)?;
            let hint = format!("\"{odd}\" is compared as it stands, with commas and blanks");
            Some(Idle::new("each origin as a text of its own", hint))
        }),
    ];
}
