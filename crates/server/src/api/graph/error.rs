//! Refusals in the form that clients of the Graph API read: its codes and statuses, and beside them
//! our complete list of what is wrong, which those who do not know it pass over.

use axum::http::StatusCode;
use galley_domain::{
    rulebook::graph_codes::Graph,
    violation::{Violation, Violations},
};
use galley_store::Limit;
use serde::Serialize;

use crate::api::problem::{Kind, Problem};

/// The status and the body of a refusal.
pub(crate) fn written(problem: &Problem, request_id: &str) -> (StatusCode, String) {
    let kind = problem.kind();
    let Graph { code, subcode, title } = problem.graph_code().unwrap_or_else(|| usual(kind));
    let status = status(kind);
    let violations = problem.violations();
    let told = violations.map_or(&[][..], Violations::listed);
    let about = told.first().map_or_else(|| problem.detail_text().to_owned(), sentence);
    let error = Refusal {
        message: format!("(#{code}) {about}"),
        r#type: "OAuthException",
        code,
        error_subcode: subcode,
        error_user_title: title,
        error_user_msg: &about,
        error_data: told.first().map(Blame::of),
        is_transient: status == StatusCode::SERVICE_UNAVAILABLE,
        fbtrace_id: request_id,
        galley_problem: kind.slug(),
        galley_violations: violations.map(Violations::listed),
        galley_existing_id: problem.existing(),
        galley_possible: problem.possible(),
        galley_more: violations.map(Violations::omitted).filter(|more| *more > 0),
    };
    (status, serde_json::to_string(&Answer { error }).unwrap_or_default())
}

/// A limit that the account has reached.
pub(super) fn limited(limit: Limit) -> Problem {
    let (code, subcode, title) = match limit {
        Limit::CreationsPerHour => (80_008, None, "Too many templates were made in this hour"),
        Limit::Templates => (100, Some(2_388_019), "There are as many templates as there may be"),
        Limit::EditsPerDay => {
            (100, Some(2_388_124), "The template was edited in the last 24 hours")
        }
        Limit::EditsPerMonth => (100, Some(2_388_039), "The template was edited too often"),
    };
    Problem::limited(limit).graph(Graph { code, subcode, title })
}

/// What the Graph API answers for a kind of problem that no document is to blame for.
fn usual(kind: Kind) -> Graph {
    let (code, subcode) = match kind {
        Kind::TokenMissing | Kind::TokenUnknown | Kind::TokenExpired | Kind::TokenRevoked => {
            (190, None)
        }
        Kind::ScopeMissing => (10, None),
        Kind::AccountDisabled => (131_031, None),
        Kind::NotFound | Kind::TemplateUnknown => (100, Some(33)),
        Kind::NameTaken => (100, Some(2_388_024)),
        Kind::MoveNotPossible => (100, Some(2_388_039)),
        Kind::Internal => (1, None),
        kind if kind.status() == StatusCode::SERVICE_UNAVAILABLE => (2, None),
        _ => (100, None),
    };
    Graph { code, subcode, title: kind.title() }
}

/// There, whatever is wrong with what was asked for is a bad request; unknown ids are, too.
fn status(kind: Kind) -> StatusCode {
    match kind.status() {
        StatusCode::NOT_FOUND
        | StatusCode::CONFLICT
        | StatusCode::GONE
        | StatusCode::PRECONDITION_FAILED
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::TOO_MANY_REQUESTS => StatusCode::BAD_REQUEST,
        status => status,
    }
}

/// A violation in one sentence, for those who see one only.
fn sentence(violation: &Violation) -> String {
    let Violation { pointer, message, hint, .. } = violation;
    let place = if pointer.is_empty() { "The document" } else { pointer };
    match hint {
        Some(hint) if hint.ends_with(['?', '.']) => format!("{place}: {message}; {hint}"),
        Some(hint) => format!("{place}: {message}; {hint}."),
        None => format!("{place}: {message}."),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    error: Refusal<'a>,
}

#[derive(Serialize)]
struct Refusal<'a> {
    message: String,
    r#type: &'static str,
    code: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_subcode: Option<u32>,
    error_user_title: &'static str,
    error_user_msg: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_data: Option<Blame<'a>>,
    is_transient: bool,
    fbtrace_id: &'a str,
    galley_problem: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_violations: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_existing_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_possible: Option<&'a [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    galley_more: Option<usize>,
}

/// Which field is to blame, as the way to it.
#[derive(Serialize)]
struct Blame<'a> {
    blame_field_specs: [Vec<&'a str>; 1],
}

impl<'a> Blame<'a> {
    fn of(violation: &'a Violation) -> Self {
        Self { blame_field_specs: [violation.pointer.split('/').skip(1).collect()] }
    }
}
