//! Creating a template.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use galley_domain::{document::Document, template::Template, violation::Violations};
use galley_store::{Actor, CreateOutcome, CreatedTemplate, Idempotency, NewTemplate};

use crate::{
    api::{
        auth::{Caller, Write},
        body::JsonBody,
        idempotency::{IdempotencyKey, REPLAYED},
        json,
        problem::{Kind, Problem},
    },
    app::App,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    caller.may_make()?;
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
        review: caller.account.review,
        phone: Some(caller.phone),
        claim,
        family: None,
        template,
        actor: Actor::Token(caller.token),
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
fn created(creation: CreateOutcome) -> Result<Response, Problem> {
    let (receipt, replayed) = match creation {
        CreateOutcome::Created(receipt) => (receipt, false),
        CreateOutcome::Replayed(receipt) => (receipt, true),
        CreateOutcome::KeyReused => return Err(Problem::of(Kind::IdempotencyKeyReused)),
        CreateOutcome::NameInUse(taken) => return Err(Problem::name_taken(taken.own)),
        CreateOutcome::CategoryDiffers(category) => return Err(Problem::family_category(category)),
        CreateOutcome::Limited(limit) => return Err(Problem::limited(limit)),
    };
    let CreatedTemplate { id, status, category } = receipt;
    let (id, status, category) = (id.to_string(), status.as_str(), category.as_str());
    let body =
        [r#"{"id":""#, &id, r#"","status":""#, status, r#"","category":""#, category, r#""}"#];
    let mut response = json(StatusCode::CREATED, body.concat());
    // Relative, so that no key stands in an answer.
    if let Ok(location) = HeaderValue::from_str(&["message_templates/", &id].concat()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
