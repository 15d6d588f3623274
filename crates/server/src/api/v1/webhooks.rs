//! `{base}/webhooks`: all calls on webhook endpoints.

mod change;
mod deliveries;
mod read;

use axum::{
    Router,
    routing::{get, post},
};

use crate::app::App;

pub(crate) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks";
pub(crate) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}";
pub(crate) const ROTATE: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/rotate";
pub(crate) const DELIVERIES: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/deliveries";
pub(crate) const REPLAY: &str = "/api/v1.0/{phone_number_id}/{key}/webhooks/{id}/replay";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(COLLECTION, get(read::list).post(change::create))
        .route(ITEM, get(read::show).patch(change::edit).delete(change::delete))
        .route(ROTATE, post(change::rotate))
        .route(DELIVERIES, get(deliveries::list))
        .route(REPLAY, post(deliveries::replay))
}
