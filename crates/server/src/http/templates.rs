//! `{base}/message_templates`: creating and reading templates.

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
    routing::{get, post},
};
use galley_domain::{json::Document, template::Template, violation::Violations};
use galley_store::{Creation, Idempotency, NewTemplate, Receipt, StoredTemplate};

use super::{
    body::JsonBody,
    caller::{Caller, Item, Read, Write},
    idempotency::IdempotencyKey,
    json,
    problem::{Kind, Problem},
};
use crate::App;

pub(super) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates";
pub(super) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}";

pub(super) fn routes() -> Router<App> {
    Router::new().route(COLLECTION, post(create)).route(ITEM, get(show))
}

async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let idempotency = key.with(&["POST", &caller.phone, "message_templates"], &body);
    let read = read(&caller, &body)?;
    drop(body);
    let idempotency = idempotency?;
    let (template, claim) = match read {
        Ok(read) => read,
        Err(violations) => return refused(&app, &caller, idempotency, violations).await,
    };
    let new = NewTemplate {
        account: caller.account.id,
        status: caller.account.review.first_status(),
        phone: Some(caller.phone),
        claim,
        template,
        actor: caller.token,
        idempotency,
        at: app.clock().now(),
    };
    created(app.store().create_template(new).await?)
}

/// Reads a body as a template with its claim. The tree is gone afterwards: nothing of it is kept
/// in memory while a request waits for the disk.
fn read(
    caller: &Caller<Write>,
    body: &Bytes,
) -> Result<Result<(Template, String), Violations>, Problem> {
    let document = Document::parse(body)?;
    let rulebook = caller.rulebook()?;
    Ok(Template::read(&document, rulebook).map(|template| {
        let claim = (rulebook.claim)(caller.account.id, template.name(), template.language());
        (template, claim)
    }))
}

async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    Item(id): Item,
) -> Result<Response, Problem> {
    let stored = app.store().template(caller.account.id, id).await?;
    let stored = stored.ok_or(Problem::of(Kind::TemplateUnknown))?;
    let mut response = json(StatusCode::OK, view(&stored));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", stored.revision)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// What an Idempotency-Key made comes before the rules. The store looks at it first when it
/// creates; a document that gets no further is looked at here.
async fn refused(
    app: &App,
    caller: &Caller<Write>,
    idempotency: Option<Idempotency>,
    violations: Violations,
) -> Result<Response, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(violations.into()) };
    match app.store().record(caller.account.id, key, app.clock().now()).await? {
        Some(record) => created(record.answer(payload)),
        None => Err(violations.into()),
    }
}

/// The answer to a creation, whether it happened now or was asked for before.
fn created(creation: Creation) -> Result<Response, Problem> {
    let (receipt, replayed) = match creation {
        Creation::Created(receipt) => (receipt, false),
        Creation::Replayed(receipt) => (receipt, true),
        Creation::KeyReused => return Err(Problem::of(Kind::IdempotencyKeyReused)),
        Creation::NameTaken(existing) => return Err(Problem::name_taken(existing)),
    };
    let Receipt { id, status, category } = receipt;
    let (status, category) = (status.word(), category.word());
    let body = format!(r#"{{"id":"{id}","status":"{status}","category":"{category}"}}"#);
    let mut response = json(StatusCode::CREATED, body);
    // Relative, so that no key stands in an answer.
    if let Ok(location) = HeaderValue::from_str(&format!("message_templates/{id}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if replayed {
        const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// How a template looks from outside. Its content is JSON already and is taken over as it is.
fn view(stored: &StoredTemplate) -> String {
    let template = &stored.template;
    let mut out = String::with_capacity(template.content().len() + 512);
    let mut member = |key: &str, value: &str| {
        out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
        out.push_str(key);
        out.push_str("\":");
        out.push_str(value);
    };
    let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
    member("id", &text(&stored.id.to_string()));
    member("name", &text(template.name()));
    member("language", &text(template.language()));
    member("category", &text(template.category().word()));
    let allow = if template.allow_category_change() { "true" } else { "false" };
    member("allow_category_change", allow);
    member("status", &text(stored.status.word()));
    if let Some(phone) = &stored.phone {
        member("phone_number_id", &text(phone));
    }
    member("version", itoa::Buffer::new().format(stored.version));
    if let Some(live) = stored.live_version {
        member("live_version", itoa::Buffer::new().format(live));
    }
    member("created_at", &text(&stored.created_at.to_string()));
    member("updated_at", &text(&stored.updated_at.to_string()));
    let content = template.content();
    out.push(',');
    out.push_str(content.strip_prefix('{').unwrap_or(content));
    out
}
