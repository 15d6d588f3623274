//! Creating a template.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use galley_domain::{json::Document, rulebook::WHATSAPP, template::Template};
use galley_store::{Actor, Creation, Family, Idempotency, NewTemplate, Receipt};

use super::{body::JsonText, caller::Caller, error::limited, samples};
use crate::{
    App,
    http::{
        caller::Write,
        idempotency::{IdempotencyKey, REPLAYED},
        json,
        problem::{Kind, Problem},
    },
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
    let replayed = matches!(creation, Creation::Replayed(_));
    let Receipt { id, status, category } = receipt(creation)?;
    let (status, category) = (status.word(), category.word());
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
        family: Some(Family::of(account, template.name())),
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
) -> Result<Creation, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(problem) };
    let record = app.store().record(caller.account.id, key, app.clock().now()).await?;
    record.map(|record| record.answer(payload)).ok_or(problem)
}

/// What was made, or why nothing was.
pub(super) fn receipt(creation: Creation) -> Result<Receipt, Problem> {
    match creation {
        Creation::Created(receipt) | Creation::Replayed(receipt) => Ok(receipt),
        Creation::KeyReused => Err(Problem::of(Kind::IdempotencyKeyReused)),
        Creation::NameTaken(taken) => Err(Problem::name_taken(taken.own).detail(
            "There is a template of this name in this language: edit it, or choose another name.",
        )),
        Creation::Limited(limit) => Err(limited(limit)),
        Creation::CategoryDiffers(category) => Err(Problem::family_category(category)),
    }
}
