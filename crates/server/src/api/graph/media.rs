//! Samples of attachments: the addresses where they are read, whole or in part.

use std::fmt::Write as _;

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use galley_domain::template::sample;
use galley_store::Media;

use super::{
    range::{self, Wanted},
    stream::Stream,
};
use crate::{
    api::problem::{Kind, Problem},
    app::App,
};

/// A name that nobody can guess.
pub(super) fn new_name(app: &App) -> String {
    let mut bytes = [0; 24];
    app.webhooks().random.fill(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// What is told of an address where nothing is read.
const NOTHING: &str = "No sample is read at this address: it was forgotten or deleted, its account is disabled, or the address is not complete.";

/// The sample itself. Whoever shows a template shows it, too, and sends no token for it: the
/// address is the secret. What is read at an address never changes.
pub(super) async fn show(
    State(app): State<App>,
    method: Method,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let nothing = || Problem::of(Kind::NotFound).detail(NOTHING);
    let Path(name) = name.map_err(|_| nothing())?;
    let known = sample::is_name(&name);
    let media = if known { app.store().media(&name).await? } else { None };
    let media = media.ok_or_else(nothing)?;
    let tag = format!("\"{name}\"");
    if range::is_other(&headers, &tag) {
        let detail = "The file has another tag than those in If-Match: it never changes.";
        return Err(Problem::of(Kind::RevisionOutdated).detail(detail));
    }
    if range::is_known(&headers, &tag) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &tag));
    }
    let whole = 0..media.length;
    let (status, part) = match range::wanted(&headers, &tag, media.length) {
        // Only GET has ranges.
        _ if method != Method::GET => (StatusCode::OK, whole),
        Wanted::Whole => (StatusCode::OK, whole),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Nothing => return Err(Problem::no_such_bytes(media.length)),
    };
    let (first, end, length) = (part.start, part.end, media.length);
    let mut response = (status, Body::new(Stream::of(app, name, part))).into_response();
    let disposition = HeaderValue::try_from(disposition(&media));
    let content_type = HeaderValue::try_from(media.file_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = response.headers_mut();
    headers.extend(disposition.map(|it| (header::CONTENT_DISPOSITION, it)).ok());
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - first));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{length}", end.saturating_sub(1));
        headers.extend(HeaderValue::try_from(range).map(|it| (header::CONTENT_RANGE, it)).ok());
    }
    Ok(with_headers(response, &tag))
}

/// How a browser is to take the file: shown, and saved under the name that its sender gave it. The
/// policy below keeps browsers from opening a PDF in the page, so that it is saved at once. The
/// ending is always that of the type: nobody is to open the file as something else.
fn disposition(media: &Media) -> String {
    let (how, endings): (&str, &[&str]) = match &*media.file_type {
        "application/pdf" => ("attachment", &[".pdf"]),
        "image/jpeg" => ("inline", &[".jpg", ".jpeg"]),
        "image/png" => ("inline", &[".png"]),
        "image/gif" => ("inline", &[".gif"]),
        "video/mp4" => ("inline", &[".mp4", ".m4v"]),
        "video/3gpp" => ("inline", &[".3gp"]),
        _ => ("attachment", &[".bin"]),
    };
    let name = media.file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|it| !it.is_control()).collect();
    let name = if name.trim_matches(['.', ' ']).is_empty() { "sample" } else { &name };
    let lower = name.to_ascii_lowercase();
    let ending = if endings.iter().any(|it| lower.ends_with(it)) { "" } else { endings[0] };
    // As RFC 8187 writes what is no plain ASCII.
    let mut written = format!("{how}; filename*=UTF-8''");
    for byte in name.bytes().chain(ending.bytes()) {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            let _ = write!(written, "%{byte:02X}");
        }
    }
    written
}

/// What is told with the file and with the news that it is still the same.
fn with_headers(mut response: Response, tag: &str) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    // It never changes, but it may be taken away, and that is to count soon.
    const A_WHILE: HeaderValue = HeaderValue::from_static("public, max-age=300");
    const BYTES: HeaderValue = HeaderValue::from_static("bytes");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, A_WHILE);
    headers.insert(header::ACCEPT_RANGES, BYTES);
    headers.extend(HeaderValue::from_str(tag).map(|tag| (header::ETAG, tag)).ok());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_and_the_ending_of_its_type() {
        for (file_type, name, written) in [
            ("image/png", "a.png", "inline; filename*=UTF-8''a.png"),
            ("image/jpeg", "Bild 1.JPEG", "inline; filename*=UTF-8''Bild%201.JPEG"),
            ("image/png", "Ü\"\r\n;.png", "inline; filename*=UTF-8''%C3%9C%22%3B.png"),
            ("application/pdf", "bill.exe", "attachment; filename*=UTF-8''bill.exe.pdf"),
            ("application/pdf", "", "attachment; filename*=UTF-8''sample.pdf"),
            ("video/mp4", "../..\\x/..", "inline; filename*=UTF-8''sample.mp4"),
            ("text/html", "a.html", "attachment; filename*=UTF-8''a.html.bin"),
        ] {
            let (file_type, file_name) = (file_type.to_owned(), name.to_owned());
            assert_eq!(disposition(&Media { file_type, file_name, length: 1 }), written);
        }
    }
}
