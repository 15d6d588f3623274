//! Request bodies of the Graph surface: JSON, a JSON string that contains JSON, or a form whose
//! lists, objects and numbers are JSON text. All of them become one JSON document.

use std::collections::HashSet;

use axum::{
    body::Bytes,
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

/// The body of a request as one JSON document. Extract it after the [`super::caller::Caller`], so
/// that the service reads no bodies from unauthenticated clients.
pub(super) struct GraphBody {
    text: Bytes,
    /// The document of a form, whose fields are parsed one by one.
    form: Option<Document<'static>>,
}

impl GraphBody {
    /// The text of the document.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The document. The text is parsed here, so a handler calls it once.
    pub(super) fn document(&mut self) -> Result<Document<'_>, Problem> {
        match self.form.take() {
            Some(document) => Ok(document),
            None => Ok(Document::parse(&self.text)?),
        }
    }
}

impl FromRequest<App> for GraphBody {
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
            return from_form(pairs.chain(in_query), limit);
        }
        if !is_json(request.headers()) {
            let detail = "Send `application/json` or `application/x-www-form-urlencoded`, in UTF-8 and without a content encoding.";
            return Err(Problem::of(ProblemKind::UnsupportedMediaType).detail(detail));
        }
        let body = read_all(request, app, limit).await?;
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            // An empty body means that the query contains the document. An empty JSON object does
            // not: some clients send one with every request.
            None => from_form(query.pairs(), limit),
            Some(b'"') => Ok(Self { text: unwrap_string(&body)?, form: None }),
            Some(_) => Ok(Self { text: body, form: None }),
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
fn unwrap_string(body: &[u8]) -> Result<Bytes, Problem> {
    let text = match Document::parse(body)?.into_root() {
        Json::String(text) => text.into_owned(),
        _ => String::new(),
    };
    Ok(text.into())
}

/// Converts a form into one JSON object. Fields that the schema declares as strings or choices stay
/// strings, even if they look like numbers; the value of any other field is JSON if it parses.
fn from_form<'f>(
    pairs: impl Iterator<Item = (&'f str, &'f str)>,
    limit: usize,
) -> Result<GraphBody, Problem> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut text = String::from("{");
    let mut fields = Vec::new();
    for (name, value) in pairs {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&quoted(name));
        text.push(':');
        let field = if let Some(document) = json_value(name, value) {
            text.push_str(value);
            document.into_owned()
        } else {
            text.push_str(&quoted(value));
            Document::from_string(value.to_owned())
        };
        if text.len() >= limit {
            let detail = format!(
                "The document exceeds the limit of {limit} bytes. Send a smaller document."
            );
            return Err(Problem::of(ProblemKind::TooLarge).detail(detail));
        }
        fields.push((name.to_owned().into(), field));
    }
    text.push('}');
    // If the fields are too deep for one document, parsing the text says so.
    Ok(GraphBody { text: text.into(), form: Document::from_fields(fields).ok() })
}

/// The value of a form's field as JSON; `None` if it is a string.
fn json_value<'v>(name: &str, value: &'v str) -> Option<Document<'v>> {
    if is_string_field(name) {
        return None;
    }
    let document = Document::parse(value.as_bytes()).ok()?;
    (!matches!(document.root(), Json::String(_))).then_some(document)
}

fn is_string_field(name: &str) -> bool {
    let mut fields = WHATSAPP.template.fields.iter().chain(SUBSCRIPTION.fields);
    let field = fields.find(|field| field.name == name);
    let shape = field.map(|field| &field.field_type);
    matches!(shape, Some(FieldType::String(_) | FieldType::Choice(_) | FieldType::ParameterFormat))
}

#[cfg(test)]
mod tests {
    use galley_domain::document::MAX_DEPTH;

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
            let mut body = from_form(pairs, 1_000).unwrap();
            assert_eq!(str::from_utf8(body.text()).unwrap(), document, "{form}");
            // Not parsed from the text, but equal to it.
            let assembled = format!("{:?}", body.form.take().unwrap());
            assert_eq!(assembled, format!("{:?}", body.document().unwrap()), "{form}");
        }
    }

    #[test]
    fn the_fields_of_a_form_count_as_one_level_of_the_document() {
        let read = |depth: usize| {
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let mut body = from_form([("x", &*value)].into_iter(), 1_000).unwrap();
            body.document().map(|document| document.root().get("x").is_some()).ok()
        };
        assert_eq!(read(MAX_DEPTH - 1), Some(true));
        assert_eq!(read(MAX_DEPTH), None, "too deep for one document");
    }
}
