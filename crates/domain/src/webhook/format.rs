//! The format of webhook deliveries: Galley's own or that of WhatsApp's Graph API, and how events map
//! to the latter.

use crate::{
    string_enum::string_enum,
    template::{Status, lifecycle::EventType},
};

string_enum!(
    /// The format of the events that an endpoint receives. It is fixed at registration.
    Format {
        /// Events as in the event feed, signed according to Standard Webhooks.
        Galley "galley",
        /// Meta's payload and signature for changes of templates.
        Whatsapp "whatsapp",
    }
);

string_enum!(
    /// A change in the Graph API, named by its field.
    Update {
        /// The status has changed, or the template was deleted.
        Status "message_template_status_update",
        /// The template has a new version.
        Components "message_template_components_update",
        /// The category has changed.
        Category "template_category_update",
    }
);

/// The reasons for a rejection in the Graph API.
const REJECTION_REASONS: &[&str] = &[
    "ABUSIVE_CONTENT",
    "INCORRECT_CATEGORY",
    INVALID_FORMAT,
    "PROMOTIONAL",
    "SCAM",
    "TAG_CONTENT_MISMATCH",
];

/// The reason that is sent with a free-text explanation.
pub const INVALID_FORMAT: &str = "INVALID_FORMAT";

impl Format {
    /// Whether this format includes an event. `status` is the status of the template at that time;
    /// `None` for an event that is not about a template.
    pub fn includes(self, event: EventType, status: Option<Status>) -> bool {
        self == Self::Galley || !Update::for_event(event, status).is_empty()
    }
}

impl Update {
    /// The updates to send for an event.
    ///
    /// The creation of a PENDING template is not sent: its first update is the review. An edit
    /// sends the components. It also sends the status if the edit was approved automatically,
    /// because no review will follow.
    pub fn for_event(event: EventType, status: Option<Status>) -> &'static [Self] {
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

/// The `event` field of a status update: the current status of the template. A template that is
/// approved while paused remains PAUSED.
pub fn status_event(event: EventType, status: Status) -> &'static str {
    if event == EventType::Deleted { "DELETED" } else { status.as_str() }
}

/// The rejection reason of the Graph API. A reviewer selects one by writing it as the whole reason or
/// before a colon.
pub fn graph_rejection_reason(reason: Option<&str>) -> &'static str {
    let code = reason.unwrap_or_default().split(':').next().unwrap_or_default().trim();
    let known = REJECTION_REASONS.iter().find(|known| known.eq_ignore_ascii_case(code));
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
    fn the_galley_format_includes_every_event_and_the_whatsapp_format_maps_them_to_updates() {
        let updates = |event: &str, status: Option<Status>| -> Vec<&str> {
            let event = EventType::parse(event).unwrap();
            assert!(Format::Galley.includes(event, status));
            let updates = Update::for_event(event, status);
            assert_eq!(Format::Whatsapp.includes(event, status), !updates.is_empty());
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
                assert_eq!(updates(event, status), expected, "{event} {status:?}");
            }
        }
    }

    #[test]
    fn a_status_event_is_the_current_status_or_deleted() {
        for (event, status, expected) in [
            (EventType::Created, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Paused, "PAUSED"),
            (EventType::Rejected, Status::Rejected, "REJECTED"),
            (EventType::Paused, Status::Paused, "PAUSED"),
            (EventType::Resumed, Status::Pending, "PENDING"),
            (EventType::Disabled, Status::Disabled, "DISABLED"),
            (EventType::Deleted, Status::Approved, "DELETED"),
        ] {
            assert_eq!(status_event(event, status), expected, "{event:?}");
        }
    }

    #[test]
    fn a_known_reason_alone_or_before_a_colon_is_sent_as_such() {
        for (reason, expected) in [
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
            assert_eq!(graph_rejection_reason(reason), expected, "{reason:?}");
        }
    }
}
