//! The surface that clients of WhatsApp's Graph API use unchanged, at `/{version}/…`. It calls the
//! same store as API v1.0; what differs is who is asked for what, how documents may be written, and
//! how answers and refusals look.

mod body;
mod caller;
mod create;
mod delete;
mod error;
mod list;
mod media;
mod node;
mod parameters;
mod range;
mod samples;
mod stream;
mod subscribed_apps;
mod uploads;
mod upsert;
mod view;

use axum::{
    Router,
    http::StatusCode,
    response::Response,
    routing::{get, post},
};

use crate::{api::json, app::App};

pub(crate) use body::invalid;
pub(crate) use caller::is_path;
pub(crate) use error::written;
pub(crate) use uploads::LONGEST as LONGEST_UPLOAD;

pub(crate) const NODE: &str = "/{version}/{node}";
pub(crate) const UNPAUSE: &str = "/{version}/{node}/unpause";
pub(crate) const TEMPLATES: &str = "/{version}/{node}/message_templates";
/// Not in the Graph API, but at least one published client reads templates there.
pub(crate) const TEMPLATE: &str = "/{version}/{node}/message_templates/{id}";
pub(crate) const UPLOADS: &str = "/{version}/{node}/uploads";
/// Where a sample is read by whoever knows its name.
pub(crate) const MEDIA: &str = "/media/{name}";
pub(crate) const SUBSCRIBED_APPS: &str = "/{version}/{node}/subscribed_apps";
pub(crate) const UPSERT: &str = "/{version}/{node}/upsert_message_templates";

/// What is told of a path that begins as this surface's do and leads nowhere.
pub(crate) const NO_SUCH_PATH: &str = "Behind the version stands a template's id, the account's id, or the account's id with `message_templates` or `upsert_message_templates`; samples are sent to `uploads`.";

/// Whether the pattern is one of this surface's.
pub(crate) fn is_route(pattern: &str) -> bool {
    pattern.starts_with("/{version}/")
}

/// What is missing at the beginning of a path that begins with an id: the Graph API takes paths
/// without a version, too, and at least one published client sends only such.
pub(crate) fn version_left_out(path: &str) -> &'static str {
    let first = path.split('/').nth(1).unwrap_or_default();
    let is_id = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    if is_id { "/v23.0" } else { "" }
}

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(NODE, get(node::show).post(node::change).delete(uploads::cancel))
        .route(UNPAUSE, post(node::unpause))
        .route(TEMPLATES, get(list::list).post(create::create).delete(delete::delete))
        .route(TEMPLATE, get(node::show_below))
        .route(UPSERT, post(upsert::upsert))
        .route(UPLOADS, post(uploads::begin))
        .route(
            SUBSCRIBED_APPS,
            get(subscribed_apps::list)
                .post(subscribed_apps::subscribe)
                .delete(subscribed_apps::unsubscribe),
        )
}

/// What anybody may read who knows its address.
pub(crate) fn public_routes() -> Router<App> {
    Router::new().route(MEDIA, get(media::show))
}

/// What is answered when there is nothing to tell but that it worked.
fn success() -> Response {
    json(StatusCode::OK, r#"{"success":true}"#.to_owned())
}
