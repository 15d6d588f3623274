//! Samples of attachments: the handles that uploads answer, and the addresses where they are read.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{
    App,
    http::problem::{Kind, Problem},
};

/// What a handle of ours begins with. Clients know one by a digit and a colon.
const OURS: &str = "4::galley.";

/// The handle of the sample with that name.
pub(super) fn handle(name: &str) -> String {
    format!("{OURS}{name}")
}

/// Where the sample with that handle is read, if it was uploaded here.
pub(super) fn address(app: &App, handle: &str) -> Option<String> {
    let name = handle.strip_prefix(OURS)?;
    Some(format!("{}/media/{name}", app.public_url()))
}

/// A name that nobody can guess.
pub(super) fn new_name(app: &App) -> String {
    let mut bytes = [0; 24];
    app.webhooks().random.fill(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The sample itself. Whoever shows a template shows it, too, and sends no token for it: the
/// address is the secret.
pub(super) async fn show(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    const POLICY: (HeaderName, HeaderValue) =
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    const FOREVER: (HeaderName, HeaderValue) =
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    let name = name.map_err(|_| Problem::of(Kind::NotFound))?;
    let media = app.store().media(&name).await?.ok_or(Problem::of(Kind::NotFound))?;
    let content_type = HeaderValue::try_from(media.file_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    Ok(([POLICY, FOREVER, (header::CONTENT_TYPE, content_type)], media.bytes).into_response())
}
