//! Creating a template.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use galley_domain::{document::Document, rulebook::WHATSAPP, template::Template};
use galley_store::{
    Actor, CreateOutcome, CreatedTemplate, Idempotency, NewTemplate, TranslationGroup,
};

use super::samples;
use super::{body::JsonText, caller::Caller, error::limited};
use crate::{
    api::{
        auth::Write,
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
    JsonText(body): JsonText,
) -> Result<Response, Problem> {
    let idempotency = key.for_request(&["POST", "message_templates"], &body)?;
    let body = samples::with_handles(&app, body);
    let read = |document: &Document<'_>| Template::read(document, &WHATSAPP);
    let outcome = match samples::read_checked(&app, caller.account.id, &body, read).await {
        Ok(template) => {
            let new = new_template(&app, &caller, template, idempotency);
            app.store().create_template(new).await?
        }
        Err(problem) => replay_or_reject(&app, &caller, idempotency, problem).await?,
    };
    let replayed = matches!(outcome, CreateOutcome::Replayed(_));
    let CreatedTemplate { id, status, category } = created_template(outcome)?;
    let (status, category) = (status.as_str(), category.as_str());
    let body = format!(r#"{{"id":"{id}","status":"{status}","category":"{category}"}}"#);
    let mut response = json(StatusCode::OK, body);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A template to store, in the translation group of its name.
pub(super) fn new_template(
    app: &App,
    caller: &Caller<Write>,
    template: Template,
    idempotency: Option<Idempotency>,
) -> NewTemplate {
    let account = caller.account.id;
    NewTemplate {
        account,
        review: caller.account.review,
        phone: None,
        unique_key: (WHATSAPP.unique_key)(account, template.name(), template.language()),
        translation_group: Some(TranslationGroup::of(account, template.name())),
        template,
        actor: Actor::Token(caller.token),
        idempotency,
        at: app.clock().now(),
    }
}

/// Replays the response of an earlier request with the same `Idempotency-Key`; otherwise rejects the
/// document.
async fn replay_or_reject(
    app: &App,
    caller: &Caller<Write>,
    idempotency: Option<Idempotency>,
    problem: Problem,
) -> Result<CreateOutcome, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(problem) };
    let record = app.store().idempotency_record(caller.account.id, key, app.clock().now()).await?;
    record.map(|record| record.outcome_for(payload)).ok_or(problem)
}

/// The created template, or the problem that prevented it.
pub(super) fn created_template(outcome: CreateOutcome) -> Result<CreatedTemplate, Problem> {
    match outcome {
        CreateOutcome::Created(created) | CreateOutcome::Replayed(created) => Ok(created),
        CreateOutcome::KeyReused => Err(Problem::of(ProblemKind::IdempotencyKeyReused)),
        CreateOutcome::NameInUse(conflict) => Err(Problem::name_taken(conflict.existing_id).detail(
            "A template with this name and language already exists. Edit it, or choose another name.",
        )),
        CreateOutcome::Limited(limit) => Err(limited(limit)),
        CreateOutcome::CategoryDiffers(category) => Err(Problem::translation_category(category)),
    }
}
