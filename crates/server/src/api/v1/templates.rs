//! `{base}/message_templates`: all calls on templates.

mod change;
mod create;
mod groups;
mod list;
mod proof;
mod read;
mod render;
mod validate;

use axum::{
    Router,
    http::{StatusCode, header},
    response::Response,
    routing::{get, post},
};
use galley_domain::{
    document::{Document, Json},
    rulebook::{Rulebook, V1},
};
use galley_store::{Account, StoredTemplate};

use crate::{
    api::{
        at_provider::AllAtProvider, base_path::BasePath, conditional::etag, json, problem::Problem,
        view,
    },
    app::App,
};

pub(super) use change::change_of;

pub(crate) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates";
pub(crate) const VALIDATE: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/validate";
pub(crate) const PROOF: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/proof";
pub(crate) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}";
pub(crate) const VERSIONS: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/versions";
pub(crate) const REVIEW: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/review";
pub(crate) const RENDER: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/render";
pub(crate) const ITEM_PROOF: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/proof";

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .route(&base.at(COLLECTION), get(list::list).post(create::create))
        .route(&base.at(VALIDATE), post(validate::validate))
        .route(&base.at(PROOF), post(proof::preview))
        .route(&base.at(ITEM), get(read::show).patch(change::edit).delete(change::delete))
        .route(&base.at(VERSIONS), get(read::versions))
        .route(&base.at(REVIEW), post(change::review))
        .route(&base.at(RENDER), post(render::render))
        .route(&base.at(ITEM_PROOF), get(proof::show))
}

/// The response with one template and its `ETag`.
pub(super) async fn template_response(
    app: &App,
    account: &Account,
    stored: &StoredTemplate,
) -> Result<Response, Problem> {
    let all = AllAtProvider::read(app, account, &[(stored.id, stored.state.version)]).await?;
    let mut response = json(StatusCode::OK, view::template(stored, all.get(stored.id)));
    response.headers_mut().insert(header::ETAG, etag(stored.revision));
    Ok(response)
}

/// The rulebook along which an edit is read: that of the account, except that a version is restored in
/// the same way under all of them.
fn edit_rulebook(document: &Document<'_>, rulebook: &'static Rulebook) -> &'static Rulebook {
    match document.root() {
        root @ Json::Object(_) if root.get("restore_version").is_some() => &V1,
        _ => rulebook,
    }
}
