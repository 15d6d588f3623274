//! `{base}/message_templates`: all calls on templates.

mod change;
mod create;
mod list;
mod read;
mod render;
mod validate;

use axum::{
    Router,
    http::{StatusCode, header},
    response::Response,
    routing::{get, post},
};
use galley_store::StoredTemplate;

use crate::api::{conditional::etag, json, view};
use crate::app::App;

pub(crate) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates";
pub(crate) const VALIDATE: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/validate";
pub(crate) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}";
pub(crate) const VERSIONS: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/versions";
pub(crate) const REVIEW: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/review";
pub(crate) const RENDER: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/render";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(COLLECTION, get(list::list).post(create::create))
        .route(VALIDATE, post(validate::validate))
        .route(ITEM, get(read::show).patch(change::edit).delete(change::delete))
        .route(VERSIONS, get(read::versions))
        .route(REVIEW, post(change::review))
        .route(RENDER, post(render::render))
}

/// The response with one template and its `ETag`.
fn template_response(stored: &StoredTemplate) -> Response {
    let mut response = json(StatusCode::OK, view::template(stored));
    response.headers_mut().insert(header::ETAG, etag(stored.revision));
    response
}
