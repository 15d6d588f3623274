//! Creating a template.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use galley_domain::{
    document::Json,
    emulator::faults::Call,
    id::AccountId,
    rulebook::WHATSAPP,
    template::{Checked, Template},
};
use galley_store::{Actor, CreatedTemplate, Idempotency, NewTemplate, TranslationGroup};
use jiff::Timestamp;

use super::{
    body::GraphBody,
    caller::Caller,
    outcomes, samples,
    submission::{Awaited, Submission},
};
use crate::{
    api::{
        add_warning_count,
        auth::Write,
        idempotency::{IdempotencyKey, REPLAYED, replay_or_reject},
        json,
        outcomes::Created,
        problem::Problem,
    },
    app::App,
    json_writer::ObjectWriter,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    body: GraphBody,
) -> Result<Response, Problem> {
    let account = caller.account.id;
    let checked = read(&app, account, key, body).await?;
    caller.strike(&app, Call::Create, checked.name.as_deref()).await?;
    let CheckedBody { template, warnings, idempotency, .. } = checked;
    let outcome = match template {
        Ok(template) => {
            let new = new_template(&caller, template, idempotency, app.clock().now());
            app.store().create_template(new).await?
        }
        Err(problem) => replay_or_reject(&app, account, idempotency, problem).await?,
    };
    let Created { template, replayed } = outcomes::created(outcome)?;
    let submission = caller.submitted_one(&app, Awaited::Version(template.id, 1)).await?;
    let mut body = String::new();
    let mut object = ObjectWriter::open(&mut body);
    write_created(&mut object, &template, &submission);
    object.close();
    let mut response = json(StatusCode::OK, body);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    add_warning_count(&mut response, warnings);
    Ok(response)
}

/// Writes id, status and category: those of the provider if it has created the template.
pub(super) fn write_created(
    object: &mut ObjectWriter<'_>,
    template: &CreatedTemplate,
    submission: &Submission,
) {
    if let Submission::Done(Some(row)) = submission {
        object.unescaped("id", row.id.as_str());
        object.string("status", row.status.as_str());
        object.string("category", &row.category);
        return;
    }
    object.display("id", template.id);
    object.unescaped("status", template.status.as_str());
    object.unescaped("category", template.category.as_str());
    submission.write(object);
}

/// What is kept of a body while the request waits for the store.
struct CheckedBody {
    /// The name in the document.
    name: Option<String>,
    template: Result<Template, Problem>,
    /// Number of warnings.
    warnings: usize,
    idempotency: Option<Idempotency>,
}

/// Reads a body as a template, counts its warnings and checks its samples. Body and document are
/// dropped here, so that they take no memory while the request waits for the store.
async fn read(
    app: &App,
    account: AccountId,
    key: IdempotencyKey,
    mut body: GraphBody,
) -> Result<CheckedBody, Problem> {
    let processed = body.process(app.admission(), |text, document| {
        let idempotency = key.for_request(&["POST", "message_templates"], text);
        let checked = document.map(|document| {
            let document = samples::with_handles(app, document);
            let checked = Template::check(&document, &WHATSAPP);
            (document, checked)
        });
        (idempotency, checked)
    });
    let (idempotency, checked) = processed.await;
    let idempotency = idempotency?;
    let (name, template, warnings) = match checked {
        Ok((document, Checked { template, warnings })) => {
            let name = document.root().get("name").and_then(Json::as_str).map(str::to_owned);
            let template = samples::checked(app, account, &document, template).await;
            (name, template, warnings.count())
        }
        Err(problem) => (None, Err(problem), 0),
    };
    Ok(CheckedBody { name, template, warnings, idempotency })
}

/// A template to store, in the translation group of its name.
pub(super) fn new_template(
    caller: &Caller<Write>,
    template: Template,
    idempotency: Option<Idempotency>,
    at: Timestamp,
) -> NewTemplate {
    let account = caller.account.id;
    NewTemplate {
        account,
        review: caller.account.effective_review(),
        phone: None,
        unique_key: (WHATSAPP.unique_key)(account, template.name(), template.language()),
        translation_group: Some(TranslationGroup::of(account, template.name())),
        template,
        actor: Actor::Token(caller.token),
        trace: caller.trace,
        idempotency,
        at,
    }
}
