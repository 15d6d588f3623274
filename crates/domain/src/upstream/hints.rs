//! What a webhook of a provider says. It is a hint: deliveries are lost, doubled and out of order,
//! so Galley keeps only what no read shows, and reads the template.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    bounded_text, items,
    observation::{MAX_NAME_CHARS, RemoteId, language, timestamp},
    text,
};
use crate::{
    document::{Document, Json},
    template::quality::Quality,
    webhook::Update,
};

/// The most changes of one request.
pub const MAX_CHANGES: usize = 1_000;

/// The template that a hint is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HintedTemplate {
    /// The id at the provider.
    pub id: RemoteId,
    /// The name; empty if the webhook names none.
    pub name: String,
    /// The language, written with an underscore; empty if the webhook names none.
    pub language: String,
}

/// What only a webhook says about a change of the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusInfo {
    /// Why the template was rejected.
    pub rejection: Option<String>,
    /// What to change.
    pub recommendation: Option<String>,
    /// The title of a pause or a lock, such as `FIRST_PAUSE`.
    pub title: Option<String>,
    /// The description of a pause or a lock.
    pub description: Option<String>,
    /// When the template was disabled.
    pub disabled_at: Option<Timestamp>,
}

/// A change that a webhook reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The status has changed, or is about to.
    Status {
        /// The template.
        template: HintedTemplate,
        /// Not always a status: `FLAGGED`, `LOCKED`, `REINSTATED` and `UNARCHIVED` are events only.
        event: String,
        /// The reason of a rejection; `NONE` is absent.
        reason: Option<String>,
        /// What only the webhook says.
        info: StatusInfo,
    },
    /// The quality has changed.
    Quality {
        /// The template.
        template: HintedTemplate,
        /// The quality before.
        previous: Option<Quality>,
        /// The quality since.
        new: Option<Quality>,
    },
    /// The category has changed or will change.
    Category {
        /// The template.
        template: HintedTemplate,
        /// The category before; absent in an announcement.
        previous_category: Option<String>,
        /// The category now; in an announcement it is still the old one.
        new_category: Option<String>,
        /// The announced category.
        correct_category: Option<String>,
        /// When the announced category will apply.
        category_update_timestamp: Option<Timestamp>,
    },
    /// The content has changed.
    Components {
        /// The template.
        template: HintedTemplate,
    },
    /// A change that is not about a template, or names none.
    Other,
}

/// Why the body of a webhook cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// It is not JSON.
    #[error("the body of the webhook is not JSON")]
    NotJson,
    /// It is not about accounts of WhatsApp.
    #[error("the webhook is not about WhatsApp accounts")]
    NotWhatsapp,
    /// It has more than [`MAX_CHANGES`] changes.
    #[error("the webhook has more than {MAX_CHANGES} changes")]
    TooManyChanges,
}

impl Hint {
    /// The template that it is about.
    pub fn template(&self) -> Option<&HintedTemplate> {
        match self {
            Self::Status { template, .. }
            | Self::Quality { template, .. }
            | Self::Category { template, .. }
            | Self::Components { template } => Some(template),
            Self::Other => None,
        }
    }

    fn of(change: &Json<'_>) -> Self {
        let field = text(change, "field").and_then(Update::parse);
        let (Some(field), Some(value)) = (field, change.get("value")) else { return Self::Other };
        let Some(template) = HintedTemplate::of(value) else { return Self::Other };
        let quality = |key| text(value, key).and_then(Quality::parse);
        match field {
            Update::Status => Self::Status {
                template,
                event: bounded_text(value, "event").unwrap_or_default().to_uppercase(),
                reason: bounded_text(value, "reason").filter(|reason| reason != "NONE"),
                info: StatusInfo::of(value),
            },
            Update::Quality => Self::Quality {
                template,
                previous: quality("previous_quality_score"),
                new: quality("new_quality_score"),
            },
            Update::Category => Self::Category {
                template,
                previous_category: bounded_text(value, "previous_category"),
                new_category: bounded_text(value, "new_category"),
                correct_category: bounded_text(value, "correct_category"),
                category_update_timestamp: timestamp(value, "category_update_timestamp"),
            },
            Update::Components => Self::Components { template },
        }
    }
}

impl HintedTemplate {
    /// Whether templates that the provider generates have such names. The business may use such a name,
    /// too, so that it tells nothing of a template that is known.
    pub fn has_generated_name(&self) -> bool {
        self.name.starts_with("auto_generated_")
    }

    fn of(value: &Json<'_>) -> Option<Self> {
        let name = text(value, "message_template_name").filter(|it| it.len() <= MAX_NAME_CHARS);
        let code = bounded_text(value, "message_template_language").unwrap_or_default();
        Some(Self {
            id: value.get("message_template_id").and_then(RemoteId::read)?,
            name: name.unwrap_or_default().to_owned(),
            language: language(&code),
        })
    }
}

impl StatusInfo {
    fn of(value: &Json<'_>) -> Self {
        let text = |object: &str, key| value.get(object).and_then(|it| bounded_text(it, key));
        let disable = value.get("disable_info");
        Self {
            rejection: text("rejection_info", "reason"),
            recommendation: text("rejection_info", "recommendation"),
            title: text("other_info", "title"),
            description: text("other_info", "description"),
            disabled_at: disable.and_then(|it| timestamp(it, "disable_date")),
        }
    }
}

/// Reads the body of a webhook: the changes of the account `waba` at the provider. Changes of other
/// accounts are left out.
pub fn read_hook(body: &[u8], waba: &str) -> Result<Vec<Hint>, HookError> {
    let mut accounts = read_hook_accounts(body)?;
    Ok(RemoteId::parse(waba).and_then(|waba| accounts.remove(&waba)).unwrap_or_default())
}

/// Reads the body of a webhook: the changes of each account at the provider, in their order. An app
/// may have several accounts.
pub fn read_hook_accounts(body: &[u8]) -> Result<BTreeMap<RemoteId, Vec<Hint>>, HookError> {
    let document = Document::parse(body).map_err(|_| HookError::NotJson)?;
    let root = document.root();
    if text(root, "object") != Some("whatsapp_business_account") {
        return Err(HookError::NotWhatsapp);
    }
    let entries = items(root, "entry");
    let changes: usize = entries.iter().map(|entry| items(entry, "changes").len()).sum();
    if changes > MAX_CHANGES || entries.len() > MAX_CHANGES {
        return Err(HookError::TooManyChanges);
    }
    let mut accounts = BTreeMap::<RemoteId, Vec<Hint>>::new();
    for entry in entries {
        let Some(id) = entry.get("id").and_then(RemoteId::read) else { continue };
        accounts.entry(id).or_default().extend(items(entry, "changes").iter().map(Hint::of));
    }
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hook(changes: &Value) -> Vec<u8> {
        let entry = json!({"id": "17", "time": 1_800_000_000, "changes": changes});
        json!({"object": "whatsapp_business_account", "entry": [entry]}).to_string().into_bytes()
    }

    /// The only hint of a change of the template 7.
    fn hint(field: &str, members: Value) -> Hint {
        let mut value = json!({
            "message_template_id": 1_234_567_890_123_456_789_u64,
            "message_template_name": "order",
            "message_template_language": "en-US",
        });
        let Value::Object(members) = members else { panic!("{members}") };
        value.as_object_mut().unwrap().extend(members);
        let body = hook(&json!([{"field": field, "value": value}]));
        let mut hints = read_hook(&body, "17").unwrap();
        assert_eq!(hints.len(), 1);
        hints.remove(0)
    }

    fn template() -> HintedTemplate {
        let id = RemoteId::parse("1234567890123456789").unwrap();
        HintedTemplate { id, name: "order".to_owned(), language: "en_US".to_owned() }
    }

    #[test]
    fn a_change_of_the_status_keeps_what_only_the_webhook_says() {
        let status = "message_template_status_update";
        let rejected = json!({
            "event": "REJECTED", "reason": "INVALID_FORMAT",
            "rejection_info": {"reason": "two variables", "recommendation": "add a word"},
        });
        let info = StatusInfo {
            rejection: Some("two variables".to_owned()),
            recommendation: Some("add a word".to_owned()),
            ..StatusInfo::default()
        };
        let expected = Hint::Status {
            template: template(),
            event: "REJECTED".to_owned(),
            reason: Some("INVALID_FORMAT".to_owned()),
            info,
        };
        assert_eq!(hint(status, rejected), expected);
        let disabled = json!({
            "event": "DISABLED", "reason": "NONE",
            "other_info": {"title": "DISABLED", "description": "too often"},
            "disable_info": {"disable_date": "1800000000"},
        });
        let info = StatusInfo {
            title: Some("DISABLED".to_owned()),
            description: Some("too often".to_owned()),
            disabled_at: Timestamp::from_second(1_800_000_000).ok(),
            ..StatusInfo::default()
        };
        let event = "DISABLED".to_owned();
        let expected = Hint::Status { template: template(), event, reason: None, info };
        assert_eq!(hint(status, disabled), expected);
    }

    #[test]
    fn quality_category_and_components_are_read() {
        let quality = json!({"previous_quality_score": "GREEN", "new_quality_score": "RED"});
        assert_eq!(
            hint("message_template_quality_update", quality),
            Hint::Quality {
                template: template(),
                previous: Some(Quality::Green),
                new: Some(Quality::Red),
            }
        );
        let announced = json!({
            "new_category": "UTILITY", "correct_category": "MARKETING",
            "category_update_timestamp": 1_800_000_000,
        });
        assert_eq!(
            hint("template_category_update", announced),
            Hint::Category {
                template: template(),
                previous_category: None,
                new_category: Some("UTILITY".to_owned()),
                correct_category: Some("MARKETING".to_owned()),
                category_update_timestamp: Timestamp::from_second(1_800_000_000).ok(),
            }
        );
        let components = json!({"message_template_element": "Hello"});
        let hint = hint("message_template_components_update", components);
        assert_eq!(hint, Hint::Components { template: template() });
        assert_eq!(hint.template(), Some(&template()));
    }

    #[test]
    fn other_changes_and_those_without_a_template_are_counted_only() {
        let body = hook(&json!([
            {"field": "messages", "value": {"messages": [{"from": "15550001111"}]}},
            {"field": "message_template_status_update", "value": {"event": "APPROVED"}},
            {"field": "template_correct_category_detection", "value": {}},
            {"field": "message_template_status_update"},
        ]));
        assert_eq!(read_hook(&body, "17"), Ok(vec![Hint::Other; 4]));
    }

    #[test]
    fn changes_of_another_account_are_left_out() {
        let body = hook(&json!([{"field": "messages", "value": {}}]));
        assert_eq!(read_hook(&body, "18"), Ok(Vec::new()));
        let text = String::from_utf8(body).unwrap().replace("\"17\"", "17");
        assert_eq!(read_hook(text.as_bytes(), "17").map(|it| it.len()), Ok(1), "a number");
    }

    #[test]
    fn each_account_has_its_changes() {
        let change = |id: u64| json!({"field": "message_template_components_update", "value": {"message_template_id": id}});
        let entry = |waba: Value, id| json!({"id": waba, "changes": [change(id)]});
        let entries = [entry(json!("17"), 1), entry(json!(18), 2), entry(json!("17"), 3)];
        let body = json!({"object": "whatsapp_business_account", "entry": entries}).to_string();
        let accounts = read_hook_accounts(body.as_bytes()).unwrap();
        let ids = |hints: &[Hint]| -> Vec<String> {
            hints.iter().map(|hint| hint.template().unwrap().id.as_str().to_owned()).collect()
        };
        let found: Vec<_> = accounts.iter().map(|(waba, it)| (waba.as_str(), ids(it))).collect();
        let expected = [("17", vec!["1".to_owned(), "3".to_owned()]), ("18", vec!["2".to_owned()])];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_body_that_is_no_webhook_or_too_large_is_refused() {
        assert_eq!(read_hook(b"{", "17"), Err(HookError::NotJson));
        assert_eq!(read_hook(b"{\"object\":\"page\"}", "17"), Err(HookError::NotWhatsapp));
        let changes = |count| vec![json!({"field": "messages"}); count];
        let read = |count| read_hook(&hook(&json!(changes(count))), "17").map(|it| it.len());
        assert_eq!(read(MAX_CHANGES), Ok(MAX_CHANGES));
        assert_eq!(read(MAX_CHANGES + 1), Err(HookError::TooManyChanges));
        assert_eq!(read(5_000), Err(HookError::TooManyChanges));
    }
}
