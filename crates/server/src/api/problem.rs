//! Error responses in the format of RFC 9457: the catalogue of problems and the `Problem` type.

use std::{error::Error, sync::Arc};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{
    document::JsonError,
    id::TemplateId,
    rulebook::{Category, graph_codes::GraphError},
    template::lifecycle::InvalidTransition,
    violation::{Violation, Violations},
};
use galley_store::{Limit, StoreError};
use jiff::Timestamp;
use serde::Serialize;

use super::conditional::etag;

/// Declares the catalogue: a new kind of problem is one new row, here and nowhere else.
macro_rules! catalogue {
    ($($kind:ident $status:ident $slug:literal $title:literal $remedy:literal;)+) => {
        /// The kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ProblemKind {
            $($kind,)+
        }

        impl ProblemKind {
            pub(crate) const ALL: &[ProblemKind] = &[$(ProblemKind::$kind),+];

            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $(ProblemKind::$kind => StatusCode::$status,)+
                }
            }

            /// The last segment of `type`, and the name of its page.
            pub(crate) fn slug(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $slug,)+
                }
            }

            pub(crate) fn title(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $title,)+
                }
            }

            /// How to fix it; also the detail of a problem that has no other.
            pub(crate) fn remedy(self) -> &'static str {
                match self {
                    $(ProblemKind::$kind => $remedy,)+
                }
            }
        }
    };
}

catalogue! {
    NotFound NOT_FOUND "not-found" "Not found"
        "Check the path. Phone number id and API key consist of 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -";
    MethodNotAllowed METHOD_NOT_ALLOWED "method-not-allowed" "Method not allowed"
        "Use one of the methods in the Allow header.";
    TokenMissing UNAUTHORIZED "token-missing" "The access token is missing"
        "Send the header `Authorization: Bearer <access token>`.";
    TokenUnknown UNAUTHORIZED "token-unknown" "The access token does not exist"
        "Check the token. `galley token create` creates a new one.";
    TokenExpired UNAUTHORIZED "token-expired" "The access token has expired"
        "Use a newer token. `galley token create` creates one.";
    TokenRevoked UNAUTHORIZED "token-revoked" "The access token was revoked"
        "Use another token. `galley token create` creates one.";
    KeyUnknown UNAUTHORIZED "key-unknown" "The API key in the path does not exist"
        "Check the key. `galley key create` creates a new one.";
    KeyExpired UNAUTHORIZED "key-expired" "The API key in the path has expired"
        "Use a newer key. `galley key create` creates one.";
    KeyRevoked UNAUTHORIZED "key-revoked" "The API key in the path was revoked"
        "Use another key. `galley key create` creates one.";
    CredentialsMismatch FORBIDDEN "credentials-mismatch" "API key and access token belong to different accounts"
        "Use an API key and an access token of the same account.";
    PhoneUnknown NOT_FOUND "phone-unknown" "The phone number does not belong to this account"
        "Check the phone number id. `galley phone add` adds one to an account.";
    ScopeMissing FORBIDDEN "scope-missing" "The access token lacks the required scope"
        "Use a token with the scope that the detail names. `galley token create --scopes` creates one.";
    AccountDisabled FORBIDDEN "account-disabled" "The account is disabled"
        "Contact the operator of this service. `galley account enable` enables the account again.";
    UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "The body must be JSON in UTF-8"
        "Send `Content-Type: application/json` and no Content-Encoding.";
    TooLarge PAYLOAD_TOO_LARGE "too-large" "The request body is too large"
        "Send a smaller document.";
    BodyTimeout REQUEST_TIMEOUT "body-timeout" "The request body arrived too slowly"
        "Send the whole body without delay.";
    MalformedJson BAD_REQUEST "malformed-json" "The body is not valid JSON"
        "Fix the JSON at the position that the detail names.";
    BadRequest BAD_REQUEST "bad-request" "A header or parameter is invalid"
        "Fix the header or parameter that the detail names.";
    RangeNotThere RANGE_NOT_SATISFIABLE "range-not-there" "The file does not have the requested bytes"
        "Request other bytes. Content-Range gives the length of the file.";
    InvalidTemplate UNPROCESSABLE_ENTITY "invalid-template" "The template is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    IdempotencyKeyReused UNPROCESSABLE_ENTITY "idempotency-key-reused" "The Idempotency-Key belongs to another request"
        "Use a new key for a new request. To repeat a request, send exactly the same bytes.";
    WrongSurface CONFLICT "wrong-surface" "The account uses another API surface"
        "Nothing was done. Accounts with the rulebook `whatsapp` create and edit templates under `/{version}/`, with the calls of WhatsApp's Graph API. Accounts with the rulebook `v1` use API v1.0.";
    NameTaken CONFLICT "name-taken" "The name is already in use"
        "Choose another name. If `existing_id` is present, the template belongs to your own account.";
    TemplateUnknown NOT_FOUND "template-unknown" "The template does not exist"
        "Check the id. The account of this API key and token has no template with it.";
    VersionUnknown NOT_FOUND "version-unknown" "The template has no such version"
        "Check the number. The list of versions shows all of them.";
    InvalidDecision UNPROCESSABLE_ENTITY "invalid-decision" "The decision is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    InvalidValues UNPROCESSABLE_ENTITY "invalid-values" "The values do not fit the template"
        "Fix every value listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    RevisionOutdated PRECONDITION_FAILED "revision-outdated" "Precondition failed: the revision has changed"
        "Nothing was done. Read the template again, check whether the change still makes sense, and send its new ETag as If-Match.";
    CategoryLocked CONFLICT "category-locked" "The category is fixed"
        "Nothing was done. Omit `category` from an edit. Create a template with the category that the other languages of its name have.";
    MoveNotPossible CONFLICT "move-not-possible" "The status of the template does not allow this"
        "Nothing was done. `possible` lists the allowed actions.";
    LimitReached TOO_MANY_REQUESTS "limit-reached" "The account has reached a limit"
        "Nothing was done. Wait, delete what you do not need, or ask the operator to raise the limit.";
    NotLive CONFLICT "not-live" "The template has no live version"
        "Wait until a version is approved, or until the hold ends.";
    EventsForgotten GONE "events-forgotten" "Some of these events are no longer stored"
        "Galley has deleted the events before `oldest`. Read the templates again, then follow the events with `after` set to `oldest` minus 1, or without `after`.";
    EventUnknown NOT_FOUND "event-unknown" "The event does not exist"
        "Check the number. `events` lists the events of the account.";
    WebhookUnknown NOT_FOUND "webhook-unknown" "The endpoint does not exist"
        "Check the id. The account of this API key and token has no endpoint with it.";
    InvalidWebhook UNPROCESSABLE_ENTITY "invalid-webhook" "The document about the endpoint is invalid"
        "Fix everything listed in `violations`. Each entry says what is wrong, where, and how to fix it.";
    TooManyWebhooks CONFLICT "too-many-webhooks" "The account has the maximum number of endpoints"
        "Nothing was done. Delete an endpoint that you no longer need, or change its URL.";
    RotationOpen CONFLICT "rotation-open" "The previous rotation has not ended"
        "Nothing was done. Both secrets are valid until `until`. Wait until then, or send `force` if no receiver uses the oldest secret any more.";
    Busy SERVICE_UNAVAILABLE "busy" "Too many writes are queued"
        "Nothing was done. Try again after the time in Retry-After.";
    StorageFull SERVICE_UNAVAILABLE "storage-full" "The storage is full"
        "Nothing was done. The operator has to free space; after that, writes work again.";
    Unavailable SERVICE_UNAVAILABLE "unavailable" "The database is unavailable"
        "Nothing was done. Try again after the time in Retry-After.";
    OutcomeUnknown SERVICE_UNAVAILABLE "outcome-unknown" "The outcome of the request is unknown"
        "Send the request again with the same Idempotency-Key or the same If-Match. It takes effect at most once.";
    Deadline SERVICE_UNAVAILABLE "deadline" "The request took too long"
        "It may still complete. Send it again with the same Idempotency-Key or the same If-Match. It takes effect at most once.";
    NotReady SERVICE_UNAVAILABLE "not-ready" "This instance does not accept requests"
        "Send requests to another instance, or wait.";
    DamagedData INTERNAL_SERVER_ERROR "damaged-data" "Stored data is damaged"
        "Galley shows no data that differs from what was stored. Report the request_id to the operator, who has to restore a backup; the log names the damaged row.";
    Internal INTERNAL_SERVER_ERROR "internal" "Internal server error"
        "Report the request_id to the operator. The log contains the cause.";
}

/// An error response: what the client sees, and the cause, which only the log contains.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: Option<String>,
    extra: Extra,
    cause: Option<Arc<dyn Error + Send + Sync>>,
    /// The code on the Graph surface, if it does not follow from the kind.
    graph: Option<GraphError>,
}

/// Additional data of some kinds.
#[derive(Clone, Debug)]
enum Extra {
    None,
    /// The template of the caller's own account that has the name.
    Existing(TemplateId),
    Violations(Violations),
    /// The allowed actions.
    Possible(Vec<&'static str>),
    /// The current revision of the template, sent as `ETag`.
    Revision(u64),
    /// The oldest stored event.
    Oldest(u64),
    /// The end of the rotation.
    Until(Timestamp),
    /// The length of the file in bytes, sent as `Content-Range`.
    Length(u64),
}

impl Problem {
    pub(crate) fn of(kind: ProblemKind) -> Self {
        Self { kind, detail: None, extra: Extra::None, cause: None, graph: None }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Another template has the name. `existing` is that template if it belongs to the caller.
    pub(crate) fn name_taken(existing: Option<TemplateId>) -> Self {
        let extra = existing.map_or(Extra::None, Extra::Existing);
        Self { extra, ..Self::of(ProblemKind::NameTaken) }
    }

    /// The id of the caller's template that has the name.
    pub(crate) fn existing(&self) -> Option<String> {
        match &self.extra {
            Extra::Existing(id) => Some(id.to_string()),
            _ => None,
        }
    }

    /// The allowed actions.
    pub(crate) fn possible(&self) -> Option<&[&'static str]> {
        match &self.extra {
            Extra::Possible(actions) => Some(actions),
            _ => None,
        }
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
        Self::of(ProblemKind::LimitReached).detail(detail)
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

    /// The file has only `length` bytes.
    pub(crate) fn range_not_satisfiable(length: u64) -> Self {
        Self { extra: Extra::Length(length), ..Self::of(ProblemKind::RangeNotThere) }
    }

    /// The document about an endpoint is invalid.
    pub(crate) fn invalid_webhook(violations: Violations) -> Self {
        Self::with_violations(ProblemKind::InvalidWebhook, violations)
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

    /// The store fails, so this instance should receive no requests: 503, never 500.
    pub(crate) fn not_ready(error: StoreError) -> Self {
        let problem = Self::from(error);
        match problem.kind.status() {
            StatusCode::SERVICE_UNAVAILABLE => problem,
            _ => Self { kind: ProblemKind::NotReady, ..problem },
        }
    }

    /// Sets the code on the Graph surface.
    pub(crate) fn graph(mut self, graph: GraphError) -> Self {
        self.graph = Some(graph);
        self
    }

    pub(crate) fn graph_code(&self) -> Option<GraphError> {
        self.graph
    }

    pub(crate) fn kind(&self) -> ProblemKind {
        self.kind
    }

    pub(crate) fn slug(&self) -> &'static str {
        self.kind.slug()
    }

    /// The detail, or the remedy of the kind if there is none.
    pub(crate) fn detail_text(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.kind.remedy())
    }

    /// The violations of the document.
    pub(crate) fn violations(&self) -> Option<&Violations> {
        match &self.extra {
            Extra::Violations(violations) => Some(violations),
            _ => None,
        }
    }

    /// The cause with its sources, for the log.
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
            Extra::None | Extra::Revision(_) | Extra::Length(_) => {}
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

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            // Not a failure, and logging each of them would not help under load.
            StoreError::Busy => return Self::of(ProblemKind::Busy),
            StoreError::Full(_) => ProblemKind::StorageFull,
            StoreError::Unavailable(_) => ProblemKind::Unavailable,
            StoreError::OutcomeUnknown(_) => ProblemKind::OutcomeUnknown,
            StoreError::Damaged(_) => ProblemKind::DamagedData,
            StoreError::Failed(_) => ProblemKind::Internal,
        };
        Self { cause: Some(Arc::new(error)), ..Self::of(kind) }
    }
}

impl IntoResponse for Problem {
    /// `Galley::handle` writes the body, because it knows the id of the request.
    fn into_response(self) -> Response {
        const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
        let status = self.kind.status();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM)]).into_response();
        let extra: Option<(HeaderName, &str)> = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            // The client has not sent the whole body, so the connection cannot be reused.
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
