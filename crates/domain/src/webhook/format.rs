//! The format of webhook deliveries: Galley's own or that of WhatsApp's Graph API, and how events map
//! to the latter.

use jiff::SignedDuration;

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
        /// The category has changed or will change.
        Category "template_category_update",
        /// The quality has changed.
        Quality "message_template_quality_update",
    }
);

string_enum!(
    /// A reason for a rejection in the Graph API.
    RejectionReason {
        /// Threats, or a request for card numbers.
        AbusiveContent "ABUSIVE_CONTENT",
        /// The category does not fit the content.
        IncorrectCategory "INCORRECT_CATEGORY",
        /// The form of the template; it is sent with a free-text explanation.
        InvalidFormat "INVALID_FORMAT",
        /// Advertising.
        Promotional "PROMOTIONAL",
        /// Fraud.
        Scam "SCAM",
        /// The content does not fit the language or the category.
        TagContentMismatch "TAG_CONTENT_MISMATCH",
    }
);

string_enum!(
    /// The title of a pause in the Graph API.
    PauseTitle {
        /// For low quality, for 3 hours.
        First "FIRST_PAUSE",
        /// For low quality again, for 6 hours.
        Second "SECOND_PAUSE",
        /// The only one that does not end by itself.
        RateLimiting "RATE_LIMITING_PAUSE",
    }
);

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
            (
                EventType::WebhookDisabled
                | EventType::Submitted
                | EventType::ReviewPassed
                | EventType::UpstreamRefused
                | EventType::Drifted
                | EventType::UpstreamDegraded
                | EventType::UpstreamRecovered,
                _,
            )
            | (EventType::Created, Some(Status::Pending)) => &[],
            (EventType::Edited, Some(Status::Approved)) => &[Self::Components, Self::Status],
            (EventType::Edited, _) => &[Self::Components],
            (EventType::CategoryChanged | EventType::CategoryAnnounced, _) => &[Self::Category],
            (EventType::QualityChanged, _) => &[Self::Quality],
            (
                EventType::Created
                | EventType::Approved
                | EventType::Rejected
                | EventType::Paused
                | EventType::Resumed
                | EventType::Disabled
                | EventType::Deleted
                | EventType::Archived
                | EventType::Unarchived
                | EventType::Flagged
                | EventType::Gone,
                _,
            ) => &[Self::Status],
        }
    }
}

/// The time between the announcement of a category and its change.
pub const CATEGORY_NOTICE: SignedDuration = SignedDuration::from_secs(24 * 60 * 60);

/// The `event` field of a status update: the current status of the template, except for events that
/// are not a status. A template that is approved while paused remains PAUSED.
pub fn status_event(event: EventType, status: Status) -> &'static str {
    match event {
        EventType::Deleted => "DELETED",
        EventType::Flagged => "FLAGGED",
        EventType::Unarchived => "UNARCHIVED",
        _ => status.as_str(),
    }
}

impl RejectionReason {
    /// The rejection reason of the Graph API. A reviewer selects one by writing it as the whole
    /// reason or before a colon.
    pub fn of(reason: Option<&str>) -> Self {
        Self::parse(code_of(reason.unwrap_or_default())).unwrap_or(Self::InvalidFormat)
    }
}

impl PauseTitle {
    /// The title of a pause and its description, if there is one. A review script selects a title by
    /// writing it before a colon; any other pause does not end by itself.
    pub fn of(reason: Option<&str>) -> (Self, Option<&str>) {
        let title = reason.and_then(|text| Self::parse(code_of(text)));
        match (title, reason) {
            (Some(title), Some(text)) => {
                (title, text.split_once(':').map(|(_, description)| description.trim_start()))
            }
            _ => (Self::RateLimiting, reason),
        }
    }
}

/// The part of a reason before the first colon.
fn code_of(reason: &str) -> &str {
    reason.split(':').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Option<Status>; 7] = [
        None,
        Some(Status::Pending),
        Some(Status::Approved),
        Some(Status::Rejected),
        Some(Status::Paused),
        Some(Status::Disabled),
        Some(Status::Archived),
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
                    (
                        "webhook.disabled"
                        | "upstream.degraded"
                        | "upstream.recovered"
                        | "template.submitted"
                        | "template.review_passed"
                        | "template.upstream_refused"
                        | "template.drifted",
                        _,
                    )
                    | ("template.created", Some(Status::Pending)) => &[],
                    ("template.edited", Some(Status::Approved)) => {
                        &["message_template_components_update", "message_template_status_update"]
                    }
                    ("template.edited", _) => &["message_template_components_update"],
                    ("template.category_changed" | "template.category_announced", _) => {
                        &["template_category_update"]
                    }
                    ("template.quality_changed", _) => &["message_template_quality_update"],
                    _ => &["message_template_status_update"],
                };
                assert_eq!(updates(event, status), expected, "{event} {status:?}");
            }
        }
    }

    #[test]
    fn a_status_event_is_the_current_status_or_names_the_event() {
        for (event, status, expected) in [
            (EventType::Created, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Approved, "APPROVED"),
            (EventType::Approved, Status::Paused, "PAUSED"),
            (EventType::Rejected, Status::Rejected, "REJECTED"),
            (EventType::Paused, Status::Paused, "PAUSED"),
            (EventType::Resumed, Status::Pending, "PENDING"),
            (EventType::Disabled, Status::Disabled, "DISABLED"),
            (EventType::Deleted, Status::Approved, "DELETED"),
            (EventType::Archived, Status::Archived, "ARCHIVED"),
            (EventType::Unarchived, Status::Rejected, "UNARCHIVED"),
            (EventType::Flagged, Status::Approved, "FLAGGED"),
            (EventType::Gone, Status::Disabled, "DISABLED"),
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
            assert_eq!(RejectionReason::of(reason).as_str(), expected, "{reason:?}");
        }
    }

    #[test]
    fn a_pause_of_a_script_has_its_title_and_any_other_does_not_end_by_itself() {
        for (reason, title, description) in [
            (None, "RATE_LIMITING_PAUSE", None),
            (Some("for the holidays"), "RATE_LIMITING_PAUSE", Some("for the holidays")),
            (Some("FIRST_PAUSE: low quality"), "FIRST_PAUSE", Some("low quality")),
            (Some("SECOND_PAUSE"), "SECOND_PAUSE", None),
        ] {
            let found = PauseTitle::of(reason);
            assert_eq!((found.0.as_str(), found.1), (title, description), "{reason:?}");
        }
    }
}
