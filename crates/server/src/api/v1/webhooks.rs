//! `{base}/webhooks`: all calls on webhook endpoints.

mod change;
mod deliveries;
mod read;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{api::base_path::BasePath, app::App};

pub(crate) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks";
pub(crate) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}";
pub(crate) const ROTATE: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/rotate";
pub(crate) const DELIVERIES: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/deliveries";
pub(crate) const REPLAY: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/replay";

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .route(&base.at(COLLECTION), get(read::list).post(change::create))
        .route(&base.at(ITEM), get(read::show).patch(change::edit).delete(change::delete))
        .route(&base.at(ROTATE), post(change::rotate))
        .route(&base.at(DELIVERIES), get(deliveries::list))
        .route(&base.at(REPLAY), post(deliveries::replay))
}
