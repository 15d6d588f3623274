//! Creating or editing the same authentication template in several languages at once.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    edit::Edit,
    json::{Document, Json},
    rulebook::WHATSAPP,
    template::{Category, Template},
};
use galley_store::Receipt;

use super::{
    body::{JsonText, invalid},
    caller::Caller,
    create::kept,
    node::done,
    parameters::bad,
    view,
};
use crate::{
    App,
    http::{caller::Write, json, problem::Problem},
    object::Object,
};

/// As many languages as there are, and some.
const MOST_LANGUAGES: usize = 150;

pub(super) async fn upsert(
    State(app): State<App>,
    caller: Caller<Write>,
    JsonText(body): JsonText,
) -> Result<Response, Problem> {
    // All are judged before the first is kept.
    let templates = read(&body)?;
    let mut out = String::from("{\"data\":[");
    for (index, template) in templates.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let language = template.language().to_owned();
        let Receipt { id, status, category } = one(&app, &caller, template).await?;
        let mut object = Object::open(&mut out);
        object.plain("id", id);
        object.word("status", status.word());
        object.word("language", &language);
        object.word("category", category.word());
        object.close();
    }
    out.push_str("]}");
    Ok(json(StatusCode::OK, out))
}

/// One template for each language that the document names.
fn read(body: &[u8]) -> Result<Vec<Template>, Problem> {
    let document = Document::parse(body)?;
    let root = document.root();
    let Some(Json::List(languages)) = root.get("languages") else {
        return Err(bad("languages", "a list of languages"));
    };
    let languages: Option<Vec<&str>> = languages.iter().map(Json::as_text).collect();
    let languages = languages.filter(|it| (1..=MOST_LANGUAGES).contains(&it.len()));
    let languages = languages.ok_or_else(|| bad("languages", "a list of 1 to 150 languages"))?;
    languages.into_iter().map(|language| in_language(root, language)).collect()
}

fn in_language(root: &Json<'_>, language: &str) -> Result<Template, Problem> {
    let Json::Object(members) = root else { return Err(bad("languages", "a list of languages")) };
    let mut text = String::new();
    let mut object = Object::open(&mut text);
    object.text("language", language);
    let others = members.iter().filter(|it| !["language", "languages"].contains(&&*it.key));
    for member in others {
        let mut value = String::new();
        view::write_json(&mut value, &member.value, None);
        object.raw(&member.key, &value);
    }
    object.close();
    let document = Document::parse(text.as_bytes())?;
    let template = Template::read(&document, &WHATSAPP)
        .map_err(|violations| invalid(violations, &document))?;
    if template.category() != Category::Authentication {
        return Err(bad("category", "AUTHENTICATION here: create others one by one"));
    }
    Ok(template)
}

/// Edits the template of that name and language, or makes it.
async fn one(app: &App, caller: &Caller<Write>, template: Template) -> Result<Receipt, Problem> {
    let account = caller.account.id;
    let claim = (WHATSAPP.claim)(account, template.name(), template.language());
    let taken = app.store().taken(account, &claim).await?;
    let Some(id) = taken.and_then(|taken| taken.own) else {
        return kept(app, caller, template, None).await;
    };
    let edit = Edit::Replace {
        content: Some(template.content().to_owned()),
        category: Some(template.category()),
    };
    let changed = app.store().edit_template(caller.change(app, id), edit).await?;
    let stored = done(changed, id, "edit")?;
    let (status, category) = (stored.state.status(), stored.template.category());
    Ok(Receipt { id, status, category })
}
