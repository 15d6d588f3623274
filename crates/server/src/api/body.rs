//! Reads request bodies: JSON in UTF-8, within limits of size and time.

use std::error::Error;

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use galley_domain::id::AccountId;
use http_body_util::BodyExt as _;

use super::{
    problem::{Problem, ProblemKind},
    revocation::{UsedCredentials, revoked},
    throttling::{self, Admitted, REQUEST_BYTES},
};
use crate::{app::App, memory_budget::MAX_UNCHARGED_BYTES};

/// The bytes of a body with the content type JSON. Extract it after the [`super::auth::Caller`], so
/// that the service reads no bodies from unauthenticated clients.
pub(crate) struct JsonBody(Bytes);

impl JsonBody {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Parses or checks the bytes. A large body waits for a processor, which is free again afterwards.
    pub(crate) async fn process<'b, T>(&'b self, app: &App, work: impl FnOnce(&'b [u8]) -> T) -> T {
        self.process_as(app, self.len(), work).await
    }

    /// Like [`Self::process`], for work that costs as much as a body of so many bytes.
    pub(crate) async fn process_as<'b, T>(
        &'b self,
        app: &App,
        bytes: usize,
        work: impl FnOnce(&'b [u8]) -> T,
    ) -> T {
        app.admission().process(bytes, || work(&self.0)).await
    }
}

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
    let declared = declared_bytes(request.headers(), limit)?;
    let admitted = Admitted::of(request.extensions());
    if let Some(admitted) = &admitted {
        admitted.count_large(app, declared.unwrap_or(0))?;
    }
    let credentials = UsedCredentials::of(request.extensions());
    let account = credentials.map(|credentials| credentials.account);
    let body = gather(request.into_body(), app, account, declared.unwrap_or(limit), limit);
    tokio::select! {
        biased;
        body = tokio::time::timeout(app.limits().body, body) => {
            let bytes = body.unwrap_or(Err(Problem::of(ProblemKind::BodyTimeout)))?;
            if let Some(admitted) = &admitted {
                admitted.take_turn(app, bytes.len()).await?;
            }
            Ok(bytes)
        }
        problem = revoked(app, credentials) => Err(problem),
    }
}

/// Reads a whole body of at most `limit` bytes of a request that has no credentials, within the time
/// limit for bodies. A large one is charged to the account.
pub(crate) async fn read_for(
    request: Request,
    app: &App,
    account: AccountId,
    limit: usize,
) -> Result<Bytes, Problem> {
    let expected = declared_bytes(request.headers(), limit)?.unwrap_or(limit);
    let body = gather(request.into_body(), app, Some(account), expected, limit);
    let body = tokio::time::timeout(app.limits().body, body).await;
    body.unwrap_or(Err(Problem::of(ProblemKind::BodyTimeout)))
}

/// The declared length of a body, which is refused if it exceeds the limit.
fn declared_bytes(headers: &HeaderMap, limit: usize) -> Result<Option<usize>, Problem> {
    let declared = headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    Ok(declared)
}

/// Gathers the frames of a body in one buffer, because clients decide how small the frames are. A
/// body in one frame, as most are, is not copied. A large one is charged to the account when it
/// outgrows the first buffer.
async fn gather(
    mut body: Body,
    app: &App,
    account: Option<AccountId>,
    expected: usize,
    limit: usize,
) -> Result<Bytes, Problem> {
    let Some(first) = next_data(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut bytes = Vec::with_capacity(expected.min(MAX_UNCHARGED_BYTES).max(first.len()));
    bytes.extend_from_slice(&first);
    drop(first);
    let mut charge = None;
    while let Some(data) = next_data(&mut body).await? {
        if bytes.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        if bytes.len() + data.len() > MAX_UNCHARGED_BYTES
            && charge.is_none()
            && let Some(account) = account
        {
            let charged = app.request_memory().charge(account, expected).await;
            charge = Some(charged.ok_or_else(|| throttling::too_many_bytes(app, REQUEST_BYTES))?);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(match charge {
        Some(charge) => charge.attach_to(bytes),
        None => bytes.into(),
    })
}

/// The data of the next frame; `None` at the end of the body.
async fn next_data(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                // Trailers have no data.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let detail = match cause::<AmbiguousBody>(&error) {
                    Some(AmbiguousBody(detail)) => detail,
                    None => "The body ended before it was complete. Send the request again.",
                };
                return Err(Problem::of(ProblemKind::BadRequest).detail(detail));
            }
            None => return Ok(None),
        }
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("The body exceeds the limit of {limit} bytes. Send a smaller document.");
    Problem::of(ProblemKind::TooLarge).detail(detail)
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
