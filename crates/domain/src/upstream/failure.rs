//! Why a call to a provider has no result. The codes of the provider decide, never its texts, which
//! are localised.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{bounded, items, text};
use crate::{
    document::{Document, Json},
    string_enum::string_enum,
};

string_enum!(
    /// A call to a provider.
    CallKind {
        /// Reads a page of the list of templates.
        Page "page",
        /// Reads one template.
        Read "read",
        /// Creates a template.
        Create "create",
        /// Edits a template.
        Edit "edit",
        /// Deletes a template.
        Delete "delete",
        /// Puts a template aside.
        Archive "archive",
        /// Takes a template back from the archive.
        Unarchive "unarchive",
        /// Uploads a sample.
        Upload "upload",
        /// Reads the account at the provider.
        Check "check",
    }
);

impl CallKind {
    /// Whether the call changes nothing at the provider, so that it can be repeated.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Page | Self::Read | Self::Check)
    }
}

/// An error of a provider, with bounded texts. The store keeps it as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProviderError {
    /// The code; 0 if the response contained none, or if the error is Galley's own.
    pub code: u32,
    /// The subcode.
    pub subcode: Option<u32>,
    /// The title for people.
    pub title: Option<String>,
    /// The message for people, or else for developers.
    pub message: String,
}

/// The subcode of a create whose name and language are in use.
pub const NAME_IN_USE: u32 = 2_388_024;

impl ProviderError {
    /// Whether it refuses a create, because the provider has a template with this name and language.
    pub fn is_name_in_use(&self) -> bool {
        self.subcode == Some(NAME_IN_USE)
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// No byte of the request left. The call can be repeated.
    #[error("the request was not sent: {0}")]
    NotSent(String),
    /// The call may have had its effect. A read at the provider has to tell.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
    /// A read that shows another template than the one that was asked for.
    #[error("the provider has answered with another template")]
    OtherTemplate,
    /// The budget of calls is used up. The call had no effect.
    #[error("the provider throttles calls for {} s", rest.as_secs())]
    Throttled {
        /// How long no call is made.
        rest: SignedDuration,
    },
    /// The token is not valid or lacks a permission.
    #[error("the provider does not accept the credentials: {0}")]
    Credentials(ProviderError),
    /// The token may not make this call, and can read the account. The provider does not tell that
    /// from [`Credentials`](Self::Credentials): Galley reads the account to learn it.
    #[error("the provider does not allow the call with these credentials: {0}")]
    Forbidden(ProviderError),
    /// The provider has restricted the account.
    #[error("the provider has restricted the account: {0}")]
    Restricted(ProviderError),
    /// A template with the same name and language exists.
    #[error("the template exists at the provider: {0}")]
    Exists(ProviderError),
    /// The name of a deleted template is still locked.
    #[error("the name is locked at the provider: {0}")]
    NameLocked(ProviderError),
    /// The account has as many templates as the provider allows.
    #[error("the account has too many templates at the provider: {0}")]
    TemplateLimit(ProviderError),
    /// The quota of edits is used up, or the status does not allow an edit.
    #[error("the provider does not allow the edit now: {0}")]
    EditNotAllowed(ProviderError),
    /// The object does not exist, or the token cannot see it: read the account before believing it.
    #[error("the provider does not know the object: {0}")]
    Gone(ProviderError),
    /// The cursor has expired: start again without one.
    #[error("the cursor has expired: {0}")]
    CursorExpired(ProviderError),
    /// The page is too large: ask for fewer templates.
    #[error("the page is too large for the provider: {0}")]
    TooMuchData(ProviderError),
    /// The provider refuses the call for good.
    #[error("the provider refuses the call: {0}")]
    Refused(ProviderError),
}

/// How long no call is made after a failure because of throttling that names no duration.
pub const DEFAULT_REST: SignedDuration = SignedDuration::from_mins(5);

/// The longest rest that a provider can ask for.
pub const MAX_REST: SignedDuration = SignedDuration::from_hours(24);

/// How long no call is made after a failure that only a person ends: at most four calls an hour.
pub const PROBE_INTERVAL: SignedDuration = SignedDuration::from_mins(15);

/// The usage in percent from which calls rest.
const MAX_USAGE_PERCENT: u32 = 95;

impl CallFailure {
    /// The word for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::OtherTemplate => "other_template",
            Self::Throttled { .. } => "throttled",
            Self::Credentials(_) => "credentials",
            Self::Forbidden(_) => "forbidden",
            Self::Restricted(_) => "restricted",
            Self::Exists(_) => "exists",
            Self::NameLocked(_) => "name_locked",
            Self::TemplateLimit(_) => "template_limit",
            Self::EditNotAllowed(_) => "edit_not_allowed",
            Self::Gone(_) => "gone",
            Self::CursorExpired(_) => "cursor_expired",
            Self::TooMuchData(_) => "too_much_data",
            Self::Refused(_) => "refused",
        }
    }

    /// The error of the provider.
    pub fn error(&self) -> Option<&ProviderError> {
        match self {
            Self::NotSent(_) | Self::Unknown(_) | Self::OtherTemplate | Self::Throttled { .. } => {
                None
            }
            Self::Credentials(error)
            | Self::Forbidden(error)
            | Self::Restricted(error)
            | Self::Exists(error)
            | Self::NameLocked(error)
            | Self::TemplateLimit(error)
            | Self::EditNotAllowed(error)
            | Self::Gone(error)
            | Self::CursorExpired(error)
            | Self::TooMuchData(error)
            | Self::Refused(error) => Some(error),
        }
    }

    /// The error for people: that of the provider, or the failure itself with the code 0. Its texts
    /// contain no secret: those of a provider lose them when they are read, and the others are about
    /// addresses, times and states of responses.
    pub fn to_error(&self) -> ProviderError {
        self.error().cloned().unwrap_or_else(|| ProviderError {
            code: 0,
            subcode: None,
            title: None,
            message: bounded(&self.to_string()),
        })
    }

    /// How long the whole connection makes no call after this failure.
    pub fn rest(&self) -> Option<SignedDuration> {
        match self {
            Self::Throttled { rest } => Some(*rest),
            Self::Credentials(_) | Self::Restricted(_) => Some(PROBE_INTERVAL),
            _ => None,
        }
    }
}

impl ProviderError {
    /// The code of a token that has expired, was revoked or is not one.
    const INVALID_TOKEN: u32 = 190;

    /// Whether the token itself is not valid, so that no call is possible with it.
    pub fn is_about_token(&self) -> bool {
        self.code == Self::INVALID_TOKEN
    }
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = (self.code != 0).then(|| match self.subcode {
            Some(subcode) => format!("{}/{subcode}", self.code),
            None => self.code.to_string(),
        });
        let title = self.title.clone();
        let prefix: Vec<String> = code.into_iter().chain(title).collect();
        if !prefix.is_empty() {
            write!(out, "{}: ", prefix.join(" "))?;
        }
        out.write_str(&self.message)
    }
}

/// The member `error` of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphErrorBody {
    /// Codes and texts.
    pub error: ProviderError,
    /// Whether the same request can succeed later.
    pub is_transient: bool,
}

impl GraphErrorBody {
    /// Reads the body of a response; `None` if it contains no error of the Graph API. Its texts lose
    /// the `secrets`: providers quote a token that they do not accept.
    pub fn read(body: &[u8], secrets: &[&str]) -> Option<Self> {
        let document = Document::parse(body).ok()?;
        let error = document.root().get("error")?;
        let number = |key| error.get(key).and_then(Json::as_i64);
        let text = |key| {
            let text = text(error, key).filter(|text| !text.trim().is_empty())?;
            Some(bounded(&redacted(text, secrets)))
        };
        let message = text("error_user_msg").or_else(|| text("message"));
        Some(Self {
            error: ProviderError {
                code: u32::try_from(number("code")?).ok()?,
                subcode: number("error_subcode").and_then(|it| u32::try_from(it).ok()),
                title: text("error_user_title"),
                message: message.unwrap_or_default(),
            },
            is_transient: matches!(error.get("is_transient"), Some(Json::Bool(true))),
        })
    }
}

/// How much of the hourly budget of calls is used, as a header of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The largest of the percentages.
    pub percent: u32,
    /// The time until the budget is available again.
    pub regain: Option<SignedDuration>,
}

impl Usage {
    /// Reads the header `X-Business-Use-Case-Usage` for an account at the provider.
    pub fn read(header: &str, waba: &str) -> Option<Self> {
        let document = Document::parse(header.as_bytes()).ok()?;
        let usages = items(document.root(), waba).iter().filter_map(Self::of);
        usages.reduce(Self::or_more)
    }

    /// Reads the header `X-App-Usage`.
    pub fn read_app(header: &str) -> Option<Self> {
        Self::of(Document::parse(header.as_bytes()).ok()?.root())
    }

    fn of(usage: &Json<'_>) -> Option<Self> {
        let number = |key: &str| usage.get(key).and_then(Json::as_i64);
        let percents = ["call_count", "total_cputime", "total_time"].map(number);
        let percent = percents.into_iter().flatten().max()?;
        let minutes = number("estimated_time_to_regain_access").filter(|minutes| *minutes > 0);
        let regain = minutes.map(|it| SignedDuration::from_mins(it.min(MAX_REST.as_mins())));
        Some(Self { percent: u32::try_from(percent).unwrap_or_default(), regain })
    }

    /// The larger of both percentages and times.
    #[must_use]
    pub fn or_more(self, other: Self) -> Self {
        let regain = self.regain.max(other.regain);
        Self { percent: self.percent.max(other.percent), regain }
    }

    /// How long no call is made: `None` as long as the budget suffices.
    pub fn rest(self) -> Option<SignedDuration> {
        let is_used_up = self.percent >= MAX_USAGE_PERCENT;
        is_used_up.then(|| self.regain.unwrap_or(DEFAULT_REST))
    }
}

/// The error of a provider that gives nothing but a reason, without the `secrets`.
pub fn refused_for(reason: &str, secrets: &[&str]) -> CallFailure {
    let message = bounded(&redacted(reason, secrets));
    CallFailure::Refused(ProviderError { code: 0, subcode: None, title: None, message })
}

fn redacted(text: &str, secrets: &[&str]) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(*secret, "[redacted]"))
}

/// What a response without a result means. Codes take precedence over the status.
pub fn classify(
    call: CallKind,
    status: u16,
    error: Option<GraphErrorBody>,
    usage: Option<Usage>,
) -> CallFailure {
    let failure = match error {
        Some(error) => classify_error(call, status, error, usage),
        None => classify_status(status, usage),
    };
    match (failure, usage.and_then(Usage::rest)) {
        // A read can be repeated, whatever happened to it.
        (CallFailure::Unknown(_), Some(rest)) if call.is_read() => CallFailure::Throttled { rest },
        (failure, _) => failure,
    }
}

fn classify_error(
    call: CallKind,
    status: u16,
    body: GraphErrorBody,
    usage: Option<Usage>,
) -> CallFailure {
    let GraphErrorBody { error, is_transient } = body;
    match (error.code, error.subcode) {
        (4 | 17 | 613 | 80_007 | 80_008 | 80_012, _) => throttled(usage),
        // The account may not create such templates; the token is valid.
        (10, Some(2_388_185)) => CallFailure::Refused(error),
        (0 | 3 | 10 | 190 | 200..=299, _) => CallFailure::Credentials(error),
        (368 | 131_031 | 139_000, _) => CallFailure::Restricted(error),
        (100, Some(33)) | (803, _) => CallFailure::Gone(error),
        (131_059, _) => CallFailure::CursorExpired(error),
        (_, Some(NAME_IN_USE)) => CallFailure::Exists(error),
        (_, Some(2_388_023 | 2_388_025)) => CallFailure::NameLocked(error),
        (_, Some(2_388_019)) => CallFailure::TemplateLimit(error),
        (_, Some(2_388_039 | 2_388_124)) => CallFailure::EditNotAllowed(error),
        (1, _) if call == CallKind::Page => CallFailure::TooMuchData(error),
        (1 | 2, _) => CallFailure::Unknown(error.to_string()),
        _ if is_transient || status >= 500 => CallFailure::Unknown(error.to_string()),
        _ if status == 429 => throttled(usage),
        _ => CallFailure::Refused(error),
    }
}

/// A response without an error of the Graph API, such as the page of a proxy.
fn classify_status(status: u16, usage: Option<Usage>) -> CallFailure {
    let error = || ProviderError {
        code: 0,
        subcode: None,
        title: None,
        message: format!("the response has the status {status} and no error of the Graph API"),
    };
    match status {
        401 | 403 => CallFailure::Credentials(error()),
        404 => CallFailure::Gone(error()),
        429 => throttled(usage),
        400..=499 if status != 408 => CallFailure::Refused(error()),
        _ => CallFailure::Unknown(error().message),
    }
}

fn throttled(usage: Option<Usage>) -> CallFailure {
    CallFailure::Throttled { rest: usage.and_then(|it| it.regain).unwrap_or(DEFAULT_REST) }
}

#[cfg(test)]
mod tests;
