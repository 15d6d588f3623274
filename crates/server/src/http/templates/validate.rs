//! The dry run: everything that a creation would be refused for, and what is worth a second look.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    advice::Warning,
    id::TemplateId,
    json::{Document, Json},
    template::Template,
    violation::{Rule, Violation},
};
use serde::Serialize;

use crate::{
    App,
    http::{
        body::JsonBody,
        caller::{Caller, Write},
        json,
        problem::Problem,
        query::Parameters,
    },
};

/// What a document would meet with.
#[derive(Serialize)]
struct Verdict<'a> {
    valid: bool,
    violations: &'a [Violation],
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    warnings: &'a [Warning],
    #[serde(skip_serializing_if = "Option::is_none")]
    more_warnings: Option<usize>,
}

pub(super) async fn validate(
    State(app): State<App>,
    caller: Caller<Write>,
    parameters: Parameters,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let edited: Option<TemplateId> =
        parameters
            .only(&["template"])?
            .read("template", "a template's id", |id| id.parse().ok())?;
    let (checked, claim) = {
        let document = Document::parse(&body)?;
        let text = |key| document.root().get(key).and_then(Json::as_text);
        let rulebook = caller.rulebook()?;
        let claim = text("name").map(|name| {
            (rulebook.claim)(caller.account.id, name, text("language").unwrap_or_default())
        });
        (Template::check(&document, rulebook), claim)
    };
    let (mut violations, more) = match &checked.template {
        Ok(_) => (Vec::new(), 0),
        Err(violations) => (violations.told().to_vec(), violations.more()),
    };
    if let Some(claim) = claim
        && let Some(taken) = app.store().taken(caller.account.id, &claim).await?
        && (edited.is_none() || taken.own != edited)
    {
        let hint = match taken.own {
            Some(id) => format!(
                "it is your own template {id}: edit that (to try an edit out, add `?template={id}`), or choose another name"
            ),
            None => "choose another name".to_owned(),
        };
        violations.push(Violation {
            pointer: "/name".to_owned(),
            rule: Rule::NameTaken,
            message: "another template has this name".to_owned(),
            hint: Some(hint),
            span: None,
        });
    }
    let verdict = Verdict {
        valid: violations.is_empty(),
        violations: &violations,
        more: Some(more).filter(|more| *more > 0),
        warnings: checked.warnings.told(),
        more_warnings: Some(checked.warnings.more()).filter(|more| *more > 0),
    };
    Ok(json(StatusCode::OK, serde_json::to_string(&verdict).unwrap_or_default()))
}
