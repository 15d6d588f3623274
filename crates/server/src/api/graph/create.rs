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
        problem::{Kind, Problem},
    },
    app::App,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    JsonText(body): JsonText,
) -> Result<Response, Problem> {
    let idempotency = key.with(&["POST", "message_templates"], &body)?;
    let body = samples::with_handles(&app, body);
    let read = |document: &Document<'_>| Template::read(document, &WHATSAPP);
    let creation = match samples::judged(&app, caller.account.id, &body, read).await {
        Ok(template) => {
            let new = new(&app, &caller, template, idempotency);
            app.store().create_template(new).await?
        }
        Err(problem) => made_before(&app, &caller, idempotency, problem).await?,
    };
    let replayed = matches!(creation, CreateOutcome::Replayed(_));
    let CreatedTemplate { id, status, category } = receipt(creation)?;
    let (status, category) = (status.as_str(), category.as_str());
    let answer = format!(r#"{{"id":"{id}","status":"{status}","category":"{category}"}}"#);
    let mut response = json(StatusCode::OK, answer);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A template to be kept, as one of the languages of its name.
pub(super) fn new(
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
        claim: (WHATSAPP.claim)(account, template.name(), template.language()),
        family: Some(TranslationGroup::of(account, template.name())),
        template,
        actor: Actor::Token(caller.token),
        idempotency,
        at: app.clock().now(),
    }
}

/// What an Idempotency-Key made comes before the rules.
async fn made_before(
    app: &App,
    caller: &Caller<Write>,
    idempotency: Option<Idempotency>,
    problem: Problem,
) -> Result<CreateOutcome, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(problem) };
    let record = app.store().record(caller.account.id, key, app.clock().now()).await?;
    record.map(|record| record.answer(payload)).ok_or(problem)
}

/// What was made, or why nothing was.
pub(super) fn receipt(creation: CreateOutcome) -> Result<CreatedTemplate, Problem> {
    match creation {
        CreateOutcome::Created(receipt) | CreateOutcome::Replayed(receipt) => Ok(receipt),
        CreateOutcome::KeyReused => Err(Problem::of(Kind::IdempotencyKeyReused)),
        CreateOutcome::NameInUse(taken) => Err(Problem::name_taken(taken.own).detail(
            "There is a template of this name in this language: edit it, or choose another name.",
        )),
        CreateOutcome::Limited(limit) => Err(limited(limit)),
        CreateOutcome::CategoryDiffers(category) => Err(Problem::family_category(category)),
    }
}
