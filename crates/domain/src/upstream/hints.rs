//! What a webhook of a provider says. It is a hint: deliveries are lost, doubled and out of order,
//! so Galley keeps only what no read shows, and reads the template.

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
    let document = Document::parse(body).map_err(|_| HookError::NotJson)?;
    let root = document.root();
    if text(root, "object") != Some("whatsapp_business_account") {
        return Err(HookError::NotWhatsapp);
    }
    let is_own = |entry: &&Json<'_>| {
        let id = entry.get("id").and_then(RemoteId::read);
        id.is_some_and(|id| id.as_str() == waba)
    };
    let entries = items(root, "entry");
    let changes: usize = entries.iter().map(|entry| items(entry, "changes").len()).sum();
    if changes > MAX_CHANGES || entries.len() > MAX_CHANGES {
        return Err(HookError::TooManyChanges);
    }
    Ok(entries
        .iter()
        .filter(is_own)
        .flat_map(|entry| items(entry, "changes"))
        .map(Hint::of)
        .collect())
}
