//! The service: where a request enters and where its response leaves.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, StatusCode, Uri, header, uri::PathAndQuery},
    response::{IntoResponse, Response},
};
use tower::ServiceExt as _;

use crate::{
    api::{
        graph,
        problem::{Kind, Problem},
        request_context::{REQUEST_ID, Trace},
    },
    app::App,
    observability::access_log::Line,
    router,
};

/// The whole service as one value: `serve` binds it to a socket, tests call it directly.
#[derive(Clone)]
pub struct Galley {
    app: App,
    router: Router,
}

impl Galley {
    /// The service around an [`App`].
    pub fn new(app: App) -> Self {
        let router = router::routes().with_state(app.clone());
        Self { app, router }
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Answers one request: gives it an id, routes it within its deadline, and notes what came
    /// of it.
    pub async fn answer(&self, mut request: Request) -> Response {
        let trace = Arc::new(Trace::new(&self.app, request.headers()));
        let method = method_name(request.method());
        request.extensions_mut().insert(Arc::clone(&trace));
        complete_path(&mut request);
        let mut routed = pin!(without_panic(self.router.clone().oneshot(request)));
        let deadline = self.app.limits().request;
        let mut routed_in_time = tokio::time::timeout(deadline, routed.as_mut()).await;
        if routed_in_time.is_err() && trace.is_upload() {
            // It ends by itself before that, unless the store does not answer.
            let longest = graph::LONGEST_UPLOAD + deadline;
            routed_in_time = tokio::time::timeout(longest, routed).await;
        }
        let mut response = match routed_in_time {
            Ok(Some(Ok(response))) => response,
            Ok(Some(Err(never))) => match never {},
            Ok(None) => Problem::of(Kind::Internal).into_response(),
            Err(_) => Problem::of(Kind::Deadline).into_response(),
        };
        let problem = finish(&mut response, &trace);
        let took = self.app.clock().monotonic().saturating_sub(trace.started());
        let (status, route) = (response.status(), trace.route());
        self.app.metrics().request(method, route, status.as_u16(), took);
        self.app.0.access.write(&Line {
            at: trace.at(),
            method,
            route,
            status: status.as_u16(),
            took,
            request_id: trace.request_id(),
            token: trace.token(),
            problem,
        });
        response
    }
}

/// Waits for an answer; none if there was a bug on the way. The panic itself is on standard error.
async fn without_panic<T>(answer: impl Future<Output = T>) -> Option<T> {
    let mut answer = pin!(answer);
    poll_fn(|context| {
        let poll = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        poll.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
}

/// Writes problems out, logs the causes of failures once, and adds the headers of every answer.
fn finish(response: &mut Response, trace: &Trace) -> Option<&'static str> {
    let problem = response.extensions_mut().remove::<Problem>();
    let slug = problem.as_ref().map(Problem::slug);
    if let Some(problem) = problem {
        if let Some(cause) = problem.cause_chain() {
            tracing::error!(
                request_id = trace.request_id(),
                problem = problem.slug(),
                cause,
                "request failed"
            );
        }
        let text = if trace.is_graph() {
            const JSON: HeaderValue = HeaderValue::from_static("application/json");
            let (status, text) = graph::written(&problem, trace.request_id());
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, JSON);
            text
        } else {
            problem.document(trace.request_id())
        };
        *response.body_mut() = Body::from(text);
        // The router measured the empty body, and offers methods on paths that are none.
        response.headers_mut().remove(header::CONTENT_LENGTH);
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().remove(header::ALLOW);
        }
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(trace.request_id()) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    slug
}

/// A slash at the end makes no difference, and a version that clients of the Graph API have left out
/// is put there.
fn complete_path(request: &mut Request) {
    let path = request.uri().path();
    let plain = path.strip_suffix('/').filter(|plain| !plain.is_empty()).unwrap_or(path);
    let version = graph::version_left_out(path);
    if plain.len() == path.len() && version.is_empty() {
        return;
    }
    let mut whole = format!("{version}{plain}");
    if let Some(query) = request.uri().query() {
        whole.push('?');
        whole.push_str(query);
    }
    if let Ok(whole) = PathAndQuery::try_from(whole) {
        *request.uri_mut() = Uri::from(whole);
    }
}

/// Methods are a caller's own words: only the usual ones reach logs and metrics.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}
