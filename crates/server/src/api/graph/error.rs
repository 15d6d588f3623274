//! Error responses in the format of the Graph API, with its codes and statuses. Additional members
//! contain Galley's complete list of violations; other clients ignore them.

use std::borrow::Cow;

use axum::http::StatusCode;
use galley_domain::{
    emulator::failures::{self, Failure, SEND_FAILURES},
    rulebook::graph_codes::GraphError,
    send::{Refusal, SendViolation},
    upstream::ProviderError,
    violation::{Violation, Violations},
};
use galley_store::Limit;
use serde::Serialize;

use crate::api::problem::{Problem, ProblemKind};

/// The status and the body of an error response.
pub(crate) fn error_body(problem: &Problem, request_id: &str) -> (StatusCode, String) {
    let kind = problem.kind();
    let (status, error) = if let Some(refusal) = problem.refusal() {
        refused_message(refusal, kind, request_id)
    } else if let Some(failure) = problem.failure() {
        let details = SEND_FAILURES.contains(failure).then_some(failure.message);
        provoked(failure, details, kind, request_id)
    } else if let Some(error) = problem.provider_error() {
        (status(kind), refused_by_provider(error, kind, request_id))
    } else {
        (status(kind), refused_call(problem, request_id))
    };
    (status, serde_json::to_string(&ErrorBody { error }).unwrap_or_default())
}

/// The error of any call that is not a refused message.
fn refused_call<'a>(problem: &'a Problem, request_id: &'a str) -> ErrorObject<'a> {
    let kind = problem.kind();
    let GraphError { code, subcode, title } =
        problem.graph_code().unwrap_or_else(|| code_of(problem));
    let violations = problem.violations();
    let listed = violations.map_or(&[][..], Violations::listed);
    let message = listed.first().map_or_else(|| problem.detail_text().to_owned(), sentence);
    ErrorObject {
        message: format!("(#{code}) {message}"),
        r#type: "OAuthException",
        code,
        error_subcode: subcode,
        error_user_title: title.into(),
        error_user_msg: message.into(),
        error_data: listed.first().map(ErrorData::of),
        is_transient: is_transient(kind),
        fbtrace_id: request_id,
        galley_problem: kind.slug(),
        galley_violations: violations.map(|it| GalleyViolations::Document(it.listed())),
        galley_existing_id: problem.existing(),
        galley_possible: problem.possible(),
        galley_more: violations.map(Violations::omitted).filter(|more| *more > 0),
    }
}

/// A call that the provider of a connected account has refused, with its codes and texts.
fn refused_by_provider<'a>(
    error: &'a ProviderError,
    kind: ProblemKind,
    request_id: &'a str,
) -> ErrorObject<'a> {
    let ProviderError { code, subcode, title, message } = error;
    ErrorObject {
        error_subcode: *subcode,
        error_user_title: title.as_deref().unwrap_or(kind.title()).into(),
        error_user_msg: message.into(),
        ..ErrorObject::new(*code, message, kind, request_id)
    }
}

/// A failure of Meta's API that was provoked. Its texts are those of the failure.
fn provoked<'a>(
    failure: &Failure,
    details: Option<&'a str>,
    kind: ProblemKind,
    request_id: &'a str,
) -> (StatusCode, ErrorObject<'a>) {
    let Failure { code, subcode, title, message, is_transient, .. } = *failure;
    let error = ErrorObject {
        r#type: failure.kind,
        error_subcode: subcode,
        error_user_title: title.into(),
        error_user_msg: details.unwrap_or(message).into(),
        error_data: details.map(ErrorData::of_message),
        is_transient,
        ..ErrorObject::new(code, title, kind, request_id)
    };
    (StatusCode::from_u16(failure.status).unwrap_or(StatusCode::BAD_REQUEST), error)
}

/// A message that the sandbox refuses: Meta's code of the first violation, and all of them.
fn refused_message<'a>(
    refusal: &'a Refusal,
    kind: ProblemKind,
    request_id: &'a str,
) -> (StatusCode, ErrorObject<'a>) {
    let number = refusal.code.number();
    let failure = failures::find(number).expect("every code of a refusal is in the table");
    let (status, error) = provoked(&failure, Some(&refusal.details), kind, request_id);
    let error = ErrorObject {
        galley_violations: Some(GalleyViolations::Message(&refusal.violations)),
        galley_more: Some(refusal.omitted).filter(|more| *more > 0),
        ..error
    };
    (status, error)
}

/// The Graph code of a limit that the account has reached.
fn limit_code(limit: Limit) -> GraphError {
    let (code, subcode, title) = match limit {
        Limit::CreationsPerHour => (80_008, None, "Too many templates created within an hour"),
        Limit::StoredBytes { .. } => (100, None, "The account has reached its storage quota"),
        Limit::Templates => (100, Some(2_388_019), "The account has too many templates"),
        Limit::EditsPerDay => {
            (100, Some(2_388_124), "The template was already edited in the last 24 hours")
        }
        Limit::EditsPerMonth => {
            (100, Some(2_388_039), "The template was edited too often in the last 30 days")
        }
    };
    GraphError { code, subcode, title }
}

/// The Graph code of a problem that has no violations.
fn code_of(problem: &Problem) -> GraphError {
    if let Some(limit) = problem.limit() {
        return limit_code(limit);
    }
    let kind = problem.kind();
    let (code, subcode) = match kind {
        ProblemKind::TokenMissing
        | ProblemKind::TokenUnknown
        | ProblemKind::TokenExpired
        | ProblemKind::TokenRevoked => (190, None),
        ProblemKind::TooManyFailures => (4, None),
        ProblemKind::TooManyRequests => (80_008, None),
        ProblemKind::ScopeMissing | ProblemKind::EmulatorOff => (10, None),
        ProblemKind::AccountDisabled => (131_031, None),
        ProblemKind::NotFound | ProblemKind::TemplateUnknown | ProblemKind::PhoneUnknown => {
            (100, Some(33))
        }
        ProblemKind::NameTaken => (100, Some(2_388_024)),
        ProblemKind::NameLocked => (100, Some(2_388_023)),
        ProblemKind::MoveNotPossible => (100, Some(2_388_039)),
        ProblemKind::Internal | ProblemKind::DamagedData => (1, None),
        kind if kind.status() == StatusCode::SERVICE_UNAVAILABLE => (2, None),
        _ => (100, None),
    };
    GraphError { code, subcode, title: kind.title() }
}

/// The status in the Graph API, which responds 400 to most client errors, including unknown ids.
fn status(kind: ProblemKind) -> StatusCode {
    match kind.status() {
        // The path exists, but not for this account.
        status if kind == ProblemKind::NotAnEmulator => status,
        StatusCode::NOT_FOUND
        | StatusCode::CONFLICT
        | StatusCode::GONE
        | StatusCode::PRECONDITION_FAILED
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::TOO_MANY_REQUESTS => StatusCode::BAD_REQUEST,
        status => status,
    }
}

/// Whether the same request can succeed later.
fn is_transient(kind: ProblemKind) -> bool {
    kind == ProblemKind::TooManyRequests || kind.status() == StatusCode::SERVICE_UNAVAILABLE
}

/// A violation as one sentence, for clients that show only the first.
fn sentence(violation: &Violation) -> String {
    let Violation { pointer, message, hint, .. } = violation;
    let position = if pointer.is_empty() { "The document" } else { pointer };
    match hint {
        Some(hint) if hint.ends_with(['?', '.']) => format!("{position}: {message}; {hint}"),
        Some(hint) => format!("{position}: {message}; {hint}."),
        None => format!("{position}: {message}."),
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: String,
    r#type: &'static str,
    code: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_subcode: Option<u32>,
    error_user_title: Cow<'a, str>,
    error_user_msg: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_data: Option<ErrorData<'a>>,
    is_transient: bool,
    fbtrace_id: &'a str,
    galley_problem: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_violations: Option<GalleyViolations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_existing_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_possible: Option<&'a [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_more: Option<usize>,
}

impl<'a> ErrorObject<'a> {
    /// An error without texts for people and without Galley's details.
    fn new(code: u32, message: &str, kind: ProblemKind, request_id: &'a str) -> Self {
        Self {
            message: format!("(#{code}) {message}"),
            r#type: "OAuthException",
            code,
            error_subcode: None,
            error_user_title: Cow::Borrowed(""),
            error_user_msg: Cow::Borrowed(""),
            error_data: None,
            is_transient: false,
            fbtrace_id: request_id,
            galley_problem: kind.slug(),
            galley_violations: None,
            galley_existing_id: None,
            galley_possible: None,
            galley_more: None,
        }
    }
}

/// The violations of a document or of a message.
#[derive(Serialize)]
#[serde(untagged)]
enum GalleyViolations<'a> {
    Document(&'a [Violation]),
    Message(&'a [SendViolation]),
}

/// What is wrong, for programs.
#[derive(Serialize)]
#[serde(untagged)]
enum ErrorData<'a> {
    /// The path to the invalid field of a document.
    Document { blame_field_specs: [Vec<&'a str>; 1] },
    /// The details of a refused message.
    Message { messaging_product: &'static str, details: &'a str },
}

impl<'a> ErrorData<'a> {
    fn of(violation: &'a Violation) -> Self {
        Self::Document { blame_field_specs: [violation.pointer.split('/').skip(1).collect()] }
    }

    fn of_message(details: &'a str) -> Self {
        Self::Message { messaging_product: "whatsapp", details }
    }
}
