//! Creating a template.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use galley_domain::{
    document::Document,
    template::{
        Checked, Template,
        sample::{self, SampleReference},
    },
    violation::Violations,
};
use galley_store::{Actor, CreatedTemplate, NewTemplate, TranslationGroup};

use crate::{
    api::{
        add_warning_count,
        auth::{Caller, Write},
        body::JsonBody,
        idempotency::{IdempotencyKey, REPLAYED, replay_or_reject},
        json,
        outcomes::{self, Created},
        problem::Problem,
        samples,
    },
    app::App,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    body: JsonBody,
) -> Result<Response, Problem> {
    let phone = caller.phone_number_id.as_deref().unwrap_or_default();
    let call = ["POST", phone, "message_templates"];
    let work = |bytes| (key.for_request(&call, bytes), read(&app, &caller, bytes));
    let (idempotency, read) = body.process(&app, work).await;
    let CheckedBody { read, samples, warnings } = read?;
    drop(body);
    let idempotency = idempotency?;
    let account = caller.account.id;
    let read = if samples.is_empty() {
        read
    } else {
        samples::checked(&app, account, &samples, read).await?
    };
    let outcome = match read {
        Ok(NamedTemplate { template, unique_key, translation_group }) => {
            let new = NewTemplate {
                account,
                review: caller.account.effective_review(),
                phone: caller.phone_number_id,
                unique_key,
                translation_group,
                template,
                actor: Actor::Token(caller.token),
                trace: caller.trace,
                idempotency,
                at: app.clock().now(),
            };
            app.store().create_template(new).await?
        }
        Err(violations) => replay_or_reject(&app, account, idempotency, violations.into()).await?,
    };
    let created = outcomes::created(outcome)?;
    let mut response = create_response(&created);
    add_warning_count(&mut response, warnings);
    Ok(response)
}

/// What is kept of a body while the request waits for the store.
struct CheckedBody {
    read: Result<NamedTemplate, Violations>,
    /// The media samples to which the document refers.
    samples: Vec<SampleReference>,
    /// Number of warnings.
    warnings: usize,
}

/// A template with what its rulebook makes of its name.
struct NamedTemplate {
    template: Template,
    unique_key: String,
    translation_group: Option<TranslationGroup>,
}

/// Reads a body as a template of the account's rulebook. The parsed document is dropped here, so that it
/// takes no memory while the request waits for the store.
fn read(app: &App, caller: &Caller<Write>, body: &[u8]) -> Result<CheckedBody, Problem> {
    let mut document = Document::parse(body)?;
    let (account, rulebook) = (caller.account.id, caller.rulebook()?);
    let has_translations = rulebook.supports_translations;
    // Only this rulebook has uploaded samples.
    if has_translations {
        samples::replace_urls(app, document.root_mut());
    }
    let samples = if has_translations { sample::references(document.root()) } else { Vec::new() };
    let Checked { template, warnings } = Template::check(&document, rulebook);
    let read = template.map(|template| NamedTemplate {
        unique_key: (rulebook.unique_key)(account, template.name(), template.language()),
        translation_group: has_translations.then(|| TranslationGroup::of(account, template.name())),
        template,
    });
    Ok(CheckedBody { read, samples, warnings: warnings.count() })
}

/// The response to a create, new or replayed.
fn create_response(created: &Created) -> Response {
    let CreatedTemplate { id, status, category } = created.template;
    let (id, status, category) = (id.to_string(), status.as_str(), category.as_str());
    let body =
        [r#"{"id":""#, &id, r#"","status":""#, status, r#"","category":""#, category, r#""}"#];
    let mut response = json(StatusCode::CREATED, body.concat());
    // Relative, so that no API key appears in a response.
    if let Ok(location) = HeaderValue::from_str(&["message_templates/", &id].concat()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if created.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}
