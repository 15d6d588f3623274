//! The JSON document of a problem (RFC 9457).

use galley_domain::violation::Violation;
use serde::Serialize;

use super::{Extra, Problem};

impl Problem {
    /// The JSON of the response.
    pub(crate) fn document(self, request_id: &str) -> String {
        let Self { kind, detail, extra, .. } = self;
        let mut document = Document {
            r#type: format!("/problems/{}", kind.slug()),
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: detail.as_deref().unwrap_or(kind.remedy()),
            request_id,
            existing_id: None,
            violations: None,
            more: None,
            possible: None,
            oldest: None,
            until: None,
        };
        match &extra {
            Extra::None
            | Extra::Revision(_)
            | Extra::Length(_)
            | Extra::Limit(_)
            | Extra::Throttle(_)
            | Extra::Failure(_)
            | Extra::Refusal(_)
            | Extra::Provider(_) => {}
            Extra::Existing(id) => document.existing_id = Some(id.to_string()),
            Extra::Violations(violations) => {
                document.violations = Some(violations.listed());
                document.more = Some(violations.omitted()).filter(|more| *more > 0);
            }
            Extra::Possible(possible) => document.possible = Some(possible),
            Extra::Oldest(oldest) => document.oldest = Some(*oldest),
            Extra::Until(until) => document.until = Some(format!("{until:.3}")),
        }
        serde_json::to_string(&document).unwrap_or_default()
    }
}

/// The members of a problem, in the order in which people read them.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    possible: Option<&'a [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}
