//! Documents that never change while the process runs. Their bytes are shared by all responses.

use std::fmt::Write as _;

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest as _, Sha256};

use super::{
    conditional::FilePrecondition,
    problem::{Problem, ProblemKind},
};

/// A document with the tag by which clients recognise it.
pub(crate) struct StaticDocument {
    content_type: HeaderValue,
    bytes: Bytes,
    /// The text between the quotes of the `ETag`: a hash of the document.
    tag: String,
}

impl StaticDocument {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let hash = Sha256::digest(&bytes);
        let tag = hash[..16].iter().fold(String::new(), |mut tag, byte| {
            let _ = write!(tag, "{byte:02x}");
            tag
        });
        Self { content_type: HeaderValue::from_static(content_type), bytes, tag }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The document, 304 if the client has it, or 412 if the client wants another one. Caches ask
    /// again each time, because an update of the service changes the document.
    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        let mut response = match FilePrecondition::evaluate(headers, &self.tag) {
            FilePrecondition::Failed => {
                let detail = "The tags in If-Match do not contain the tag of the document, which this version of Galley serves. Omit If-Match.";
                Problem::of(ProblemKind::RevisionOutdated).detail(detail).into_response()
            }
            FilePrecondition::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            FilePrecondition::Met => {
                let content_type = (header::CONTENT_TYPE, self.content_type.clone());
                ([content_type], self.bytes.clone()).into_response()
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let tag = HeaderValue::try_from(format!("\"{}\"", self.tag));
        headers.extend(tag.map(|tag| (header::ETAG, tag)).ok());
        response
    }
}
