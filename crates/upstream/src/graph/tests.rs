//! The requests of every call, and what becomes of every response, with a scripted transport.

mod calls;
mod failures;
mod secrets;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::*;

pub(crate) const TOKEN: &str = "EAAG-canary-token";
pub(crate) const APP_SECRET: &str = "canary-app-secret";

/// A transport that answers with prepared responses and records the requests.
#[derive(Default)]
pub(crate) struct Script {
    responses: Mutex<VecDeque<Result<Response, TransportError>>>,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Transport for Script {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        self.requests.lock().unwrap().push(request);
        self.responses.lock().unwrap().pop_front().expect("a response is prepared")
    }
}

impl Script {
    /// A provider that gives these responses, in this order.
    pub(crate) fn new(
        responses: impl IntoIterator<Item = Result<Response, TransportError>>,
    ) -> Arc<Self> {
        let responses = Mutex::new(responses.into_iter().collect());
        Arc::new(Self { responses, ..Self::default() })
    }

    /// A provider that gives these bodies with the status 200.
    pub(crate) fn with_bodies(bodies: &[&str]) -> Arc<Self> {
        Self::new(bodies.iter().map(|body| Ok(response(200, body))))
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The requests as `METHOD path?query`, without the base URL and percent-encoding.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |request: &Request| {
            let path = request.url.path().strip_prefix("/v23.0").unwrap();
            let pairs = request.url.query_pairs();
            let query: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{} {path}{mark}{}", request.method.as_str(), query.join("&"))
        };
        self.requests().iter().map(line).collect()
    }
}

pub(crate) fn response(status: u16, body: &str) -> Response {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    Response { status, headers, body: body.as_bytes().to_vec() }
}

pub(crate) fn upstream(script: &Arc<Script>) -> GraphUpstream<Arc<Script>> {
    let dialect = Dialect::new("https://graph.example/v23.0", "17").unwrap();
    GraphUpstream::new(Arc::clone(script), dialect, Secret::new(TOKEN))
}

pub(crate) fn id(text: &str) -> RemoteId {
    RemoteId::parse(text).unwrap()
}

/// The headers of a request.
pub(crate) fn headers(request: &Request) -> Vec<(&str, &str)> {
    request.headers.iter().map(|(name, value)| (&**name, value.expose())).collect()
}

/// A template of a list.
pub(crate) fn template(id: u32, name: &str, language: &str) -> String {
    format!(
        r#"{{"name":"{name}","language":"{language}","status":"APPROVED","category":"UTILITY","components":[{{"type":"BODY","text":"Hi"}}],"id":"{id}"}}"#
    )
}

/// A page of a list, with a link to the next page that contains the token.
pub(crate) fn page(templates: &[String], next: Option<&str>) -> String {
    let (data, after) = (templates.join(","), next.unwrap_or("end"));
    let next = next.map_or_else(String::new, |after| {
        format!(r#","next":"https://graph.example/v23.0/17/message_templates?access_token={TOKEN}&after={after}""#)
    });
    format!(
        r#"{{"data":[{data}],"paging":{{"cursors":{{"before":"a","after":"{after}"}}{next}}}}}"#
    )
}
