//! The body of a document: JSON, JSON text in a JSON string, or a form whose lists, objects and
//! numbers are JSON text. Whatever it was, one JSON document comes out.

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
        body::{is_json, whole},
        problem::{Kind, Problem},
    },
    app::App,
};

/// A form needs up to three bytes for one.
const FORM_GROWTH: usize = 3;

/// The text of a JSON document. Take it after the [`super::caller::Caller`]: nothing is read
/// from somebody unknown.
pub(super) struct JsonText(pub(super) Vec<u8>);

impl FromRequest<App> for JsonText {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let query = Query::of(request.uri());
        let limit = app.limits().body_bytes;
        if is_form(request.headers()) {
            let body = whole(request, app, FORM_GROWTH * limit).await?;
            let pairs: Vec<_> = form_urlencoded::parse(&body).collect();
            let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
            // What the body does not say may stand in the query.
            let said: HashSet<&str> = pairs.clone().map(|(name, _)| name).collect();
            let others = query.pairs().filter(|(name, _)| !said.contains(name));
            return from_form(pairs.chain(others), limit).map(Self);
        }
        if !is_json(request.headers()) {
            let detail = "Send `application/json` or `application/x-www-form-urlencoded`, in UTF-8 and without a content encoding.";
            return Err(Problem::of(Kind::UnsupportedMediaType).detail(detail));
        }
        let body = whole(request, app, limit).await?;
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            // Everything may stand in the query instead; but some clients send an empty object with
            // whatever they do, and what that leaves out is not in the query either.
            None => from_form(query.pairs(), limit).map(Self),
            Some(b'"') => Ok(Self(unwrapped(&body)?)),
            Some(_) => Ok(Self(body.into())),
        }
    }
}

/// A refusal of a document, with the code of the first thing that is wrong with it.
pub(crate) fn invalid(violations: Violations, document: &Document<'_>) -> Problem {
    let first = violations.listed().first();
    let graph = first.map(|first| graph_codes::of(first, document.root()));
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

/// The document that a JSON string holds.
fn unwrapped(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let document = Document::parse(body)?;
    let text = document.root().as_str().unwrap_or_default();
    Ok(text.as_bytes().to_vec())
}

/// A form as one JSON object. A field that is a text or a word in a table stays one even if
/// it looks like a number; any other is JSON if it can be.
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
        if !is_text(name) && is_value(value) {
            out.push_str(value);
        } else {
            out.push_str(&quoted(value));
        }
        if out.len() >= limit {
            let detail = format!("A document may have {limit} bytes at most.");
            return Err(Problem::of(Kind::TooLarge).detail(detail));
        }
    }
    out.push('}');
    Ok(out.into_bytes())
}

fn is_text(name: &str) -> bool {
    let mut fields = WHATSAPP.template.fields.iter().chain(SUBSCRIPTION.fields);
    let field = fields.find(|field| field.name == name);
    let shape = field.map(|field| &field.shape);
    matches!(shape, Some(FieldType::String(_) | FieldType::Choice(_) | FieldType::ParameterFormat))
}

fn is_value(text: &str) -> bool {
    let document = Document::parse(text.as_bytes());
    document.is_ok_and(|document| !matches!(document.root(), Json::String(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_one_document() {
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
