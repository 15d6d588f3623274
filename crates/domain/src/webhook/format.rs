//! The form in which an endpoint is sent events: ours, or that of WhatsApp's Graph API; and which
//! event becomes what there.

use crate::{
    string_enum::string_enum,
    template::{Status, lifecycle::EventType},
};

string_enum!(
    /// How an endpoint is sent events. It never changes.
    Format {
        /// The event as the feed has it, signed as Standard Webhooks says.
        Galley "galley",
        /// As Meta sends changes of templates, in its envelope and with its signature.
        Whatsapp "whatsapp",
    }
);

string_enum!(
    /// A change as the Graph API tells it, by the name of its field.
    Update {
        /// The status is another one, or the template is gone.
        Status "message_template_status_update",
        /// There is a new version.
        Components "message_template_components_update",
        /// The category is another one.
        Category "template_category_update",
    }
);

/// Why a template was rejected, in the words that clients of the Graph API know.
const REASONS: &[&str] = &[
    "ABUSIVE_CONTENT",
    "INCORRECT_CATEGORY",
    INVALID_FORMAT,
    "PROMOTIONAL",
    "SCAM",
    "TAG_CONTENT_MISMATCH",
];

/// The reason that comes with words of its own.
pub const INVALID_FORMAT: &str = "INVALID_FORMAT";

impl Format {
    /// Whether such an event is sent at all. The status is what the template was then; an event
    /// that is not about a template has none.
    pub fn sends(self, event: EventType, status: Option<Status>) -> bool {
        self == Self::Galley || !Update::of(event, status).is_empty()
    }
}

impl Update {
    /// What an event becomes there.
    ///
    /// A template that was made and waits is not told of: the first to be heard of it is the
    /// review. An edit tells its components; that it waits is not told either, but that it was
    /// approved at once is, as no review will.
    pub fn of(event: EventType, status: Option<Status>) -> &'static [Self] {
        match (event, status) {
            (EventType::WebhookDisabled, _) | (EventType::Created, Some(Status::Pending)) => &[],
            (EventType::Edited, Some(Status::Approved)) => &[Self::Components, Self::Status],
            (EventType::Edited, _) => &[Self::Components],
            (EventType::CategoryChanged, _) => &[Self::Category],
            (
                EventType::Created
                | EventType::Approved
                | EventType::Rejected
                | EventType::Paused
                | EventType::Resumed
                | EventType::Disabled
                | EventType::Deleted,
                _,
            ) => &[Self::Status],
        }
    }
}

/// The `event` of a status update: what the template is now. One that is approved under a pause is
/// still paused.
pub fn status_word(event: EventType, status: Status) -> &'static str {
    if event == EventType::Deleted { "DELETED" } else { status.as_str() }
}

/// The word for a rejection; a reviewer who writes one of them, alone or before a colon, means it.
pub fn rejection_word(reason: Option<&str>) -> &'static str {
    let word = reason.unwrap_or_default().split(':').next().unwrap_or_default().trim();
    let known = REASONS.iter().find(|known| known.eq_ignore_ascii_case(word));
    known.copied().unwrap_or(INVALID_FORMAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Option<Status>; 6] = [
        None,
        Some(Status::Pending),
        Some(Status::Approved),
        Some(Status::Rejected),
        Some(Status::Paused),
        Some(Status::Disabled),
    ];

    #[test]
    fn each_event_is_sent_in_our_form_and_becomes_what_the_table_says_in_the_other() {
        let told = |event: &str, status: Option<Status>| -> Vec<&str> {
            let event = EventType::parse(event).unwrap();
            assert!(Format::Galley.sends(event, status));
            let updates = Update::of(event, status);
            assert_eq!(Format::Whatsapp.sends(event, status), !updates.is_empty());
            updates.iter().map(|update| update.as_str()).collect()
        };
        for event in EventType::VALUES {
            for status in ALL {
                let expected: &[&str] = match (*event, status) {
                    ("webhook.disabled", _) | ("template.created", Some(Status::Pending)) => &[],
                    ("template.edited", Some(Status::Approved)) => {
                        &["message_template_components_update", "message_template_status_update"]
                    }
                    ("template.edited", _) => &["message_template_components_update"],
                    ("template.category_changed", _) => &["template_category_update"],
                    _ => &["message_template_status_update"],
                };
                assert_eq!(told(event, status), expected, "{event} {status:?}");
            }
        }
    }

    #[test]
    fn the_word_is_what_the_template_is_then() {
        for (event, status, word) in [
            (EventType::Created, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Paused, "PAUSED"),
            (EventType::Rejected, Status::Rejected, "REJECTED"),
            (EventType::Paused, Status::Paused, "PAUSED"),
            (EventType::Resumed, Status::Pending, "PENDING"),
            (EventType::Disabled, Status::Disabled, "DISABLED"),
            (EventType::Deleted, Status::Approved, "DELETED"),
        ] {
            assert_eq!(status_word(event, status), word, "{event:?}");
        }
    }

    #[test]
    fn a_reviewer_who_writes_a_known_word_alone_or_before_a_colon_means_it() {
        for (reason, word) in [
            (None, "INVALID_FORMAT"),
            (Some("too loud"), "INVALID_FORMAT"),
            (Some("SCAM"), "SCAM"),
            (Some("promotional: it sells"), "PROMOTIONAL"),
            (Some(" Tag_content_mismatch "), "TAG_CONTENT_MISMATCH"),
            (Some("Scammers could copy this wording"), "INVALID_FORMAT"),
            (Some("Promotional words in a UTILITY template"), "INVALID_FORMAT"),
            (Some("SCAM_LIKE"), "INVALID_FORMAT"),
            (Some("NONE"), "INVALID_FORMAT"),
        ] {
            assert_eq!(rejection_word(reason), word, "{reason:?}");
        }
    }
}
