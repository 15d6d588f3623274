//! Validation of a document without storing it: every reason to reject a create or an edit, and
//! warnings.

use std::sync::Arc;

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

use super::edit_rulebook;
use crate::{
    api::{
        auth::{Caller, Read},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        query::Parameters,
        samples,
    },
    app::App,
};

/// The response to a validation.
#[derive(Serialize)]
struct ValidationResponse<'a> {
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
    caller: Caller<Read>,
    parameters: Parameters,
    body: JsonBody,
) -> Result<Response, Problem> {
    let edited: Option<TemplateId> =
        parameters
            .only(&["template"])?
            .parse("template", "the id of a template", |id| id.parse().ok())?;
    let rulebook = caller.rulebook()?;
    let (account, bytes) = (&caller.account, body.len());
    let checks = ConflictChecks { app: &app, account, rulebook, edited, bytes };
    let stored = checks.edited_template().await?;
    let mut document = body.process(&app, Document::parse).await?;
    if rulebook.supports_translations {
        samples::replace_urls(&app, document.root_mut());
    }
    let CheckResult { mut violations, more, mut warnings, text } = match &stored {
        None => checks.create(&document).await?,
        Some(stored) => checks.edit(stored, &document).await?,
    };
    if rulebook.supports_translations {
        let samples = sample::references(document.root());
        violations.extend(samples::violations(&app, checks.account.id, &samples).await?);
    }
    if let Some(warning) = checks.same_content(text).await? {
        warnings.push(warning);
    }
    let response = ValidationResponse {
        valid: violations.is_empty(),
        violations: &violations,
        more: Some(more).filter(|more| *more > 0),
        warnings: warnings.listed(),
        more_warnings: Some(warnings.omitted()).filter(|more| *more > 0),
    };
    Ok(json(StatusCode::OK, serde_json::to_string(&response).unwrap_or_default()))
}

/// The result of the checks before those of samples and of equal texts.
struct CheckResult {
    violations: Vec<Violation>,
    more: usize,
    warnings: Warnings,
    text: Option<MessageText>,
}

impl CheckResult {
    fn new(found: Option<&Violations>, warnings: Warnings, text: Option<MessageText>) -> Self {
        let violations = found.map_or(Vec::new(), |it| it.listed().to_vec());
        Self { violations, more: found.map_or(0, Violations::omitted), warnings, text }
    }
}

/// The fields of a document that can conflict with other templates, even if it is invalid.
struct Identity {
    name: Option<String>,
    language: String,
    category: Option<Category>,
}

/// Checks a document against the account and its existing templates.
struct ConflictChecks<'a> {
    app: &'a App,
    account: &'a Account,
    rulebook: &'static Rulebook,
    /// The template that the document would edit. It does not conflict with itself.
    edited: Option<TemplateId>,
    /// Size of the document.
    bytes: usize,
}

impl ConflictChecks<'_> {
    /// The template that the document would edit.
    async fn edited_template(&self) -> Result<Option<Arc<StoredTemplate>>, Problem> {
        let Some(id) = self.edited else { return Ok(None) };
        let stored = self.app.store().template(self.account.id, id).await?;
        stored.ok_or(Problem::of(ProblemKind::TemplateUnknown)).map(Some)
    }

    async fn create(&self, document: &Document<'_>) -> Result<CheckResult, Problem> {
        let text = |key| document.root().get(key).and_then(Json::as_str).map(str::to_owned);
        let identity = Identity {
            name: text("name"),
            language: text("language").unwrap_or_default(),
            category: text("category").as_deref().and_then(Category::parse),
        };
        let check = || {
            let Checked { template, warnings } = Template::check(document, self.rulebook);
            let text = template.as_ref().ok().and_then(MessageText::from_template);
            (template, warnings, text)
        };
        let (template, warnings, text) = self.app.admission().process(self.bytes, check).await;
        let mut result = CheckResult::new(template.as_ref().err(), warnings, text);
        result.violations.extend(self.name_taken(&identity).await?);
        result.violations.extend(self.category_differs(&identity).await?);
        result.violations.extend(self.limit_reached().await?);
        Ok(result)
    }

    /// The checks of an edit, in the order in which the store makes them.
    async fn edit(
        &self,
        stored: &StoredTemplate,
        document: &Document<'_>,
    ) -> Result<CheckResult, Problem> {
        let rulebook = edit_rulebook(document, self.rulebook);
        let check = || Edit::check(document, rulebook, &stored.template);
        let (edit, warnings) = self.app.admission().process(self.bytes, check).await;
        let mut result = CheckResult::new(edit.as_ref().err(), warnings, None);
        if let Err(refusal) = stored.state.apply(Trigger::Edit, self.account.effective_review()) {
            let problem = Problem::invalid_transition(Trigger::Edit.as_str(), &refusal);
            result.violations.push(violation("", Rule::MoveNotPossible, problem.detail_text()));
        }
        let category = match &edit {
            Err(_) => None,
            Ok(Edit::Replace { content, category }) => {
                let category = category.unwrap_or(stored.template.category());
                let content = content.as_deref().unwrap_or(stored.template.content());
                result.text = MessageText::from_content(category, content);
                Some(("/category", category))
            }
            Ok(Edit::Restore(number)) => {
                let version = self.app.store().version(self.account.id, stored.id, *number).await?;
                if version.is_none() {
                    let message = format!("the template has no version {number}");
                    let hint = "check the number; the list of versions shows those that are kept";
                    let unknown = violation("/restore_version", Rule::VersionUnknown, &message);
                    let hint = Some(hint.to_owned());
                    result.violations.push(Violation { hint, ..unknown });
                }
                version.map(|version| ("/restore_version", version.category))
            }
        };
        if let Some((pointer, category)) = category {
            result.violations.extend(self.category_locked(stored, category, pointer).await?);
        }
        Ok(result)
    }

    /// Whether an existing template can change to another category.
    async fn category_locked(
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
        let identity = Identity {
            name: Some(template.name().to_owned()),
            language: template.language().to_owned(),
            category: Some(category),
        };
        let differs = self.category_differs(&identity).await?;
        let live = self.rulebook.supports_translations && stored.state.live_version().is_some();
        Ok(differs.or_else(|| {
            let problem = Problem::live_category_locked(template.category());
            live.then(|| violation(pointer, Rule::CategoryLocked, problem.detail_text()))
        }))
    }

    /// Whether the account has the maximum number of templates. The limit per hour is not checked.
    async fn limit_reached(&self) -> Result<Option<Violation>, Problem> {
        let Some(limits) = self.account.limits else { return Ok(None) };
        let all = ListQuery::new(self.account.id, 1);
        let count = self.app.store().count_templates(all).await?;
        let reached = count >= u64::from(limits.templates);
        let problem = Problem::limit_reached(Limit::Templates);
        Ok(reached.then(|| violation("", Rule::LimitReached, problem.detail_text())))
    }

    async fn name_taken(&self, identity: &Identity) -> Result<Option<Violation>, Problem> {
        let Some(name) = &identity.name else { return Ok(None) };
        let unique_key = (self.rulebook.unique_key)(self.account.id, name, &identity.language);
        let Some(conflict) = self.app.store().name_conflict(self.account.id, &unique_key).await?
        else {
            return Ok(None);
        };
        let hint = match conflict.existing_id {
            Some(id) => format!(
                "your own template {id} has it: edit that one (add `?template={id}` to validate an edit), or choose another name"
            ),
            None => "choose another name".to_owned(),
        };
        let taken = violation("/name", Rule::NameTaken, "is already in use");
        Ok(Some(Violation { hint: Some(hint), ..taken }))
    }

    /// All languages of a name have the same category.
    async fn category_differs(&self, identity: &Identity) -> Result<Option<Violation>, Problem> {
        let (true, Some(name), Some(category)) =
            (self.rulebook.supports_translations, &identity.name, identity.category)
        else {
            return Ok(None);
        };
        let translations = self.app.store().translations(self.account.id, name).await?;
        let mut others = translations.iter().filter(|other| Some(other.id) != self.edited);
        let Some(other) = others.find(|other| other.template.category() != category) else {
            return Ok(None);
        };
        let (expected, language) = (other.template.category().as_str(), other.template.language());
        let message = format!("differs from the same name in {language}, which is {expected}");
        let differs = violation("/category", Rule::CategoryDiffers, &message);
        let hint = Some(format!("use {expected}, or choose another name"));
        Ok(Some(Violation { hint, ..differs }))
    }

    async fn same_content(&self, text: Option<MessageText>) -> Result<Option<Warning>, Problem> {
        let text = text.filter(|_| self.rulebook.supports_translations);
        let Some(text) = text else { return Ok(None) };
        let other =
            self.app.store().template_with_text(self.account.id, &text, self.edited).await?;
        Ok(other.map(|id| MessageText::duplicate_warning(&format!("your template {id}"))))
    }
}

/// A violation without a hint.
fn violation(pointer: &str, rule: Rule, message: &str) -> Violation {
    let (pointer, message) = (pointer.to_owned(), message.to_owned());
    Violation { pointer, rule, message, hint: None, span: None }
}
