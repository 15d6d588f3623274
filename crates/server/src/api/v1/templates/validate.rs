//! The dry run: everything that a creation or an edit would be refused for, and what is worth a
//! second look.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::{Document, Json},
    id::TemplateId,
    rulebook::{Category, Rulebook},
    template::{
        Checked, Template, edit::Edit, lifecycle::Trigger, message_text::MessageText, sample,
    },
    violation::{Rule, Violation, Violations, Warning, Warnings},
};
use galley_store::{Account, Limit, ListQuery, StoredTemplate};
use serde::Serialize;

use crate::{
    api::{
        auth::{Caller, Write},
        body::JsonBody,
        json,
        problem::{Kind, Problem},
        query::Parameters,
        samples,
    },
    app::App,
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
    let others = Others { app: &app, account: &caller.account, rulebook, edited };
    let Judged { mut violations, more, mut warnings, wording } = match edited {
        None => others.creation(&body).await?,
        Some(id) => others.edit(id, &body).await?,
    };
    if rulebook.names_have_languages {
        let samples = sample::mentions(Document::parse(&body)?.root());
        violations.extend(samples::violations(&app, others.account.id, &samples).await?);
    }
    if let Some(warning) = others.same_content(wording).await? {
        warnings.push(warning);
    }
    let verdict = Verdict {
        valid: violations.is_empty(),
        violations: &violations,
        more: Some(more).filter(|more| *more > 0),
        warnings: warnings.listed(),
        more_warnings: Some(warnings.omitted()).filter(|more| *more > 0),
    };
    Ok(json(StatusCode::OK, serde_json::to_string(&verdict).unwrap_or_default()))
}

/// What a document meets with, before samples and the words of others are looked at.
struct Judged {
    violations: Vec<Violation>,
    more: usize,
    warnings: Warnings,
    wording: Option<MessageText>,
}

impl Judged {
    fn of(refused: Option<&Violations>, warnings: Warnings, wording: Option<MessageText>) -> Self {
        let violations = refused.map_or(Vec::new(), |it| it.listed().to_vec());
        Self { violations, more: refused.map_or(0, Violations::omitted), warnings, wording }
    }
}

/// What of a document others are asked about, whether it is good or not.
struct Named {
    name: Option<String>,
    language: String,
    category: Option<Category>,
}

/// The account and the templates that it has already.
struct Others<'a> {
    app: &'a App,
    account: &'a Account,
    rulebook: &'static Rulebook,
    /// The template that the document would edit: it does not stand in its own way.
    edited: Option<TemplateId>,
}

impl Others<'_> {
    async fn creation(&self, body: &[u8]) -> Result<Judged, Problem> {
        let (Checked { template, warnings }, named) = {
            let document = Document::parse(body)?;
            let text = |key| document.root().get(key).and_then(Json::as_str).map(str::to_owned);
            let named = Named {
                name: text("name"),
                language: text("language").unwrap_or_default(),
                category: text("category").as_deref().and_then(Category::parse),
            };
            (Template::check(&document, self.rulebook), named)
        };
        let wording = template.as_ref().ok().and_then(MessageText::of);
        let mut judged = Judged::of(template.as_ref().err(), warnings, wording);
        judged.violations.extend(self.name_taken(&named).await?);
        judged.violations.extend(self.category_differs(&named).await?);
        judged.violations.extend(self.no_room().await?);
        Ok(judged)
    }

    /// The same that stands against an edit, in the order that the store asks.
    async fn edit(&self, id: TemplateId, body: &[u8]) -> Result<Judged, Problem> {
        let stored = self.app.store().template(self.account.id, id).await?;
        let stored = stored.ok_or(Problem::of(Kind::TemplateUnknown))?;
        let (edit, warnings) = {
            let document = Document::parse(body)?;
            Edit::check(&document, self.rulebook, &stored.template)
        };
        let mut judged = Judged::of(edit.as_ref().err(), warnings, None);
        if let Err(refusal) = stored.state.after(Trigger::Edit, self.account.review) {
            let problem = Problem::not_possible(Trigger::Edit.as_str(), &refusal);
            judged.violations.push(violation("", Rule::MoveNotPossible, problem.detail_text()));
        }
        let category = match &edit {
            Err(_) => None,
            Ok(Edit::Replace { content, category }) => {
                let category = category.unwrap_or(stored.template.category());
                let content = content.as_deref().unwrap_or(stored.template.content());
                judged.wording = MessageText::of_content(category, content);
                Some(("/category", category))
            }
            Ok(Edit::Restore(number)) => {
                let version = self.app.store().version(self.account.id, id, *number).await?;
                if version.is_none() {
                    let told = Problem::of(Kind::VersionUnknown);
                    let told =
                        violation("/restore_version", Rule::VersionUnknown, told.detail_text());
                    judged.violations.push(told);
                }
                version.map(|version| ("/restore_version", version.category))
            }
        };
        if let Some((pointer, category)) = category {
            judged.violations.extend(self.other_category(&stored, category, pointer).await?);
        }
        Ok(judged)
    }

    /// What stands against another category for a template that is there.
    async fn other_category(
        &self,
        stored: &StoredTemplate,
        category: Category,
        pointer: &str,
    ) -> Result<Option<Violation>, Problem> {
        let template = &stored.template;
        if category == template.category() {
            return Ok(None);
        }
        if !template.allow_category_change() {
            let problem = Problem::category_locked(template.category());
            return Ok(Some(violation(pointer, Rule::CategoryLocked, problem.detail_text())));
        }
        let named = Named {
            name: Some(template.name().to_owned()),
            language: template.language().to_owned(),
            category: Some(category),
        };
        let differs = self.category_differs(&named).await?;
        let live = self.rulebook.names_have_languages && stored.state.live_version().is_some();
        Ok(differs.or_else(|| {
            let problem = Problem::live_category(template.category());
            live.then(|| violation(pointer, Rule::CategoryLocked, problem.detail_text()))
        }))
    }

    /// Whether the account may have another template. How many an hour takes is not foretold.
    async fn no_room(&self) -> Result<Option<Violation>, Problem> {
        let Some(limits) = self.account.limits else { return Ok(None) };
        let listing = ListQuery::of(self.account.id, 1);
        let count = self.app.store().count_templates(listing).await?;
        let full = count >= u64::from(limits.templates);
        let told = Problem::limited(Limit::Templates);
        Ok(full.then(|| violation("", Rule::LimitReached, told.detail_text())))
    }

    async fn name_taken(&self, named: &Named) -> Result<Option<Violation>, Problem> {
        let Some(name) = &named.name else { return Ok(None) };
        let claim = (self.rulebook.claim)(self.account.id, name, &named.language);
        let Some(taken) = self.app.store().taken(self.account.id, &claim).await? else {
            return Ok(None);
        };
        let hint = match taken.own {
            Some(id) => format!(
                "it is your own template {id}: edit that (to try an edit out, add `?template={id}`), or choose another name"
            ),
            None => "choose another name".to_owned(),
        };
        let told = violation("/name", Rule::NameTaken, "another template has this name");
        Ok(Some(Violation { hint: Some(hint), ..told }))
    }

    /// Where languages share a name, they share a category.
    async fn category_differs(&self, named: &Named) -> Result<Option<Violation>, Problem> {
        let (true, Some(name), Some(category)) =
            (self.rulebook.names_have_languages, &named.name, named.category)
        else {
            return Ok(None);
        };
        let family = self.app.store().family(self.account.id, name).await?;
        let mut others = family.iter().filter(|other| Some(other.id) != self.edited);
        let Some(other) = others.find(|other| other.template.category() != category) else {
            return Ok(None);
        };
        let (word, language) = (other.template.category().as_str(), other.template.language());
        let message = format!("the same name in {language} is {word}");
        let told = violation("/category", Rule::CategoryDiffers, &message);
        let hint = Some(format!("make it {word}, or choose another name"));
        Ok(Some(Violation { hint, ..told }))
    }

    async fn same_content(&self, wording: Option<MessageText>) -> Result<Option<Warning>, Problem> {
        let wording = wording.filter(|_| self.rulebook.names_have_languages);
        let Some(wording) = wording else { return Ok(None) };
        let other =
            self.app.store().template_with_text(self.account.id, &wording, self.edited).await?;
        Ok(other.map(|id| MessageText::repeated_by(&format!("your template {id}"))))
    }
}

/// A violation that says all there is to say.
fn violation(pointer: &str, rule: Rule, message: &str) -> Violation {
    let (pointer, message) = (pointer.to_owned(), message.to_owned());
    Violation { pointer, rule, message, hint: None, span: None }
}
