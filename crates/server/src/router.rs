//! The routing table.

use std::future::ready;

use axum::{
    Router,
    extract::{MatchedPath, Request},
    http::{Extensions, HeaderMap, Method, Uri},
    routing::get,
};

use crate::{
    api::{
        auth,
        base_path::BasePath,
        console::{cross_site::ConsoleOrigin, session},
        docs, graph, health, index_page,
        problem::{Problem, ProblemKind},
        problem_pages,
        request_context::{self, RequestContext},
        schemas, upstream_hook, v1, wrong_path,
    },
    app::App,
    console, cors, openapi,
};

/// All routes of the service. Patterns name the API key as a parameter, so that logs and metrics
/// never contain its value.
pub(crate) fn routes(console: Option<ConsoleOrigin>) -> Router<App> {
    let routes = Router::new()
        .merge(health::routes())
        .route("/openapi.json", get(openapi::show))
        .route("/openapi-graph.json", get(openapi::show_graph))
        .merge(schemas::routes())
        .merge(docs::routes())
        .merge(index_page::routes(console.is_some()))
        .route("/problems", get(problem_pages::list))
        .route("/problems/{slug}", get(problem_pages::show))
        .merge(graph::public_routes())
        .merge(upstream_hook::routes())
        .layer(axum::middleware::map_request(request_context::record_route))
        // Calls with credentials record their route during authentication, which is faster than a
        // middleware.
        .merge(v1::routes(BasePath::V1))
        .merge(graph::routes());
    let routes = match console {
        Some(origin) => routes.merge(console_routes(origin)),
        None => routes,
    };
    routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed)
}

/// The routes of the console. Pages of other origins cannot make its calls; everyone may load its
/// pages, which contain no data.
fn console_routes(origin: ConsoleOrigin) -> Router<App> {
    let check = move |request: Request| {
        RequestContext::from_extensions(request.extensions());
        let checked = origin.check(request.method(), request.headers());
        ready(checked.map(|()| request))
    };
    Router::new()
        .merge(session::routes())
        .merge(v1::routes(BasePath::Console))
        .layer(axum::middleware::map_request(check))
        .merge(console::routes())
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
    if cors::is_preflight(&method, &headers) && cors::is_for_other_origins(path) {
        return problem.detail(cors::NOT_ALLOWED);
    }
    match route.and_then(|route| wrong_path::method_hint(&method, route.as_str())) {
        Some(hint) => problem.detail(hint),
        None => problem,
    }
}
