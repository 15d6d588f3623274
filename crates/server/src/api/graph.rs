//! The Graph surface at `/{version}/…`, which clients of WhatsApp's Graph API can use unchanged. It
//! uses the same store as API v1.0, but differs in authentication, in the accepted forms of
//! documents, and in the format of responses and errors.

mod app_callback;
mod archive;
mod body;
mod caller;
mod compare;
mod create;
mod debug_token;
mod delete;
mod error;
mod faithful;
mod faults;
mod ids;
mod list;
mod media;
mod messages;
mod node;
mod not_offered;
mod outcomes;
mod parameters;
mod previews;
mod samples;
mod stream;
mod submission;
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

pub(crate) use caller::is_path;
pub(crate) use error::error_body;
pub(crate) use not_offered::path_not_found;
pub(crate) use parameters::MAX_PAGE_ITEMS;
pub(crate) use uploads::{SAMPLE_TYPES, TRANSFER_TIMEOUT};

pub(crate) const NODE: &str = "/{version}/{node}";
pub(crate) const UNPAUSE: &str = "/{version}/{node}/unpause";
pub(crate) const TEMPLATES: &str = "/{version}/{node}/message_templates";
/// Not part of the Graph API, but at least one published client reads templates at this path.
pub(crate) const TEMPLATE: &str = "/{version}/{node}/message_templates/{id}";
pub(crate) const UPLOADS: &str = "/{version}/{node}/uploads";
/// Serves a sample to every client that knows its name.
pub(crate) const MEDIA: &str = "/media/{name}";
pub(crate) const SUBSCRIBED_APPS: &str = "/{version}/{node}/subscribed_apps";
/// Sends a message; only emulator accounts have this call.
pub(crate) const MESSAGES: &str = "/{version}/{node}/messages";
pub(crate) const ARCHIVE: &str = "/{version}/{node}/message_templates/archive";
pub(crate) const UNARCHIVE: &str = "/{version}/{node}/message_templates/unarchive";
pub(crate) const COMPARE: &str = "/{version}/{node}/compare";
pub(crate) const PREVIEWS: &str = "/{version}/{node}/message_template_previews";
pub(crate) const UPSERT: &str = "/{version}/{node}/upsert_message_templates";

/// Whether the pattern of a route belongs to this surface.
pub(crate) fn is_route(pattern: &str) -> bool {
    pattern.starts_with("/{version}/")
}

/// The version to add to a path that begins with an id. The Graph API also accepts paths without a
/// version, and at least one published client sends only those.
pub(crate) fn implied_version(path: &str) -> &'static str {
    let first = path.split('/').nth(1).unwrap_or_default();
    let is_id = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    if is_id { "/v23.0" } else { "" }
}

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(NODE, get(node::show).post(node::change).delete(uploads::cancel))
        .route(UNPAUSE, post(node::unpause))
        .route(TEMPLATES, get(list::list).post(create::create).delete(delete::delete))
        .route(TEMPLATE, get(node::show_template))
        .route(ARCHIVE, post(archive::archive))
        .route(UNARCHIVE, post(archive::unarchive))
        .route(MESSAGES, post(messages::send))
        .route(COMPARE, get(compare::compare))
        .route(PREVIEWS, get(previews::list))
        .route(UPSERT, post(upsert::upsert))
        .route(UPLOADS, post(uploads::begin))
        .route(
            SUBSCRIBED_APPS,
            get(subscribed_apps::list)
                .post(subscribed_apps::subscribe)
                .delete(subscribed_apps::unsubscribe),
        )
}

/// The routes without authentication.
pub(crate) fn public_routes() -> Router<App> {
    Router::new().route(MEDIA, get(media::show))
}

/// The response to a successful call that returns no data.
fn success() -> Response {
    json(StatusCode::OK, r#"{"success":true}"#.to_owned())
}
