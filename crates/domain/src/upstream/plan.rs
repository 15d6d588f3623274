//! How the templates of an account differ from those at the provider, and what our rulebook says about
//! a document of the provider.

use super::{
    RemoteTemplate,
    content::{ContentMatch, VersionContent},
};
use crate::{
    document::{Document, raw},
    rulebook::{Category, WHATSAPP},
    string_enum::string_enum,
    template::Template,
    violation::Violations,
};

string_enum!(
    /// How a template of the account compares with the one at the provider.
    PlanState {
        /// Both have the same content and category.
        Same "same",
        /// Content or category differ.
        Drifted "drifted",
        /// Only the account has it.
        Missing "missing",
        /// Only the provider has it.
        Unknown "unknown",
    }
);

impl PlanState {
    /// Compares the newest version of a template with the template at the provider; `None` if there
    /// is neither. A template that the provider has deleted or generated does not count. `is_mirrored`:
    /// the mirror knows that the provider has that version, also if the provider does not show all of it.
    pub fn of(
        local: Option<&Template>,
        remote: Option<&RemoteTemplate>,
        is_mirrored: bool,
    ) -> Option<Self> {
        let remote = remote.filter(|it| !it.status.is_deleted() && !it.is_generated());
        Some(match (local, remote) {
            (None, None) => return None,
            (Some(_), None) => Self::Missing,
            (None, Some(_)) => Self::Unknown,
            (Some(local), Some(remote)) if is_same(local, remote, is_mirrored) => Self::Same,
            (Some(_), Some(_)) => Self::Drifted,
        })
    }
}

fn is_same(local: &Template, remote: &RemoteTemplate, is_mirrored: bool) -> bool {
    let own = VersionContent::of(local);
    let content = remote.document.as_deref().map(|document| own.compare(document));
    let has_content = match content {
        Some(ContentMatch::Equal) => true,
        Some(ContentMatch::Alike) => is_mirrored,
        Some(ContentMatch::Different) | None => false,
    };
    // A category that Galley does not know is not stored.
    let category = Category::parse(&remote.category).unwrap_or(local.category());
    has_content && category == local.category()
}

/// What the rulebook says about a document of the provider, without the members that a client does not
/// send, such as the status.
pub fn violations(document: &str) -> Option<Violations> {
    let members = raw::members(document)?;
    let is_field = |key: &str| WHATSAPP.template.fields.iter().any(|field| field.name == key);
    let members = members.iter().filter(|(key, value)| is_field(key) && *value != "null");
    let members: Vec<String> = members
        .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(&**key)))
        .collect();
    let document = format!("{{{}}}", members.join(","));
    let document = Document::parse(document.as_bytes()).ok()?;
    Template::check(&document, &WHATSAPP).template.err()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"[{"type":"BODY","text":"Your order is on its way."}]"#;

    fn remote(status: &str, category: &str, components: &str) -> RemoteTemplate {
        RemoteTemplate::parse(&format!(
            r#"{{"id":"1","name":"a","language":"en","status":"{status}","category":"{category}","components":{components}}}"#
        ))
        .unwrap()
    }

    fn local(components: &str) -> Template {
        let document = format!(
            r#"{{"name":"a","language":"en","category":"UTILITY","components":{components}}}"#
        );
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).unwrap()
    }

    #[test]
    fn a_plan_compares_content_and_category_and_ignores_deleted_templates() {
        let other = r#"[{"type":"BODY","text":"Your order has arrived."}]"#;
        let local = local(BODY);
        for (has_local, remote, expected) in [
            (true, Some(remote("APPROVED", "UTILITY", BODY)), Some(PlanState::Same)),
            (true, Some(remote("PAUSED", "UTILITY", BODY)), Some(PlanState::Same)),
            (true, Some(remote("APPROVED", "NEW_CATEGORY", BODY)), Some(PlanState::Same)),
            (true, Some(remote("APPROVED", "MARKETING", BODY)), Some(PlanState::Drifted)),
            (true, Some(remote("APPROVED", "UTILITY", other)), Some(PlanState::Drifted)),
            (true, Some(remote("PENDING_DELETION", "UTILITY", BODY)), Some(PlanState::Missing)),
            (true, None, Some(PlanState::Missing)),
            (false, Some(remote("REJECTED", "UTILITY", BODY)), Some(PlanState::Unknown)),
            (false, Some(remote("DELETED", "UTILITY", BODY)), None),
            (false, None, None),
        ] {
            let state = PlanState::of(has_local.then_some(&local), remote.as_ref(), false);
            assert_eq!(state, expected, "{has_local} {remote:?}");
        }
    }

    #[test]
    fn the_rulebook_judges_only_what_a_client_sends() {
        let good = remote("APPROVED", "UTILITY", BODY).document.unwrap();
        assert_eq!(violations(&good), None);
        let unknown = remote("APPROVED", "UTILITY", r#"[{"type":"HOLOGRAM"}]"#).document.unwrap();
        let found = violations(&unknown).unwrap();
        assert!(found.listed().iter().all(|it| it.pointer.starts_with("/components")), "{found:?}");
    }
}
