//! Reads request bodies: JSON in UTF-8, within limits of size and time.

use std::error::Error;

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::LengthLimitError;

use super::{
    problem::{Problem, ProblemKind},
    revocation::{UsedCredentials, revoked},
    throttling::{Admitted, admit_body},
};
use crate::app::App;

/// The bytes of a body with the content type JSON. Extract it after the [`super::auth::Caller`], so
/// that the service reads no bodies from unauthenticated clients.
pub(crate) struct JsonBody(pub(super) Bytes);

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::of(ProblemKind::UnsupportedMediaType));
        }
        read_all(request, app, app.limits().body_bytes).await.map(Self)
    }
}

/// A body whose end is ambiguous cannot be read. Contains what is wrong and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AmbiguousBody(pub(crate) &'static str);

/// Reads a whole body of at most `limit` bytes, within the time limit for bodies and as long as the
/// credentials of the request are valid.
pub(crate) async fn read_all(request: Request, app: &App, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail =
            format!("The body exceeds the limit of {limit} bytes. Send a smaller document.");
        Problem::of(ProblemKind::TooLarge).detail(detail)
    };
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let admitted = Admitted::of(request.extensions());
    if let Some(admitted) = &admitted {
        admitted.count_large(app, declared.unwrap_or(0))?;
    }
    let credentials = UsedCredentials::of(request.extensions());
    let body = tokio::time::timeout(app.limits().body, to_bytes(request.into_body(), limit));
    let body = tokio::select! {
        biased;
        body = body => body,
        problem = revoked(app, credentials) => return Err(problem),
    };
    match body {
        Ok(Ok(bytes)) => admit_body(app, admitted.as_ref(), bytes).await,
        Ok(Err(error)) if cause::<LengthLimitError>(&error).is_some() => Err(too_large()),
        Ok(Err(error)) => {
            let detail = match cause::<AmbiguousBody>(&error) {
                Some(AmbiguousBody(detail)) => detail,
                None => "The body ended before it was complete. Send the request again.",
            };
            Err(Problem::of(ProblemKind::BadRequest).detail(detail))
        }
        Err(_) => Err(Problem::of(ProblemKind::BodyTimeout)),
    }
}

/// Whether the headers declare uncompressed JSON in UTF-8. An absent content type counts as JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let plain = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return plain };
    let Ok(content_type) = content_type.to_str() else { return false };
    let mut parts = content_type.split(';').map(str::trim);
    let json = parts.next().is_some_and(|it| it.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    plain && json && utf8
}

/// The cause of an error that has this type.
fn cause<E: Error + 'static>(error: &axum::Error) -> Option<&E> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
