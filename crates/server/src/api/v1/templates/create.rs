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
        problem::{Problem, ProblemKind},
    },
    app::App,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    caller.require_v1_rulebook()?;
    let idempotency =
        key.for_request(&["POST", &caller.phone_number_id, "message_templates"], &body);
    let read = read(&caller, &body)?;
    drop(body);
    let idempotency = idempotency?;
    let (template, unique_key) = match read {
        Ok(read) => read,
        Err(violations) => return replay_or_reject(&app, &caller, idempotency, violations).await,
    };
    let new = NewTemplate {
        account: caller.account.id,
        review: caller.account.review,
        phone: Some(caller.phone_number_id),
        unique_key,
        translation_group: None,
        template,
        actor: Actor::Token(caller.token),
        idempotency,
        at: app.clock().now(),
    };
    create_response(app.store().create_template(new).await?)
}

/// Reads a body as a template with its unique key. The parsed document is dropped here, so that it
/// takes no memory while the request waits for the store.
fn read(
    caller: &Caller<Write>,
    body: &Bytes,
) -> Result<Result<(Template, String), Violations>, Problem> {
    let document = Document::parse(body)?;
    let rulebook = caller.rulebook()?;
    Ok(Template::read(&document, rulebook).map(|template| {
        let unique_key =
            (rulebook.unique_key)(caller.account.id, template.name(), template.language());
        (template, unique_key)
    }))
}

/// Replays the response of an earlier request with the same `Idempotency-Key`; otherwise rejects the
/// document. For valid documents the store checks the key when it creates the template.
async fn replay_or_reject(
    app: &App,
    caller: &Caller<Write>,
    idempotency: Option<Idempotency>,
    violations: Violations,
) -> Result<Response, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(violations.into()) };
    match app.store().idempotency_record(caller.account.id, key, app.clock().now()).await? {
        Some(record) => create_response(record.outcome_for(payload)),
        None => Err(violations.into()),
    }
}

/// The response to a create, new or replayed.
fn create_response(outcome: CreateOutcome) -> Result<Response, Problem> {
    let (created, replayed) = match outcome {
        CreateOutcome::Created(created) => (created, false),
        CreateOutcome::Replayed(created) => (created, true),
        CreateOutcome::KeyReused => return Err(Problem::of(ProblemKind::IdempotencyKeyReused)),
        CreateOutcome::NameInUse(conflict) => {
            return Err(Problem::name_taken(conflict.existing_id));
        }
        CreateOutcome::CategoryDiffers(category) => {
            return Err(Problem::translation_category(category));
        }
        CreateOutcome::Limited(limit) => return Err(Problem::limit_reached(limit)),
    };
    let CreatedTemplate { id, status, category } = created;
    let (id, status, category) = (id.to_string(), status.as_str(), category.as_str());
    let body =
        [r#"{"id":""#, &id, r#"","status":""#, status, r#"","category":""#, category, r#""}"#];
    let mut response = json(StatusCode::CREATED, body.concat());
    // Relative, so that no API key appears in a response.
    if let Ok(location) = HeaderValue::from_str(&["message_templates/", &id].concat()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
