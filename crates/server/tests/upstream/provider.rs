//! The provider of a connected account: an emulator, and what lies between both.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use galley_domain::upstream::CallKind;
use galley_upstream::{Method as UpstreamMethod, Request, Response, Transport, TransportError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::sandbox::emulator::Emulator;

const USAGE: &str = "x-business-use-case-usage";

/// The error of a create whose name and language are taken.
const NAME_TAKEN: &str = "2388024";

/// Changes the body of a response.
pub(super) type Rewrite = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

/// What happens to an exchange between the account and the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The connection cannot be opened.
    NotSent,
    /// The request is lost on its way.
    Request,
    /// The provider does what was asked, and its response is lost.
    Response,
    /// The provider does what was asked, and its response never comes.
    NoEnd,
}

/// The provider, and what lies between it and the account.
pub(crate) struct Provider {
    pub(super) emulator: Emulator,
    pub(super) calls: AtomicU32,
    pub(super) rewrite: Mutex<Option<Rewrite>>,
    /// The method of each exchange.
    pub(super) log: Mutex<Vec<UpstreamMethod>>,
    /// The used part of the budget that responses show, in percent; 0 if it is that of the emulator.
    pub(super) usage: AtomicU32,
    /// The creates of templates that the provider has: calls that were made again.
    pub(super) repeated_creates: AtomicU32,
    /// The links of files that were fetched.
    pub(super) fetched: Mutex<Vec<String>>,
    pub(super) losses: Mutex<VecDeque<(UpstreamMethod, Loss)>>,
    /// Notified when a response does not come.
    pub(super) hangs: Notify,
}

impl Provider {
    pub(super) fn new(emulator: Emulator) -> Self {
        Self {
            emulator,
            calls: AtomicU32::new(0),
            rewrite: Mutex::default(),
            log: Mutex::default(),
            usage: AtomicU32::new(0),
            repeated_creates: AtomicU32::new(0),
            fetched: Mutex::default(),
            losses: Mutex::default(),
            hangs: Notify::new(),
        }
    }

    /// The header that tells this usage, and that the budget is available again in ten minutes.
    fn usage_header(&self, percent: u32) -> String {
        let usage = json!({
            "type": "whatsapp_business_management", "call_count": percent,
            "estimated_time_to_regain_access": 10,
        });
        json!({self.emulator.account.to_string(): [usage]}).to_string()
    }

    /// What happens to an exchange with this method.
    fn loss(&self, method: UpstreamMethod) -> Option<Loss> {
        let mut losses = self.losses.lock().unwrap();
        let index = losses.iter().position(|(wanted, _)| *wanted == method)?;
        losses.remove(index).map(|(_, loss)| loss)
    }
}

#[async_trait]
impl Transport for Provider {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let path = request.url.path().to_owned();
        let (kind, is_call) = (request.kind, request.kind.is_some());
        assert_eq!(request.send_by.is_some(), is_call, "no call leaves after the end of the lease");
        if is_call {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.log.lock().unwrap().push(request.method);
        } else {
            assert!(request.headers.is_empty(), "a file is fetched without the token");
            self.fetched.lock().unwrap().push(request.url.to_string());
        }
        let loss = self.loss(request.method).filter(|_| is_call);
        match loss {
            Some(Loss::NotSent) => return Err(TransportError::NotSent("refused".to_owned())),
            Some(Loss::Request) => return Err(TransportError::Unknown("closed".to_owned())),
            Some(Loss::Response | Loss::NoEnd) | None => {}
        }
        let uri = match request.url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.clone(),
        };
        let mut call = axum::http::Request::builder().method(request.method.as_str()).uri(uri);
        for (name, value) in &request.headers {
            call = call.header(name, value.expose());
        }
        let response = self.emulator.handle(call.body(Body::from(request.body)).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| TransportError::Unknown(error.to_string()))?;
        if kind == Some(CallKind::Create) && String::from_utf8_lossy(&body).contains(NAME_TAKEN) {
            self.repeated_creates.fetch_add(1, Ordering::Relaxed);
        }
        match loss {
            Some(Loss::Response) => return Err(TransportError::Unknown("closed".to_owned())),
            Some(Loss::NoEnd) => {
                self.hangs.notify_one();
                return pending().await;
            }
            Some(Loss::NotSent | Loss::Request) | None => {}
        }
        let status = parts.status.as_u16();
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = parts.headers.iter();
        let mut headers: Vec<(String, String)> =
            headers.map(|(name, value)| (name.to_string(), text(value))).collect();
        let percent = self.usage.load(Ordering::Relaxed);
        if percent > 0 {
            headers.retain(|(name, _)| name != USAGE);
            headers.push((USAGE.to_owned(), self.usage_header(percent)));
        }
        let body = match &*self.rewrite.lock().unwrap() {
            Some(rewrite) if is_call => {
                let mut document: Value = serde_json::from_slice(&body).unwrap();
                rewrite(&path, &mut document);
                document.to_string().into_bytes()
            }
            _ => body.to_vec(),
        };
        Ok(Response { status, headers, body })
    }
}
