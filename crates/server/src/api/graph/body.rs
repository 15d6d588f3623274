//! Request bodies of the Graph surface: JSON, a JSON string that contains JSON, or a form whose
//! lists, objects and numbers are JSON text. All of them become one JSON document.

use std::collections::HashSet;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use galley_domain::{
    document::{Document, Json},
    rulebook::{FieldType, WHATSAPP, graph_codes},
    violation::Violations,
    webhook::SUBSCRIPTION,
};

use super::parameters::Query;
use crate::{
    api::{
        body::{is_json, read_all},
        problem::{Problem, ProblemKind},
    },
    app::App,
};

/// A form needs up to three bytes for one byte of the document.
const MAX_FORM_EXPANSION: usize = 3;

/// The text of a JSON document. Extract it after the [`super::caller::Caller`], so that the service
/// reads no bodies from unauthenticated clients.
pub(super) struct JsonText(pub(super) Vec<u8>);

impl FromRequest<App> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let query = Query::of(request.uri());
        let limit = app.limits().body_bytes;
        if is_form(request.headers()) {
            let body = read_all(request, app, MAX_FORM_EXPANSION * limit).await?;
            let pairs: Vec<_> = form_urlencoded::parse(&body).collect();
            let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
            // The query may contain fields that the body lacks.
            let in_body: HashSet<&str> = pairs.clone().map(|(name, _)| name).collect();
            let in_query = query.pairs().filter(|(name, _)| !in_body.contains(name));
            return from_form(pairs.chain(in_query), limit).map(Self);
        }
        if !is_json(request.headers()) {
            let detail = "Send `application/json` or `application/x-www-form-urlencoded`, in UTF-8 and without a content encoding.";
            return Err(Problem::of(ProblemKind::UnsupportedMediaType).detail(detail));
        }
        let body = read_all(request, app, limit).await?;
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            // An empty body means that the query contains the document. An empty JSON object does
            // not: some clients send one with every request.
            None => from_form(query.pairs(), limit).map(Self),
            Some(b'"') => Ok(Self(unwrap_string(&body)?)),
            Some(_) => Ok(Self(body.into())),
        }
    }
}

/// The problem of an invalid document, with the Graph code of its first violation.
pub(crate) fn invalid(violations: Violations, document: &Document<'_>) -> Problem {
    let first = violations.listed().first();
    let graph = first.map(|first| graph_codes::for_violation(first, document.root()));
    let problem = Problem::from(violations);
    match graph {
        Some(graph) => problem.graph(graph),
        None => problem,
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let media_type = content_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// The document inside a JSON string.
fn unwrap_string(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let document = Document::parse(body)?;
    let text = document.root().as_str().unwrap_or_default();
    Ok(text.as_bytes().to_vec())
}

/// Converts a form into one JSON object. Fields that the schema declares as strings or choices stay
/// strings, even if they look like numbers; the value of any other field is JSON if it parses.
fn from_form<'f>(
    pairs: impl Iterator<Item = (&'f str, &'f str)>,
    limit: usize,
) -> Result<Vec<u8>, Problem> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut out = String::from("{");
    for (name, value) in pairs {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&quoted(name));
        out.push(':');
        if !is_string_field(name) && is_json_value(value) {
            out.push_str(value);
        } else {
            out.push_str(&quoted(value));
        }
        if out.len() >= limit {
            let detail = format!(
                "The document exceeds the limit of {limit} bytes. Send a smaller document."
            );
            return Err(Problem::of(ProblemKind::TooLarge).detail(detail));
        }
    }
    out.push('}');
    Ok(out.into_bytes())
}

fn is_string_field(name: &str) -> bool {
    let mut fields = WHATSAPP.template.fields.iter().chain(SUBSCRIPTION.fields);
    let field = fields.find(|field| field.name == name);
    let shape = field.map(|field| &field.field_type);
    matches!(shape, Some(FieldType::String(_) | FieldType::Choice(_) | FieldType::ParameterFormat))
}

fn is_json_value(text: &str) -> bool {
    let document = Document::parse(text.as_bytes());
    document.is_ok_and(|document| !matches!(document.root(), Json::String(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_one_json_document() {
        for (form, document) in [
            ("", "{}"),
            ("name=7&language=en", r#"{"name":"7","language":"en"}"#),
            ("components=%5B%7B%22type%22:%22BODY%22%7D%5D", r#"{"components":[{"type":"BODY"}]}"#),
            (
                "allow_category_change=true&message_send_ttl_seconds=600",
                r#"{"allow_category_change":true,"message_send_ttl_seconds":600}"#,
            ),
            ("components=%5B", r#"{"components":"["}"#),
            ("verify_token=123", r#"{"verify_token":"123"}"#),
            ("languages=[%22en%22]&x=y", r#"{"languages":["en"],"x":"y"}"#),
            ("na%22me=a+b&name=a&name=b", r#"{"na\"me":"a b","name":"a","name":"b"}"#),
        ] {
            let pairs: Vec<_> = form_urlencoded::parse(form.as_bytes()).collect();
            let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
            let written = from_form(pairs, 1_000).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), document, "{form}");
        }
    }
}
