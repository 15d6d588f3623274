//! The table of routes.

use axum::{
    Router,
    extract::MatchedPath,
    http::{Extensions, Uri},
    routing::get,
};

use crate::{
    api::{
        auth, docs, graph, health,
        problem::{Kind, Problem},
        problem_pages,
        request_context::{self, Trace},
        v1,
    },
    app::App,
    openapi,
};

/// Every route of the service. The path key stands in the pattern by name only.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .merge(health::routes())
        .route("/openapi.json", get(openapi::show))
        .merge(docs::routes())
        .route("/problems/{slug}", get(problem_pages::show))
        .merge(graph::public_routes())
        .layer(axum::middleware::map_request(request_context::note_route))
        // Calls with credentials note their route while those are looked at, which is quicker.
        .merge(v1::templates::routes())
        .merge(v1::events::routes())
        .merge(v1::webhooks::routes())
        .merge(graph::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
}

/// Clients of the Graph API can read nothing but its own form, and take the rest for success.
async fn not_found(extensions: Extensions, uri: Uri) -> Problem {
    let trace = Trace::note_route(&extensions);
    if !graph::is_path(uri.path()) {
        return Problem::of(Kind::NotFound);
    }
    trace.inspect(|trace| trace.note_graph());
    Problem::of(Kind::NotFound).detail(graph::NO_SUCH_PATH)
}

/// A path that no segment pattern takes is not found, whatever the method.
async fn method_not_allowed(extensions: Extensions, uri: Uri) -> Problem {
    let path = uri.path();
    let route = extensions.get::<MatchedPath>();
    let of_graph = route.is_some_and(|route| graph::is_route(route.as_str()));
    if of_graph && !graph::is_path(path) {
        return Problem::of(Kind::NotFound);
    }
    Trace::note_route(&extensions).filter(|_| of_graph).inspect(|trace| trace.note_graph());
    let plain = of_graph || !path.starts_with("/api/") || auth::Segments::of(path).is_some();
    Problem::of(if plain { Kind::MethodNotAllowed } else { Kind::NotFound })
}
