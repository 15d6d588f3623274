//! The service: the entry point of every request and the exit of every response.

use std::{
    future::poll_fn,
    net::{IpAddr, Ipv4Addr},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use axum::{
    Router,
    body::{Body, HttpBody as _, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, uri::PathAndQuery},
    response::{IntoResponse, Response},
};
use tower::ServiceExt as _;

use crate::{
    api::{
        console::cross_site::ConsoleOrigin,
        graph,
        problem::{Problem, ProblemKind},
        request_context::{REQUEST_ID, RequestContext},
        revocation::UsedCredentials,
        throttling::{self, RESPONSE_BYTES},
    },
    app::App,
    call_usage::USAGE,
    cors::{CorsDecision, CorsOrigins},
    fault_effect,
    memory_budget::MAX_UNCHARGED_BYTES,
    observability::access_log::AccessLogEntry,
    router,
};

/// Where browsers find the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleAddress {
    /// Nowhere: the console is switched off.
    None,
    /// At the public URL of the service.
    PublicUrl,
    /// At any address that leads here: the service has no public URL.
    AnyHost,
}

/// The complete service: `serve` binds it to a socket, tests call it directly.
#[derive(Clone)]
pub struct Galley {
    app: App,
    router: Router,
    /// `None` if no origin is allowed.
    cors: Option<Arc<CorsOrigins>>,
}

impl Galley {
    /// Creates the service from its shared state.
    pub fn new(app: App) -> Self {
        let console = ConsoleOrigin::of(app.public_url());
        let router = router::routes(Some(console)).with_state(app.clone());
        Self { app, router, cors: None }
    }

    /// Serves the console to browsers at this address, or not at all.
    #[must_use]
    pub fn with_console(self, console: ConsoleAddress) -> Self {
        let origin = match console {
            ConsoleAddress::None => None,
            ConsoleAddress::PublicUrl => Some(ConsoleOrigin::of(self.app.public_url())),
            ConsoleAddress::AnyHost => Some(ConsoleOrigin::Host),
        };
        Self { router: router::routes(origin).with_state(self.app.clone()), ..self }
    }

    /// Lets web pages of these origins call the API.
    #[must_use]
    pub fn with_cors(self, origins: CorsOrigins) -> Self {
        let cors = Some(origins).filter(|origins| *origins != CorsOrigins::None);
        Self { cors: cors.map(Arc::new), ..self }
    }

    /// A service with only liveness, readiness and metrics, for a listener of their own.
    pub(crate) fn health_only(app: App) -> Self {
        let router = router::health_routes().with_state(app.clone());
        Self { app, router, cors: None }
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Handles one request of a client on this machine, like [`Galley::handle_from`].
    pub async fn handle(&self, request: Request) -> Response {
        self.handle_from(IpAddr::V4(Ipv4Addr::LOCALHOST), request).await
    }

    /// Handles one request of a connection from `peer`: assigns it an id, routes it within its
    /// deadline, and records the result in metrics and access log.
    pub async fn handle_from(&self, peer: IpAddr, mut request: Request) -> Response {
        let context = Arc::new(RequestContext::new(&self.app, request.headers(), peer));
        let method = method_name(request.method());
        let cors = self.cors_decision(&request);
        if cors.is_preflight() {
            let response = StatusCode::NO_CONTENT.into_response();
            return self.complete(response, &context, method, cors);
        }
        request.extensions_mut().insert(Arc::clone(&context));
        normalize_path(&mut request);
        let mut routed = pin!(without_panic(self.router.clone().oneshot(request)));
        let deadline = self.app.limits().request;
        let mut result = tokio::time::timeout(deadline, routed.as_mut()).await;
        if result.is_err() && context.is_upload() {
            // An upload ends by itself before this timeout, unless the store does not respond.
            let upload_deadline = graph::TRANSFER_TIMEOUT + deadline;
            result = tokio::time::timeout(upload_deadline, routed).await;
        }
        let response = match result {
            Ok(Some(Ok(response))) => response,
            Ok(Some(Err(never))) => match never {},
            Ok(None) => Problem::handler_panicked().into_response(),
            Err(_) => Problem::of(ProblemKind::Deadline).into_response(),
        };
        self.notify_workers(&context);
        let response = self.charge(response, &context).await;
        let response = self.complete(response, &context, method, cors);
        match context.fault() {
            Some(effect) => {
                context.release_body();
                fault_effect::apply(effect, response).await
            }
            None => response,
        }
    }

    /// Wakes the workers of the emulator after a call that may have changed an emulator account, and
    /// the worker of connections after one that may have changed a connected account.
    fn notify_workers(&self, context: &RequestContext) {
        let credentials = context.credentials().filter(|it| !it.scope.only_reads());
        let Some(UsedCredentials { is_emulator, is_connected, .. }) = credentials else { return };
        if is_emulator {
            self.app.emulator().notify();
        }
        if is_connected {
            self.app.upstream().wake();
        }
    }

    /// What the response says about the origin of its request.
    fn cors_decision(&self, request: &Request) -> CorsDecision {
        let Some(cors) = &self.cors else { return CorsDecision::Silent };
        cors.decide(request.method(), request.uri().path(), request.headers())
    }

    /// Charges a large body to the account, until the client has read it. An account with too many
    /// unread bytes waits, and is then refused if the call only reads; a write has happened, so its
    /// response is sent in any case. Further writes of the account are refused before they begin. Without credentials there are only small bodies, shared
    /// documents and files that are read chunk by chunk.
    async fn charge(&self, response: Response, context: &RequestContext) -> Response {
        let bytes = response.body().size_hint().exact().unwrap_or(0);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes <= MAX_UNCHARGED_BYTES {
            return response;
        }
        let Some(credentials) = context.credentials() else { return response };
        let budget = self.app.response_memory();
        let Some(charge) = budget.charge_built(credentials.account, bytes).await else {
            if credentials.scope.only_reads() {
                return throttling::too_many_bytes(&self.app, RESPONSE_BYTES).into_response();
            }
            return response;
        };
        let (head, body) = response.into_parts();
        match to_bytes(body, usize::MAX).await {
            Ok(body) => Response::from_parts(head, Body::from(charge.attach_to(body))),
            Err(_) => Problem::of(ProblemKind::Internal).into_response(),
        }
    }

    /// Refuses a request whose end is ambiguous, without processing it. The response closes the
    /// connection.
    pub(crate) fn refuse(&self, peer: IpAddr, request: &Request, detail: &'static str) -> Response {
        let context = RequestContext::new(&self.app, request.headers(), peer);
        let path = request.uri().path();
        if graph::is_path(path) || !graph::implied_version(path).is_empty() {
            context.mark_graph();
        }
        let mut response = Problem::of(ProblemKind::BadRequest).detail(detail).into_response();
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let cors = self.cors_decision(request);
        self.complete(response, &context, method_name(request.method()), cors)
    }

    /// Completes a response, and records it in metrics and access log.
    fn complete(
        &self,
        mut response: Response,
        context: &RequestContext,
        method: &'static str,
        cors: CorsDecision,
    ) -> Response {
        let problem = finish(&mut response, context);
        cors.apply(response.headers_mut());
        let took = self.app.clock().monotonic().saturating_sub(context.started());
        let (status, route) = (response.status(), context.route());
        let latency = (!context.is_long_poll()).then_some(took);
        self.app.metrics().record_request(method, route, status.as_u16(), latency);
        self.app.0.access.write(&AccessLogEntry {
            at: context.received_at(),
            method,
            route,
            status: status.as_u16(),
            took,
            request_id: context.request_id(),
            trace: context.trace(),
            token: context.token(),
            problem,
        });
        response
    }
}

/// Awaits a response; `None` if the handler panics. The panic hook logs the panic itself.
async fn without_panic<T>(response: impl Future<Output = T>) -> Option<T> {
    let mut response = pin!(response);
    poll_fn(|context| {
        let poll = catch_unwind(AssertUnwindSafe(|| response.as_mut().poll(context)));
        poll.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
}

/// Writes the body of a problem, logs the cause of a failure once, and adds the common headers.
/// Returns the problem's slug.
fn finish(response: &mut Response, context: &RequestContext) -> Option<&'static str> {
    let problem = response.extensions_mut().remove::<Problem>();
    let slug = problem.as_ref().map(Problem::slug);
    if let Some(problem) = problem {
        if let Some(cause) = problem.cause_chain() {
            tracing::error!(
                request_id = context.request_id(),
                trace_id = context.trace().map(|it| display(it.trace_id())),
                span_id = context.trace().map(|it| display(it.span_id())),
                problem = problem.slug(),
                cause,
                "request failed"
            );
        }
        let text = if context.is_graph() {
            const JSON: HeaderValue = HeaderValue::from_static("application/json");
            let (status, text) = graph::error_body(&problem, context.request_id());
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, JSON);
            text
        } else {
            problem.document(context.request_id())
        };
        *response.body_mut() = Body::from(text);
        // The router has set the length of the empty body, and `Allow` even for paths that do not
        // exist.
        response.headers_mut().remove(header::CONTENT_LENGTH);
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().remove(header::ALLOW);
        }
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(context.request_id()) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(usage) = context.usage().and_then(|it| HeaderValue::from_str(it).ok()) {
        headers.insert(USAGE, usage);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    add_document_headers(headers);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    slug
}

/// Adds what a browser needs to know about a document that it shows: it loads nothing, no other page
/// embeds it, and links from it disclose no path. A handler may have set another policy.
fn add_document_headers(headers: &mut HeaderMap) {
    // JSON loads and runs nothing, so it needs no policy.
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if matches!(content_type, Some(b"application/json" | b"application/problem+json")) {
        return;
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Removes a trailing slash, and adds the version if a client of the Graph API omitted it.
fn normalize_path(request: &mut Request) {
    let path = request.uri().path();
    let trimmed = path.strip_suffix('/').filter(|trimmed| !trimmed.is_empty()).unwrap_or(path);
    let version = graph::implied_version(path);
    if trimmed.len() == path.len() && version.is_empty() {
        return;
    }
    let mut normalized = format!("{version}{trimmed}");
    if let Some(query) = request.uri().query() {
        normalized.push('?');
        normalized.push_str(query);
    }
    if let Ok(normalized) = PathAndQuery::try_from(normalized) {
        *request.uri_mut() = Uri::from(normalized);
    }
}

/// The method for logs and metrics. Clients can send arbitrary methods: only the standard ones
/// appear by name.
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
