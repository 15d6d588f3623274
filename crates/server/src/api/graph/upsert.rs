//! Creating or editing the same authentication template in several languages at once.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::{Document, Json, Member},
    rulebook::{Category, WHATSAPP},
    template::Template,
};
use galley_store::UpsertOutcome;

use super::{
    body::{JsonText, invalid},
    caller::Caller,
    create,
    node::done,
    parameters::bad,
};
use crate::{
    api::{
        auth::Write,
        json,
        problem::{Kind, Problem},
    },
    app::App,
    json_writer::Object,
};

/// As many languages as there are, and some.
const MOST_LANGUAGES: usize = 150;

pub(super) async fn upsert(
    State(app): State<App>,
    caller: Caller<Write>,
    JsonText(body): JsonText,
) -> Result<Response, Problem> {
    // No template for codes has a header, so that there are no samples to look for.
    let templates = read(&body)?;
    let languages: Vec<String> = templates.iter().map(|it| it.language().to_owned()).collect();
    let news = templates.into_iter().map(|it| create::new(&app, &caller, it, None)).collect();
    let receipts = match app.store().upsert_templates(news).await? {
        UpsertOutcome::Done(receipts) => receipts,
        UpsertOutcome::NotCreated(creation) => vec![create::receipt(creation)?],
        UpsertOutcome::NotEdited(id, changed) => {
            return Err(done(changed, id, "edit").err().unwrap_or(Problem::of(Kind::Internal)));
        }
    };
    let mut out = String::from("{\"data\":[");
    for (index, (receipt, language)) in receipts.iter().zip(&languages).enumerate() {
        if index > 0 {
            out.push(',');
        }
        let mut object = Object::open(&mut out);
        object.plain("id", receipt.id);
        object.word("status", receipt.status.as_str());
        object.word("language", language);
        object.word("category", receipt.category.as_str());
        object.close();
    }
    out.push_str("]}");
    Ok(json(StatusCode::OK, out))
}

/// One template for each language that the document names.
fn read(body: &[u8]) -> Result<Vec<Template>, Problem> {
    let document = Document::parse(body)?;
    let Json::Object(members) = document.root() else {
        return Err(bad("languages", "a list of languages"));
    };
    // What no template has is passed over, once for all languages.
    let is_known = |it: &&Member<'_>| {
        let fields = WHATSAPP.template.fields;
        it.key != "language" && fields.iter().any(|field| field.name == it.key)
    };
    let known: Vec<&Member<'_>> = members.iter().filter(is_known).collect();
    let mut templates = Vec::new();
    for language in languages(document.root())? {
        let language = Member {
            key: "language".into(),
            value: Json::String(language.into()),
            repeated: false,
        };
        let others = known.iter().copied().cloned();
        let members = std::iter::once(language).chain(others).collect();
        let document = Document::of(members, document.has_duplicates());
        let template = Template::read(&document, &WHATSAPP)
            .map_err(|violations| invalid(violations, &document))?;
        if template.category() != Category::Authentication {
            return Err(bad("category", "AUTHENTICATION here: create others one by one"));
        }
        templates.push(template);
    }
    Ok(templates)
}

/// The languages, each once.
fn languages<'d>(root: &'d Json<'_>) -> Result<Vec<&'d str>, Problem> {
    let wrong = || bad("languages", &format!("a list of 1 to {MOST_LANGUAGES} languages"));
    let Some(Json::Array(items)) = root.get("languages") else { return Err(wrong()) };
    let mut languages: Vec<&str> = Vec::new();
    for item in items {
        let language = item.as_str().ok_or_else(wrong)?;
        if !languages.contains(&language) {
            languages.push(language);
        }
        if languages.len() > MOST_LANGUAGES {
            return Err(wrong());
        }
    }
    if languages.is_empty() { Err(wrong()) } else { Ok(languages) }
}
