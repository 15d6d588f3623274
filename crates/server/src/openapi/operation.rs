//! One operation as the description tells it: what is asked, what is answered, what is refused.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::{Map, Value, json};

use crate::api::problem::ProblemKind;

/// A method on a path. Parameters, headers and schemas are named as in the components.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// What code generators call it; never changes.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    /// The scope that the caller's token needs; none for a public operation.
    pub(super) scope: Option<Scope>,
    /// Names of components; `x-request-id` is taken by every operation and added by itself.
    pub(super) parameters: &'static [&'static str],
    pub(super) body: Option<Value>,
    /// What can be answered when all is well, the usual answer first.
    pub(super) answers: Vec<Answer>,
    /// Every problem it can answer with; the wrong method is added by itself.
    pub(super) refusals: Vec<ProblemKind>,
}

/// What is answered when all is well.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) description: &'static str,
    /// Names of components; `x-request-id` is on every answer and added by itself.
    pub(super) headers: &'static [&'static str],
    /// By media type; none where the status says everything.
    pub(super) content: Option<Value>,
    /// Where to go from here.
    pub(super) links: Option<Value>,
}

impl Operation {
    pub(super) fn render(self) -> Value {
        let parameters =
            self.parameters.iter().chain(&["RequestId"]).map(|name| reference("parameters", name));
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "description": self.description,
            "parameters": parameters.collect::<Vec<_>>(),
        });
        if let Some(scope) = self.scope {
            operation["security"] = json!([{"accessToken": [scope.as_str()]}]);
        }
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        let mut responses = refused(&self.refusals);
        for answer in self.answers {
            responses.insert(answer.status.as_str().to_owned(), answer.render());
        }
        operation["responses"] = Value::Object(responses);
        operation
    }
}

impl Answer {
    fn render(self) -> Value {
        let mut response = json!({
            "description": self.description,
            "headers": headers(self.headers),
        });
        if let Some(content) = self.content {
            response["content"] = content;
        }
        if let Some(links) = self.links {
            response["links"] = links;
        }
        response
    }
}

/// The responses for some kinds of problem, one per status.
fn refused(kinds: &[ProblemKind]) -> Map<String, Value> {
    let mut by_status: BTreeMap<StatusCode, Vec<ProblemKind>> = BTreeMap::new();
    for kind in kinds.iter().copied().chain([ProblemKind::MethodNotAllowed]) {
        by_status.entry(kind.status()).or_default().push(kind);
    }
    let responses = by_status.into_iter().map(|(status, kinds)| {
        let about: Vec<String> = kinds.iter().map(|kind| line_about(*kind)).collect();
        let types: Vec<String> = kinds.iter().map(|kind| problem_type(*kind)).collect();
        let examples: Map<String, Value> = kinds
            .iter()
            .map(|kind| (kind.slug().to_owned(), reference("examples", kind.slug())))
            .collect();
        let schema = json!({
            "allOf": [
                reference("schemas", "Problem"),
                {"properties": {"type": {"enum": types}, "status": {"const": status.as_u16()}}},
            ],
        });
        let response = json!({
            "description": about.join("\n"),
            "headers": headers(of_status(status)),
            "content": {"application/problem+json": {"schema": schema, "examples": examples}},
        });
        (status.as_str().to_owned(), response)
    });
    responses.collect()
}

fn line_about(kind: ProblemKind) -> String {
    format!("- `{}`: {}. {}", kind.slug(), kind.title(), kind.remedy())
}

/// The headers that a refusal with that status carries.
fn of_status(status: StatusCode) -> &'static [&'static str] {
    match status {
        StatusCode::UNAUTHORIZED => &["Cache-Control", "WWW-Authenticate"],
        StatusCode::METHOD_NOT_ALLOWED => &["Cache-Control", "Allow"],
        StatusCode::PRECONDITION_FAILED => &["Cache-Control", "ETag"],
        StatusCode::RANGE_NOT_SATISFIABLE => &["Cache-Control", "Content-Range"],
        StatusCode::SERVICE_UNAVAILABLE => &["Cache-Control", "Retry-After"],
        _ => &["Cache-Control"],
    }
}

fn headers(names: &[&str]) -> Value {
    let headers: Map<String, Value> = names
        .iter()
        .chain(&["x-request-id"])
        .map(|name| ((*name).to_owned(), reference("headers", name)))
        .collect();
    Value::Object(headers)
}

/// Points at a component.
pub(super) fn reference(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}

/// What a problem document says in `type`.
pub(super) fn problem_type(kind: ProblemKind) -> String {
    format!("/problems/{}", kind.slug())
}
