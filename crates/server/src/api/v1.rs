//! API v1.0.

pub(crate) mod audit;
pub(crate) mod emulator;
pub(crate) mod events;
pub(crate) mod templates;
pub(crate) mod tokens;
pub(crate) mod upstream;
pub(crate) mod webhooks;

use axum::Router;

use super::base_path::BasePath;
use crate::app::App;

/// All calls of API v1.0, for programs or for the console.
pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .merge(templates::routes(base))
        .merge(events::routes(base))
        .merge(webhooks::routes(base))
        .merge(tokens::routes(base))
        .merge(audit::routes(base))
        .merge(emulator::routes(base))
        .merge(upstream::routes(base))
}
