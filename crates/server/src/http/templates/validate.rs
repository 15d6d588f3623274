//! The dry run: everything that a creation would be refused for, and what is worth a second look.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    advice::Warning,
    id::{AccountId, TemplateId},
    json::{Document, Json},
    rulebook::Rulebook,
    sample,
    template::{Category, Checked, Template},
    violation::{Rule, Violation},
    wording::Wording,
};
use serde::Serialize;

use crate::{
    App, graph,
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
    let rulebook = caller.rulebook()?;
    let (checked, named, samples) = {
        let document = Document::parse(&body)?;
        let text = |key| document.root().get(key).and_then(Json::as_text).map(str::to_owned);
        let named = Named {
            name: text("name"),
            language: text("language").unwrap_or_default(),
            category: text("category").as_deref().and_then(Category::named),
        };
        let samples = sample::mentions(document.root());
        (Template::check(&document, rulebook), named, samples)
    };
    let Checked { template, mut warnings } = checked;
    let (mut violations, more) = match &template {
        Ok(_) => (Vec::new(), 0),
        Err(violations) => (violations.told().to_vec(), violations.more()),
    };
    let others = Others { app: &app, account: caller.account.id, rulebook, edited };
    violations.extend(others.name_taken(&named).await?);
    violations.extend(others.category_differs(&named).await?);
    if rulebook.names_have_languages {
        violations.extend(graph::sample_violations(&app, others.account, &samples).await?);
    }
    if let Ok(template) = &template
        && let Some(warning) = others.same_content(template).await?
    {
        warnings.push(warning);
    }
    let verdict = Verdict {
        valid: violations.is_empty(),
        violations: &violations,
        more: Some(more).filter(|more| *more > 0),
        warnings: warnings.told(),
        more_warnings: Some(warnings.more()).filter(|more| *more > 0),
    };
    Ok(json(StatusCode::OK, serde_json::to_string(&verdict).unwrap_or_default()))
}

/// What of a document others are asked about, whether it is good or not.
struct Named {
    name: Option<String>,
    language: String,
    category: Option<Category>,
}

/// The templates that are there already.
struct Others<'a> {
    app: &'a App,
    account: AccountId,
    rulebook: &'static Rulebook,
    /// The template that the document would edit: it does not stand in its own way.
    edited: Option<TemplateId>,
}

impl Others<'_> {
    async fn name_taken(&self, named: &Named) -> Result<Option<Violation>, Problem> {
        let Some(name) = &named.name else { return Ok(None) };
        let claim = (self.rulebook.claim)(self.account, name, &named.language);
        let taken = self.app.store().taken(self.account, &claim).await?;
        let Some(taken) = taken.filter(|it| self.edited.is_none() || it.own != self.edited) else {
            return Ok(None);
        };
        let hint = match taken.own {
            Some(id) => format!(
                "it is your own template {id}: edit that (to try an edit out, add `?template={id}`), or choose another name"
            ),
            None => "choose another name".to_owned(),
        };
        Ok(Some(Violation {
            pointer: "/name".to_owned(),
            rule: Rule::NameTaken,
            message: "another template has this name".to_owned(),
            hint: Some(hint),
            span: None,
        }))
    }

    /// Where languages share a name, they share a category.
    async fn category_differs(&self, named: &Named) -> Result<Option<Violation>, Problem> {
        let (true, Some(name), Some(category)) =
            (self.rulebook.names_have_languages, &named.name, named.category)
        else {
            return Ok(None);
        };
        let family = self.app.store().family(self.account, name).await?;
        let mut others = family.iter().filter(|other| Some(other.id) != self.edited);
        let Some(other) = others.find(|other| other.template.category() != category) else {
            return Ok(None);
        };
        let (word, language) = (other.template.category().word(), other.template.language());
        Ok(Some(Violation {
            pointer: "/category".to_owned(),
            rule: Rule::CategoryDiffers,
            message: format!("the same name in {language} is {word}"),
            hint: Some(format!("make it {word}, or choose another name")),
            span: None,
        }))
    }

    async fn same_content(&self, template: &Template) -> Result<Option<Warning>, Problem> {
        let wording = Wording::of(template).filter(|_| self.rulebook.names_have_languages);
        let Some(wording) = wording else { return Ok(None) };
        let other = self.app.store().with_wording(self.account, &wording, self.edited).await?;
        Ok(other.map(|id| Wording::repeated_by(&format!("your template {id}"))))
    }
}
