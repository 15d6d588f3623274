//! Refusals, as RFC 9457: the catalogue, and the one type that has a status code.

use std::{error::Error, sync::Arc};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{
    document::JsonError,
    id::TemplateId,
    rulebook::{Category, graph_codes::Graph},
    template::lifecycle::InvalidTransition,
    violation::{Violation, Violations},
};
use galley_store::{Limit, StoreError};
use jiff::Timestamp;
use serde::Serialize;

use super::conditional::etag;

/// Declares the catalogue: a new kind of failure is a new row here and nowhere else.
macro_rules! catalogue {
    ($($kind:ident $status:ident $slug:literal $title:literal $cure:literal;)+) => {
        /// What can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)+
        }

        impl Kind {
            pub(crate) const ALL: &[Kind] = &[$(Kind::$kind),+];

            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $(Kind::$kind => StatusCode::$status,)+
                }
            }

            /// The last part of `type`, and the name of the page about it.
            pub(crate) fn slug(self) -> &'static str {
                match self {
                    $(Kind::$kind => $slug,)+
                }
            }

            pub(crate) fn title(self) -> &'static str {
                match self {
                    $(Kind::$kind => $title,)+
                }
            }

            /// What the caller can do about it; also the detail when there is no better one.
            pub(crate) fn cure(self) -> &'static str {
                match self {
                    $(Kind::$kind => $cure,)+
                }
            }
        }
    };
}

catalogue! {
    NotFound NOT_FOUND "not-found" "There is nothing here"
        "Check the path. Phone number id and key hold 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -";
    MethodNotAllowed METHOD_NOT_ALLOWED "method-not-allowed" "This path does not take that method"
        "Use one of the methods that the Allow header lists.";
    TokenMissing UNAUTHORIZED "token-missing" "An access token is needed"
        "Send the header `Authorization: Bearer <access token>`.";
    TokenUnknown UNAUTHORIZED "token-unknown" "The access token is not known"
        "Check the token; `galley token create` makes a new one.";
    TokenExpired UNAUTHORIZED "token-expired" "The access token has expired"
        "Use a newer token; `galley token create` makes one.";
    TokenRevoked UNAUTHORIZED "token-revoked" "The access token was revoked"
        "Use another token; `galley token create` makes one.";
    KeyUnknown UNAUTHORIZED "key-unknown" "The API key in the path is not known"
        "Check the key; `galley key create` makes a new one.";
    KeyExpired UNAUTHORIZED "key-expired" "The API key in the path has expired"
        "Use a newer key; `galley key create` makes one.";
    KeyRevoked UNAUTHORIZED "key-revoked" "The API key in the path was revoked"
        "Use another key; `galley key create` makes one.";
    CredentialsMismatch FORBIDDEN "credentials-mismatch" "Key and token belong to different accounts"
        "Use a key and a token of the same account.";
    PhoneUnknown NOT_FOUND "phone-unknown" "The phone number is not this account's"
        "Check the phone number id; `galley phone add` gives one to an account.";
    ScopeMissing FORBIDDEN "scope-missing" "The access token may not do this"
        "Use a token that has the scope named in the detail; `galley token create --scopes` makes one.";
    AccountDisabled FORBIDDEN "account-disabled" "The account is disabled"
        "Ask the operator of this service; `galley account enable` lets it in again.";
    UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "The body has to be JSON in UTF-8"
        "Send `Content-Type: application/json` and no content encoding.";
    TooLarge PAYLOAD_TOO_LARGE "too-large" "The request body is too large"
        "Make the document smaller.";
    BodyTimeout REQUEST_TIMEOUT "body-timeout" "The request body came too slowly"
        "Send the whole body at once.";
    MalformedJson BAD_REQUEST "malformed-json" "The body is not JSON"
        "Mend the JSON at the place named in the detail.";
    BadRequest BAD_REQUEST "bad-request" "A header or parameter makes no sense"
        "Mend what the detail names.";
    RangeNotThere RANGE_NOT_SATISFIABLE "range-not-there" "The file has no such bytes"
        "Ask for bytes that it has: Content-Range tells how many there are.";
    InvalidTemplate UNPROCESSABLE_ENTITY "invalid-template" "The template breaks some rules"
        "Mend every place listed in `violations`; each says what is wrong and how to mend it.";
    IdempotencyKeyReused UNPROCESSABLE_ENTITY "idempotency-key-reused" "The Idempotency-Key was used for another request"
        "Use a new key for a new request; repeat the same bytes to repeat a request.";
    WrongSurface CONFLICT "wrong-surface" "Accounts with this rulebook use another surface"
        "Nothing was done. Accounts with the `whatsapp` rulebook create and edit at `/{version}/`, where clients of WhatsApp's Graph API work; those with `v1` use API v1.0.";
    NameTaken CONFLICT "name-taken" "Another template has that name"
        "Choose another name. If `existing_id` is there, the template is your own.";
    TemplateUnknown NOT_FOUND "template-unknown" "There is no such template"
        "Check the id; the account of the key and token has no template with it.";
    VersionUnknown NOT_FOUND "version-unknown" "The template has no such version"
        "Check the number; the list of versions shows them all.";
    InvalidDecision UNPROCESSABLE_ENTITY "invalid-decision" "The decision breaks some rules"
        "Mend every place listed in `violations`; each says what is wrong and how to mend it.";
    InvalidValues UNPROCESSABLE_ENTITY "invalid-values" "The values do not fit the template"
        "Mend every value listed in `violations`; each says what is wrong and how to mend it.";
    RevisionOutdated PRECONDITION_FAILED "revision-outdated" "What If-Match names is not what is there"
        "Nothing was done. Read the template again, look whether the change still makes sense, and send its new ETag as If-Match.";
    CategoryLocked CONFLICT "category-locked" "The category may not be another one"
        "Nothing was done. Leave `category` out of an edit; create the template with the category that the other languages of its name have.";
    MoveNotPossible CONFLICT "move-not-possible" "The template cannot do this from where it stands"
        "Nothing was done. `possible` lists what can happen to it now.";
    LimitReached TOO_MANY_REQUESTS "limit-reached" "The account has reached a limit"
        "Nothing was done. Wait until it counts less, or ask the operator for other limits.";
    NotLive CONFLICT "not-live" "No version of the template may be sent"
        "Wait until a version is approved, or until the hold ends.";
    EventsForgotten GONE "events-forgotten" "Some of these events are not kept any more"
        "What came before `oldest` is gone. Read the templates anew, then follow the events with `after` one below `oldest`, or without `after`.";
    EventUnknown NOT_FOUND "event-unknown" "There is no such event"
        "Check the number; the account's events are listed at `events`.";
    WebhookUnknown NOT_FOUND "webhook-unknown" "There is no such endpoint"
        "Check the id; the account of the key and token has no endpoint with it.";
    InvalidWebhook UNPROCESSABLE_ENTITY "invalid-webhook" "What is said about the endpoint breaks some rules"
        "Mend every place listed in `violations`; each says what is wrong and how to mend it.";
    TooManyWebhooks CONFLICT "too-many-webhooks" "The account has as many endpoints as it may have"
        "Nothing was done. Delete an endpoint that is not needed any more, or change its address.";
    RotationOpen CONFLICT "rotation-open" "The rotation before has not ended"
        "Nothing was done. Both secrets sign until `until`: wait for that, or send `force` if the oldest one is in nobody's use.";
    Busy SERVICE_UNAVAILABLE "busy" "Too much is waiting to be written"
        "Nothing was done. Try again after the time in Retry-After.";
    StorageFull SERVICE_UNAVAILABLE "storage-full" "The storage of the service is full"
        "Nothing was done. The operator has to make room; writing goes on by itself then.";
    Unavailable SERVICE_UNAVAILABLE "unavailable" "The service cannot reach its data right now"
        "Nothing was done. Try again after the time in Retry-After.";
    OutcomeUnknown SERVICE_UNAVAILABLE "outcome-unknown" "It is not known whether this was done"
        "Send it again with the same Idempotency-Key or the same If-Match: it is done once at most.";
    Deadline SERVICE_UNAVAILABLE "deadline" "The request took too long"
        "It may still be done. Send it again with the same Idempotency-Key or the same If-Match: it is done once at most.";
    NotReady SERVICE_UNAVAILABLE "not-ready" "This instance is not taking requests"
        "Send requests to another instance, or wait.";
    Internal INTERNAL_SERVER_ERROR "internal" "The fault is ours"
        "Tell the operator the request_id: the log says more.";
}

/// A refusal: what the caller is told, and the cause that only the log sees.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: Option<String>,
    extra: Extra,
    cause: Option<Arc<dyn Error + Send + Sync>>,
    /// The code on the Graph surface, where the kind alone does not tell it.
    graph: Option<Graph>,
}

/// What some kinds tell beside the sentence.
#[derive(Clone, Debug)]
enum Extra {
    Nothing,
    /// The caller's own template that has the name.
    Existing(TemplateId),
    Violations(Violations),
    /// The moves that are possible.
    Possible(Vec<&'static str>),
    /// Where the template is now; told as its tag.
    Revision(u64),
    /// The oldest event that is kept.
    Oldest(u64),
    /// When the rotation ends.
    Until(Timestamp),
    /// How many bytes the file has; told in a header.
    Length(u64),
}

impl Problem {
    pub(crate) fn of(kind: Kind) -> Self {
        Self { kind, detail: None, extra: Extra::Nothing, cause: None, graph: None }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The name of the template is taken; told by which one when it is the caller's own.
    pub(crate) fn name_taken(existing: Option<TemplateId>) -> Self {
        let extra = existing.map_or(Extra::Nothing, Extra::Existing);
        Self { extra, ..Self::of(Kind::NameTaken) }
    }

    /// The caller's own template that has the name.
    pub(crate) fn existing(&self) -> Option<String> {
        match &self.extra {
            Extra::Existing(id) => Some(id.to_string()),
            _ => None,
        }
    }

    /// The moves that are possible instead.
    pub(crate) fn possible(&self) -> Option<&[&'static str]> {
        match &self.extra {
            Extra::Possible(moves) => Some(moves),
            _ => None,
        }
    }

    /// The template was made with a category that stays.
    pub(crate) fn category_locked(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!(
            "The category is {category}, and `allow_category_change` is false: leave `category` out, or create another template."
        );
        Self::of(Kind::CategoryLocked).detail(detail)
    }

    /// Other languages of the name have this category.
    pub(crate) fn family_category(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!("The other languages of this name are {category}: so is this one.");
        Self::of(Kind::CategoryLocked).detail(detail)
    }

    /// A version of the template is live in this category, which therefore stays.
    pub(crate) fn live_category(category: Category) -> Self {
        let category = category.as_str();
        let detail = format!(
            "The template is live as {category}, and the category of a live template stays: leave `category` out, or create another template."
        );
        Self::of(Kind::CategoryLocked).detail(detail)
    }

    /// The account is held to limits, and this is the one it has reached.
    pub(crate) fn limited(limit: Limit) -> Self {
        let detail = match limit {
            Limit::CreationsPerHour => "The account has made all the templates that an hour takes.",
            Limit::Templates => "The account has as many templates as it may have.",
            Limit::EditsPerDay => "An approved template can be edited once in 24 hours.",
            Limit::EditsPerMonth => "An approved template can be edited ten times in 30 days.",
        };
        Self::of(Kind::LimitReached).detail(detail)
    }

    /// The template is at another revision than the caller knows.
    pub(crate) fn outdated(revision: u64) -> Self {
        Self { extra: Extra::Revision(revision), ..Self::of(Kind::RevisionOutdated) }
    }

    /// The table of moves has no such move; told which ones it has.
    pub(crate) fn not_possible(trigger: &str, refusal: &InvalidTransition) -> Self {
        let possible: Vec<&'static str> = refusal.possible.iter().map(|it| it.as_str()).collect();
        let detail = format!(
            "The template is {}: `{trigger}` is not possible now, only {}.",
            refusal.status.as_str(),
            possible.join(", ")
        );
        let problem = Self::of(Kind::MoveNotPossible).detail(detail);
        Self { extra: Extra::Possible(possible), ..problem }
    }

    /// Events that were asked for are gone; told which is the oldest that is left.
    pub(crate) fn forgotten(oldest: u64) -> Self {
        let position = oldest.saturating_sub(1);
        let detail = format!(
            "The oldest event that is kept is {oldest}. Whoever follows the events reads the templates anew and goes on with `after={position}`."
        );
        let problem = Self::of(Kind::EventsForgotten).detail(detail);
        Self { extra: Extra::Oldest(oldest), ..problem }
    }

    /// The secret before the last one still counts; told until when.
    pub(crate) fn rotation_open(until: Timestamp) -> Self {
        Self { extra: Extra::Until(until), ..Self::of(Kind::RotationOpen) }
    }

    /// Bytes that a file does not have; told how many it has.
    pub(crate) fn no_such_bytes(length: u64) -> Self {
        Self { extra: Extra::Length(length), ..Self::of(Kind::RangeNotThere) }
    }

    /// A document about an endpoint is at fault.
    pub(crate) fn invalid_webhook(violations: Violations) -> Self {
        Self::violated(Kind::InvalidWebhook, violations)
    }

    /// The document of a decision is at fault.
    pub(crate) fn invalid_decision(violations: Violations) -> Self {
        Self::violated(Kind::InvalidDecision, violations)
    }

    /// Values that a template was to be rendered with are at fault.
    pub(crate) fn invalid_values(violations: Violations) -> Self {
        Self::violated(Kind::InvalidValues, violations)
    }

    fn violated(kind: Kind, violations: Violations) -> Self {
        let problem = Self::of(kind).detail(violations.to_string());
        Self { extra: Extra::Violations(violations), ..problem }
    }

    /// With this code on the Graph surface.
    pub(crate) fn graph(mut self, graph: Graph) -> Self {
        self.graph = Some(graph);
        self
    }

    pub(crate) fn graph_code(&self) -> Option<Graph> {
        self.graph
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn slug(&self) -> &'static str {
        self.kind.slug()
    }

    /// The sentence for the caller.
    pub(crate) fn detail_text(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.kind.cure())
    }

    /// Everything that is wrong with the caller's document.
    pub(crate) fn violations(&self) -> Option<&Violations> {
        match &self.extra {
            Extra::Violations(violations) => Some(violations),
            _ => None,
        }
    }

    /// The cause and what is behind it, for the log.
    pub(crate) fn cause_chain(&self) -> Option<String> {
        let mut cause: &dyn Error = self.cause.as_deref()?;
        let mut chain = cause.to_string();
        while let Some(source) = cause.source() {
            chain.push_str(": ");
            chain.push_str(&source.to_string());
            cause = source;
        }
        Some(chain)
    }

    /// The JSON that the caller reads.
    pub(crate) fn document(self, request_id: &str) -> String {
        let Self { kind, detail, extra, .. } = self;
        let mut document = Document {
            r#type: format!("/problems/{}", kind.slug()),
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: detail.as_deref().unwrap_or(kind.cure()),
            request_id,
            existing_id: None,
            violations: None,
            more: None,
            possible: None,
            oldest: None,
            until: None,
        };
        match &extra {
            Extra::Nothing | Extra::Revision(_) | Extra::Length(_) => {}
            Extra::Existing(id) => document.existing_id = Some(id.to_string()),
            Extra::Violations(violations) => {
                document.violations = Some(violations.listed());
                document.more = Some(violations.omitted()).filter(|more| *more > 0);
            }
            Extra::Possible(possible) => document.possible = Some(possible),
            Extra::Oldest(oldest) => document.oldest = Some(*oldest),
            Extra::Until(until) => document.until = Some(until.to_string()),
        }
        serde_json::to_string(&document).unwrap_or_default()
    }
}

/// The members in the order that a person reads them.
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

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::violated(Kind::InvalidTemplate, violations)
    }
}

impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        // The parser's words can repeat the caller's, at any length.
        let detail: String = error.to_string().chars().take(300).collect();
        Self::of(Kind::MalformedJson).detail(detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            // Nothing is wrong, and a line in the log for each would not help under load.
            StoreError::Busy => return Self::of(Kind::Busy),
            StoreError::Full(_) => Kind::StorageFull,
            StoreError::Unavailable(_) => Kind::Unavailable,
            StoreError::OutcomeUnknown(_) => Kind::OutcomeUnknown,
            StoreError::Failed(_) => Kind::Internal,
        };
        Self { cause: Some(Arc::new(error)), ..Self::of(kind) }
    }
}

impl IntoResponse for Problem {
    /// The body is written at the edge, where the request's id is known.
    fn into_response(self) -> Response {
        const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
        let status = self.kind.status();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM)]).into_response();
        let extra: Option<(HeaderName, &str)> = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            // Whoever sends so slowly has not finished: the connection is of no more use.
            StatusCode::REQUEST_TIMEOUT => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Extra::Revision(revision) = self.extra {
            response.headers_mut().insert(header::ETAG, etag(revision));
        }
        if let Extra::Length(length) = self.extra {
            let range = HeaderValue::try_from(format!("bytes */{length}"));
            response.headers_mut().extend(range.map(|it| (header::CONTENT_RANGE, it)).ok());
        }
        response.extensions_mut().insert(self);
        response
    }
}
