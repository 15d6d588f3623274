//! The routing table.

use axum::{
    Router,
    extract::MatchedPath,
    http::{Extensions, HeaderMap, Method, Uri},
    routing::get,
};

use crate::observability::access_log::MONITORING_ROUTES;
use crate::{
    api::{
        auth, docs, graph, health, index_page,
        problem::{Problem, ProblemKind},
        problem_pages,
        request_context::{self, RequestContext},
        schemas, v1, wrong_path,
    },
    app::App,
    cors, openapi,
};

/// All routes of the service. Patterns name the API key as a parameter, so that logs and metrics
/// never contain its value.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .merge(health::routes())
        .route("/openapi.json", get(openapi::show))
        .route("/openapi-graph.json", get(openapi::show_graph))
        .merge(schemas::routes())
        .merge(docs::routes())
        .route("/", get(index_page::show))
        .route("/problems", get(problem_pages::list))
        .route("/problems/{slug}", get(problem_pages::show))
        .merge(graph::public_routes())
        .layer(axum::middleware::map_request(request_context::record_route))
        // Calls with credentials record their route during authentication, which is faster than a
        // middleware.
        .merge(v1::templates::routes())
        .merge(v1::events::routes())
        .merge(v1::webhooks::routes())
        .merge(v1::tokens::routes())
        .merge(v1::audit::routes())
        .merge(graph::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
}

/// The routes of the health listener.
pub(crate) fn health_routes() -> Router<App> {
    health::routes()
        .layer(axum::middleware::map_request(request_context::record_route))
        .fallback(async || {
            Problem::of(ProblemKind::NotFound)
                .detail("This address serves only `/healthz`, `/readyz` and `/metrics`.")
        })
        .method_not_allowed_fallback(async || Problem::of(ProblemKind::MethodNotAllowed))
}

/// Responds to unknown paths. Clients of the Graph API only understand its own error format and
/// take any other for success.
async fn not_found(extensions: Extensions, uri: Uri) -> Problem {
    let context = RequestContext::from_extensions(&extensions);
    if !graph::is_path(uri.path()) {
        return wrong_path::not_found(uri.path());
    }
    context.inspect(|context| context.mark_graph());
    graph::path_not_found(uri.path())
}

/// Responds to unsupported methods. A path with invalid segments is not found, whatever the method.
async fn method_not_allowed(
    extensions: Extensions,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Problem {
    let path = uri.path();
    let route = extensions.get::<MatchedPath>();
    let is_graph = route.is_some_and(|route| graph::is_route(route.as_str()));
    if is_graph && !graph::is_path(path) {
        return wrong_path::not_found(path);
    }
    let context = RequestContext::from_extensions(&extensions);
    context.filter(|_| is_graph).inspect(|context| context.mark_graph());
    let exists =
        is_graph || !path.starts_with("/api/") || auth::PathSegments::parse(path).is_some();
    if !exists {
        return wrong_path::not_found(path);
    }
    let problem = Problem::of(ProblemKind::MethodNotAllowed);
    // No setting allows other origins to read the paths for operators.
    if cors::is_preflight(&method, &headers) && !MONITORING_ROUTES.contains(&path) {
        return problem.detail(cors::NOT_ALLOWED);
    }
    match route.and_then(|route| wrong_path::method_hint(&method, route.as_str())) {
        Some(hint) => problem.detail(hint),
        None => problem,
    }
}
