//! Creating a template.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use galley_domain::{
    document::Document,
    template::{Checked, Template},
    violation::Violations,
};
use galley_store::{Actor, CreatedTemplate, NewTemplate};

use crate::{
    api::{
        add_warning_count,
        auth::{Caller, Write},
        body::JsonBody,
        idempotency::{IdempotencyKey, REPLAYED, replay_or_reject},
        json,
        outcomes::{self, Created},
        problem::Problem,
    },
    app::App,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Write>,
    key: IdempotencyKey,
    body: JsonBody,
) -> Result<Response, Problem> {
    caller.require_v1_rulebook()?;
    let call = ["POST", &caller.phone_number_id, "message_templates"];
    let work = |bytes| (key.for_request(&call, bytes), read(&caller, bytes));
    let (idempotency, read) = body.process(&app, work).await;
    let CheckedBody { read, warnings } = read?;
    drop(body);
    let idempotency = idempotency?;
    let account = caller.account.id;
    let outcome = match read {
        Ok((template, unique_key)) => {
            let new = NewTemplate {
                account,
                review: caller.account.review,
                phone: Some(caller.phone_number_id),
                unique_key,
                translation_group: None,
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
    /// The template with its unique key.
    read: Result<(Template, String), Violations>,
    /// Number of warnings.
    warnings: usize,
}

/// Reads a body as a template with its unique key. The parsed document is dropped here, so that it
/// takes no memory while the request waits for the store.
fn read(caller: &Caller<Write>, body: &[u8]) -> Result<CheckedBody, Problem> {
    let document = Document::parse(body)?;
    let rulebook = caller.rulebook()?;
    let Checked { template, warnings } = Template::check(&document, rulebook);
    let read = template.map(|template| {
        let unique_key =
            (rulebook.unique_key)(caller.account.id, template.name(), template.language());
        (template, unique_key)
    });
    Ok(CheckedBody { read, warnings: warnings.count() })
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
