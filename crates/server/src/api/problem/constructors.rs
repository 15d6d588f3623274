//! The problems that have more than a kind: their details and additional data.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use galley_domain::{
    document::JsonError, emulator::failures::Failure, id::TemplateId, rulebook::Category,
    send::Refusal, template::lifecycle::InvalidTransition, upstream::ProviderError,
    violation::Violations,
};
use galley_store::{Limit, MAX_DAILY_CHANGES, ReadKind, StoreError};
use jiff::Timestamp;
use thiserror::Error;

use super::{Extra, Problem, ProblemKind, Throttle};
use crate::delivery::{DecryptError, EndpointError, UrlError};

impl Problem {
    /// Another template has the name. `existing` is that template if it belongs to the caller.
    pub(crate) fn name_taken(existing: Option<TemplateId>) -> Self {
        let extra = existing.map_or(Extra::None, Extra::Existing);
        Self { extra, ..Self::of(ProblemKind::NameTaken) }
    }

    /// The template was created with `allow_category_change` false.
    pub(crate) fn category_locked(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!(
            "The category is {category}, and `allow_category_change` is false. Omit `category`, or create another template."
        );
        Self::of(ProblemKind::CategoryLocked).detail(detail)
    }

    /// The other languages of the name have this category.
    pub(crate) fn translation_category(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!(
            "The other languages of this name have the category {category}. Use the same category."
        );
        Self::of(ProblemKind::CategoryLocked).detail(detail)
    }

    /// The template is live with this category, which therefore cannot change.
    pub(crate) fn live_category_locked(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!(
            "The template is live with the category {category}, and the category of a live template cannot change. Omit `category`, or create another template."
        );
        Self::of(ProblemKind::CategoryLocked).detail(detail)
    }

    /// The account has reached this limit.
    pub(crate) fn limit_reached(limit: Limit) -> Self {
        let detail = match limit {
            Limit::StoredBytes { used, max } => {
                let detail = format!(
                    "The versions of the account's templates take {used} of {max} bytes, and this one does not fit. Delete templates: their bytes are free once their events expire (setting `events_kept`). Or ask the operator to raise the limit (`galley account limit --stored-bytes`)."
                );
                let problem = Self::of(ProblemKind::LimitReached).detail(detail);
                return Self { extra: Extra::Limit(limit), ..problem };
            }
            Limit::CreationsPerHour => {
                "The account has created the maximum number of templates per hour. Wait, or ask the operator to raise the limit."
            }
            Limit::Templates => {
                "The account has the maximum number of templates. Delete one, or ask the operator to raise the limit."
            }
            Limit::EditsPerDay => {
                "An approved template can be edited once in 24 hours. Try again later."
            }
            Limit::EditsPerMonth => {
                "An approved template can be edited ten times in 30 days. Try again later."
            }
        };
        let problem = Self::of(ProblemKind::LimitReached).detail(detail);
        Self { extra: Extra::Limit(limit), ..problem }
    }

    /// The provider of the account refuses the change.
    pub(crate) fn upstream_refused(error: ProviderError) -> Self {
        let problem = Self::of(ProblemKind::UpstreamRefused).detail(error.to_string());
        Self { extra: Extra::Provider(Box::new(error)), ..problem }
    }

    /// The handler of the request has panicked. The panic hook has logged where and why.
    pub(crate) fn handler_panicked() -> Self {
        Self { cause: Some(Arc::new(HandlerPanicked)), ..Self::of(ProblemKind::Internal) }
    }

    /// The app secret of a connection cannot be decrypted.
    pub(crate) fn unreadable_secret(error: DecryptError) -> Self {
        Self { cause: Some(Arc::new(error)), ..Self::of(ProblemKind::Internal) }
    }

    /// The account or the address has to wait.
    pub(crate) fn throttled(kind: ProblemKind, throttle: Throttle) -> Self {
        Self { extra: Extra::Throttle(Box::new(throttle)), ..Self::of(kind) }
    }

    /// The template has another revision than the request expects.
    pub(crate) fn revision_outdated(revision: u64) -> Self {
        Self { extra: Extra::Revision(revision), ..Self::of(ProblemKind::RevisionOutdated) }
    }

    /// The status of the template does not allow the action.
    pub(crate) fn invalid_transition(trigger: &str, refusal: &InvalidTransition) -> Self {
        let possible: Vec<&'static str> = refusal.possible.iter().map(|it| it.as_str()).collect();
        let detail = format!(
            "The template is {}, which does not allow `{trigger}`. Allowed actions: {}.",
            refusal.status.as_str(),
            possible.join(", ")
        );
        let problem = Self::of(ProblemKind::MoveNotPossible).detail(detail);
        Self { extra: Extra::Possible(possible), ..problem }
    }

    /// Galley has deleted some of the requested events; `oldest` is the first that is stored.
    pub(crate) fn events_expired(oldest: u64) -> Self {
        let position = oldest.saturating_sub(1);
        let detail = format!(
            "The oldest stored event is {oldest}. Read the templates again, then follow the events with `after={position}`."
        );
        let problem = Self::of(ProblemKind::EventsForgotten).detail(detail);
        Self { extra: Extra::Oldest(oldest), ..problem }
    }

    /// The previous rotation ends at `until`.
    pub(crate) fn rotation_open(until: Timestamp) -> Self {
        Self { extra: Extra::Until(until), ..Self::of(ProblemKind::RotationOpen) }
    }

    /// The account has deleted an approved template of this name. The time is one of its clock.
    pub(crate) fn name_locked(until: Timestamp) -> Self {
        let detail = format!(
            "The account has deleted an approved template with this name and language, which locks both until {until:.3} on its clock. Choose another name, or move the clock."
        );
        Self { extra: Extra::Until(until), ..Self::of(ProblemKind::NameLocked).detail(detail) }
    }

    /// A fault, a header or a recipient provokes this failure of Meta's API.
    pub(crate) fn provoked(failure: Failure) -> Self {
        let problem = Self::of(ProblemKind::ProvokedFailure).detail(failure.message);
        Self { extra: Extra::Failure(Box::new(failure)), ..problem }
    }

    /// The sandbox does not send the message.
    pub(crate) fn refused_message(refusal: Refusal) -> Self {
        let problem = Self::of(ProblemKind::MessageRefused).detail(refusal.details.clone());
        Self { extra: Extra::Refusal(Box::new(refusal)), ..problem }
    }

    /// A faithful account has one callback.
    pub(crate) fn second_callback(existing: galley_domain::id::WebhookId) -> Self {
        Self::of(ProblemKind::TooManyWebhooks).detail(format!(
            "A faithful emulator account has one endpoint in the format whatsapp, the callback of \
             its app. Change or delete the endpoint {existing}."
        ))
    }

    /// The file has only `length` bytes.
    pub(crate) fn range_not_satisfiable(length: u64) -> Self {
        Self { extra: Extra::Length(length), ..Self::of(ProblemKind::RangeNotThere) }
    }

    /// The document about an endpoint is invalid.
    pub(crate) fn invalid_webhook(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidWebhook, violations)
    }

    /// The document about a token is invalid.
    pub(crate) fn invalid_token_document(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidTokenDocument, violations)
    }

    /// A document about the emulator is invalid.
    pub(crate) fn invalid_emulator_document(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidEmulatorDocument, violations)
    }

    /// The clock of the account shows `now` and cannot be set back.
    pub(crate) fn clock_backwards(now: Timestamp) -> Self {
        Self::of(ProblemKind::ClockBackwards).detail(format!(
            "Nothing was done. The clock shows {now:.3} and never moves back. Choose a later time, or move it with `advance`."
        ))
    }

    /// Galley does not send events to the URL at `pointer`, or could not find out whether it may.
    pub(crate) fn refused_endpoint(error: &EndpointError, pointer: &str) -> Self {
        match error {
            EndpointError::Url(busy @ UrlError::NoLookupSlot) => {
                Self::of(ProblemKind::Busy).detail(busy.to_string())
            }
            error => Self::invalid_webhook(error.violation(pointer).into()),
        }
    }

    /// The document of a decision is invalid.
    pub(crate) fn invalid_decision(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidDecision, violations)
    }

    /// The values for rendering a template are invalid.
    pub(crate) fn invalid_values(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidValues, violations)
    }

    fn with_violations(kind: ProblemKind, violations: Violations) -> Self {
        let problem = Self::of(kind).detail(violations.to_string());
        Self { extra: Extra::Violations(violations), ..problem }
    }

    /// No slot for a read became free in time.
    fn too_many_reads(kind: ReadKind) -> Self {
        let reads = match kind {
            ReadKind::List => "lists",
            ReadKind::Search => "searches",
            ReadKind::Feed => "reads of the event feed",
        };
        Self::of(ProblemKind::Busy).detail(format!(
            "Nothing was done. Too many {reads} of this account run at the same time. Send fewer at a time, and try again after the time in Retry-After."
        ))
    }

    /// The tokens of the account have created or changed too much within a day.
    fn too_many_changes(retry_after: Duration) -> Self {
        let throttle = Throttle {
            policy: "recorded-changes",
            quota: MAX_DAILY_CHANGES.into(),
            window: Some(86_400),
            retry_after,
            closes: false,
        };
        let detail = format!(
            "The tokens of the account have created tokens, and registered or changed endpoints, {MAX_DAILY_CHANGES} times within 24 hours, which is the limit. Nothing was done. Send the request again after the time in Retry-After, or ask the operator to make the change."
        );
        Self::throttled(ProblemKind::TooManyRequests, throttle).detail(detail)
    }

    /// The store fails, so this instance should receive no requests: 503, never 500.
    pub(crate) fn not_ready(error: StoreError) -> Self {
        let problem = Self::from(error);
        match problem.kind.status() {
            StatusCode::SERVICE_UNAVAILABLE => problem,
            _ => Self { kind: ProblemKind::NotReady, ..problem },
        }
    }
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidTemplate, violations)
    }
}

impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        // The parser's message can contain text of the body, of any length.
        let detail: String = error.to_string().chars().take(300).collect();
        Self::of(ProblemKind::MalformedJson).detail(detail)
    }
}

/// The cause of a response whose handler has panicked.
#[derive(Debug, Error)]
#[error("the handler panicked; a line before this one says where and why")]
struct HandlerPanicked;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            // Not a failure, and logging each of them would not help under load.
            StoreError::Busy => return Self::of(ProblemKind::Busy),
            StoreError::TooManyReads(kind) => return Self::too_many_reads(kind),
            StoreError::TooManyChanges { retry_after } => {
                return Self::too_many_changes(retry_after);
            }
            StoreError::Full(_) => ProblemKind::StorageFull,
            StoreError::Unavailable(_) => ProblemKind::Unavailable,
            StoreError::OutcomeUnknown(_) => ProblemKind::OutcomeUnknown,
            StoreError::Damaged(_) => ProblemKind::DamagedData,
            StoreError::Failed(_) => ProblemKind::Internal,
        };
        Self { cause: Some(Arc::new(error)), ..Self::of(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_whose_name_was_not_resolved_for_want_of_a_slot_is_not_called_invalid() {
        let refused = |error| Problem::refused_endpoint(&EndpointError::Url(error), "/url").kind;
        assert_eq!(refused(UrlError::NoLookupSlot), ProblemKind::Busy);
        assert_eq!(refused(UrlError::NoHost), ProblemKind::InvalidWebhook);
    }
}
