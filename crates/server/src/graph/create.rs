//! Creating a template.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{json::Document, rulebook::WHATSAPP, template::Template};
use galley_store::{Actor, Creation, Family, Idempotency, NewTemplate, Receipt};

use super::{
    body::{JsonText, invalid},
    caller::Caller,
    error::limited,
};
use crate::{
    App,
    http::{
        caller::Write,
        idempotency::IdempotencyKey,
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
    let receipt = match read(&body) {
        Ok(template) => kept(&app, &caller, template, idempotency).await?,
        Err(problem) => made_before(&app, &caller, idempotency, problem).await?,
    };
    let Receipt { id, status, category } = receipt;
    let (status, category) = (status.word(), category.word());
    let answer = format!(r#"{{"id":"{id}","status":"{status}","category":"{category}"}}"#);
    Ok(json(StatusCode::OK, answer))
}

fn read(body: &[u8]) -> Result<Template, Problem> {
    let document = Document::parse(body)?;
    Template::read(&document, &WHATSAPP).map_err(|violations| invalid(violations, &document))
}

/// Keeps a template, as one of the languages of its name.
pub(super) async fn kept(
    app: &App,
    caller: &Caller<Write>,
    template: Template,
    idempotency: Option<Idempotency>,
) -> Result<Receipt, Problem> {
    let account = caller.account.id;
    let new = NewTemplate {
        account,
        review: caller.account.review,
        phone: None,
        claim: (WHATSAPP.claim)(account, template.name(), template.language()),
        family: Some(Family::of(account, template.name())),
        template,
        actor: Actor::Token(caller.token),
        idempotency,
        at: app.clock().now(),
    };
    receipt(app.store().create_template(new).await?)
}

/// What an Idempotency-Key made comes before the rules.
async fn made_before(
    app: &App,
    caller: &Caller<Write>,
    idempotency: Option<Idempotency>,
    problem: Problem,
) -> Result<Receipt, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(problem) };
    match app.store().record(caller.account.id, key, app.clock().now()).await? {
        Some(record) => receipt(record.answer(payload)),
        None => Err(problem),
    }
}

fn receipt(creation: Creation) -> Result<Receipt, Problem> {
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
