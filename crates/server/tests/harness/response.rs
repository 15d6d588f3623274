//! Responses with their whole body, and what a complete problem or error consists of.

use std::fmt;

use axum::{
    body::to_bytes,
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// A response with its whole body.
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl TestResponse {
    pub(crate) async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Self { status: parts.status, headers: parts.headers, bytes }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts that this is a complete problem of this kind, and returns its document.
    pub(crate) fn problem(&self, status: u16, slug: &str) -> Value {
        let text = self.text();
        assert_eq!(self.status.as_u16(), status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{text}");
        let problem = self.json();
        assert_eq!(problem["type"], format!("/problems/{slug}"), "{text}");
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"));
        problem
    }

    /// Asserts that a call of the Graph surface succeeded, and returns the document.
    pub(crate) fn expect_success(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        let document = self.json();
        assert!(!self.text().contains("null"), "{document}");
        document
    }

    /// Asserts that this is a complete error of the Graph surface, and returns its `error` member.
    pub(crate) fn expect_error(&self, status: u16, code: u32, subcode: Option<u32>) -> Value {
        let text = self.text();
        assert_eq!(self.status.as_u16(), status, "{text}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/json", "{text}");
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{text}");
        assert_eq!(error["error_subcode"], json!(subcode), "{text}");
        assert_eq!(error["type"], "OAuthException");
        for member in ["message", "error_user_title", "error_user_msg", "fbtrace_id"] {
            assert!(error[member].is_string(), "{member} in {text}");
        }
        let is_transient = status == 503 || error["galley_problem"] == "too-many-requests";
        assert_eq!(error["is_transient"], is_transient, "{text}");
        assert!(!text.contains("null"), "{text}");
        error
    }
}

impl fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes);
        write!(f, "{} {:?} {text}", self.status, self.headers)
    }
}

/// The body as JSON, or as a string if it is something else.
pub(crate) async fn json_of(response: Response) -> Value {
    let bytes = TestResponse::read(response).await.bytes;
    serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)))
}
