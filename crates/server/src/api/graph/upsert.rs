//! Creates or edits an authentication template in several languages in one call.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::{Document, Json, Member},
    emulator::faults::Call,
    rulebook::{Category, WHATSAPP},
    template::Template,
};
use galley_store::CreatedTemplate;

use super::{
    body::{GraphBody, invalid},
    caller::Caller,
    create, outcomes,
    parameters::invalid_parameter,
    submission::{Awaited, Submission},
};
use crate::{
    api::{auth::Write, json, problem::Problem},
    app::App,
    json_writer::ObjectWriter,
};

/// Maximum number of languages, a little more than WhatsApp supports.
const MAX_LANGUAGES: usize = 150;

pub(super) async fn upsert(
    State(app): State<App>,
    caller: Caller<Write>,
    mut body: GraphBody,
) -> Result<Response, Problem> {
    // Authentication templates have no header, so there are no samples to check.
    let templates = body.process(app.admission(), |_, document| read(&document?)).await?;
    drop(body);
    caller.strike(&app, Call::Create, templates.first().map(Template::name)).await?;
    let languages: Vec<String> = templates.iter().map(|it| it.language().to_owned()).collect();
    let at = app.clock().now();
    let new_template = |it| create::new_template(&caller, it, None, at);
    let new_templates = templates.into_iter().map(new_template).collect();
    let upserted = outcomes::upserted(app.store().upsert_templates(new_templates).await?)?;
    let submissions = submitted(&app, &caller, &upserted).await?;
    let mut out = String::from("{\"data\":[");
    let written = upserted.iter().zip(&languages).zip(&submissions);
    for (index, ((template, language), submission)) in written.enumerate() {
        if index > 0 {
            out.push(',');
        }
        let mut object = ObjectWriter::open(&mut out);
        object.unescaped("language", language);
        create::write_created(&mut object, template, submission);
        object.close();
    }
    out.push_str("]}");
    Ok(json(StatusCode::OK, out))
}

/// Waits until the provider of a connected account has the templates.
async fn submitted(
    app: &App,
    caller: &Caller<Write>,
    upserted: &[CreatedTemplate],
) -> Result<Vec<Submission>, Problem> {
    let mut awaited = Vec::with_capacity(upserted.len());
    for CreatedTemplate { id, .. } in upserted {
        let stored = if caller.account.is_connected {
            app.store().template(caller.account.id, *id).await?
        } else {
            None
        };
        awaited.push(Awaited::Version(*id, stored.map_or(1, |it| it.state.version)));
    }
    caller.submitted(app, &awaited).await
}

/// One template for each language that the document names.
fn read(document: &Document<'_>) -> Result<Vec<Template>, Problem> {
    let Json::Object(members) = document.root() else {
        return Err(invalid_parameter("languages", "must be a list of languages"));
    };
    // Unknown fields are removed here, once for all languages.
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
        let shared = known.iter().copied().cloned();
        let members = std::iter::once(language).chain(shared).collect();
        let document = Document::from_members(members, document.has_duplicates());
        let template = Template::read(&document, &WHATSAPP)
            .map_err(|violations| invalid(violations, &document))?;
        if template.category() != Category::Authentication {
            let problem = "must be AUTHENTICATION: create other templates one by one";
            return Err(invalid_parameter("category", problem));
        }
        templates.push(template);
    }
    Ok(templates)
}

/// The languages without duplicates.
fn languages<'d>(root: &'d Json<'_>) -> Result<Vec<&'d str>, Problem> {
    let invalid = || {
        let problem = format!("must be a list of 1 to {MAX_LANGUAGES} languages");
        invalid_parameter("languages", &problem)
    };
    let Some(Json::Array(items)) = root.get("languages") else { return Err(invalid()) };
    let mut languages: Vec<&str> = Vec::new();
    for item in items {
        let language = item.as_str().ok_or_else(invalid)?;
        if !languages.contains(&language) {
            languages.push(language);
        }
        if languages.len() > MAX_LANGUAGES {
            return Err(invalid());
        }
    }
    if languages.is_empty() { Err(invalid()) } else { Ok(languages) }
}
