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
    admission::Admission,
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
    /// Size of the text of the document.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Parses or checks the text and its document. A large one waits for a processor, which is free
    /// again afterwards. The text is parsed here, so a handler calls it once.
    pub(super) async fn process<'b, T>(
        &'b mut self,
        admission: &Admission,
        work: impl FnOnce(&'b [u8], Result<Document<'b>, Problem>) -> T,
    ) -> T {
        let (text, form) = (&*self.text, self.form.take());
        admission.process(text.len(), || work(text, document(text, form))).await
    }

    /// Reads the text of a body. The document is in the query if the body is empty. An empty JSON
    /// object is a document: some clients send one with every request.
    async fn from_json(
        admission: &Admission,
        body: Bytes,
        query: &Query,
        limit: usize,
    ) -> Result<Self, Problem> {
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => admission.process(query.len(), || from_form(query.pairs(), limit)).await,
            Some(b'"') => {
                let text = admission.process(body.len(), || unwrap_string(&body)).await?;
                Ok(Self { text, form: None })
            }
            Some(_) => Ok(Self { text: body, form: None }),
        }
    }

    /// Reads a form. The query may contain fields that the body lacks.
    async fn from_form(
        admission: &Admission,
        body: &[u8],
        query: &Query,
        limit: usize,
    ) -> Result<Self, Problem> {
        let work = || {
            let pairs: Vec<_> = form_urlencoded::parse(body).collect();
            let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
            let in_body: HashSet<&str> = pairs.clone().map(|(name, _)| name).collect();
            let in_query = query.pairs().filter(|(name, _)| !in_body.contains(name));
            from_form(pairs.chain(in_query), limit)
        };
        admission.process(body.len() + query.len(), work).await
    }
}

impl FromRequest<App> for GraphBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let query = Query::of(request.uri());
        let limit = app.limits().body_bytes;
        if is_form(request.headers()) {
            let body = read_all(request, app, MAX_FORM_EXPANSION * limit).await?;
            return Self::from_form(app.admission(), &body, &query, limit).await;
        }
        if !is_json(request.headers()) {
            let detail = "Send `application/json` or `application/x-www-form-urlencoded`, in UTF-8 and without a content encoding.";
            return Err(Problem::of(ProblemKind::UnsupportedMediaType).detail(detail));
        }
        let body = read_all(request, app, limit).await?;
        Self::from_json(app.admission(), body, &query, limit).await
    }
}

/// The document of a form, or of its text.
fn document<'t>(text: &'t [u8], form: Option<Document<'t>>) -> Result<Document<'t>, Problem> {
    match form {
        Some(document) => Ok(document),
        None => Ok(Document::parse(text)?),
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
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use galley_domain::document::MAX_DEPTH;

    use super::*;
    use crate::limits::Limits;

    /// The result of some work that waits for a processor.
    fn after_waiting<T>(admission: &Admission, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut poll = || work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let processors = admission.take_processors();
        assert!(poll().is_pending(), "all processors are busy");
        drop(processors);
        let Poll::Ready(result) = poll() else { panic!("the processors are free") };
        result
    }

    #[test]
    fn a_large_body_of_any_kind_is_read_and_checked_when_a_processor_is_free() {
        let admission = Admission::new(&Limits::default());
        let query = Query::of(&"/".parse().unwrap());
        let items = format!("[{}0]", "0,".repeat(10_000));
        let form = format!("x={items}");
        let mut body = after_waiting(
            &admission,
            GraphBody::from_form(&admission, form.as_bytes(), &query, 100_000),
        )
        .unwrap();
        let check = |_: &[u8], document: Result<Document<'_>, Problem>| document.is_ok();
        assert!(after_waiting(&admission, body.process(&admission, check)));

        let quoted = Bytes::from(serde_json::to_string(&items).unwrap());
        let read = GraphBody::from_json(&admission, quoted, &query, 100_000);
        let mut body = after_waiting(&admission, read).unwrap();
        assert!(after_waiting(&admission, body.process(&admission, check)));
    }

    #[tokio::test]
    async fn a_small_body_never_waits_for_a_processor() {
        let admission = Admission::new(&Limits::default());
        let _processors = admission.take_processors();
        let query = Query::of(&"/?x=1".parse().unwrap());
        let mut body = GraphBody::from_form(&admission, b"y=2", &query, 1_000).await.unwrap();
        let text = body.process(&admission, |text, _| text.to_owned()).await;
        assert_eq!(text, br#"{"y":2,"x":1}"#);
    }

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
            assert_eq!(str::from_utf8(&body.text).unwrap(), document, "{form}");
            // Not parsed from the text, but equal to it.
            let assembled = format!("{:?}", body.form.take().unwrap());
            let parsed = super::document(&body.text, None).unwrap();
            assert_eq!(assembled, format!("{parsed:?}"), "{form}");
        }
    }

    #[test]
    fn the_fields_of_a_form_count_as_one_level_of_the_document() {
        let read = |depth: usize| {
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let body = from_form([("x", &*value)].into_iter(), 1_000).unwrap();
            let document = document(&body.text, body.form);
            document.map(|document| document.root().get("x").is_some()).ok()
        };
        assert_eq!(read(MAX_DEPTH - 1), Some(true));
        assert_eq!(read(MAX_DEPTH), None, "too deep for one document");
    }
}
