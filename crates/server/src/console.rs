//! The pages of the console: static files that are part of the program.

mod comments;

use std::{collections::HashMap, fmt::Write as _, io::Write as _, str, sync::LazyLock};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

use crate::{
    api::{problem::Problem, request_context, wrong_path},
    app::App,
};

/// The files with their paths, from the build script.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_assets.rs"));

/// The page that loads the others. They have one address in every version of the program; the files
/// below `assets` have another one whenever one of them changes.
const PAGE: &str = "index.html";

/// Where the page refers to the directory of the files.
const PLACEHOLDER: &str = "{{assets}}";

/// The addresses of the page: its script shows what the path names.
const PAGE_ROUTES: [&str; 6] = [
    "/console",
    "/console/new",
    "/console/review",
    "/console/account",
    "/console/emulator",
    "/console/sign-in",
];

/// The addresses of the page with the id of a template.
const ITEM_ROUTES: [&str; 3] =
    ["/console/templates/{id}", "/console/templates/{id}/edit", "/console/review/{id}"];

/// Nothing runs and nothing loads except the files of the console; scripts cannot turn text into
/// HTML, except by way of the template library.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types lit-html",
);

/// The directory of files of others, which are sent as they are: they are small and name their licence.
const VENDOR: &str = "vendor/";

/// A file never changes below its directory.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new(FILES));

pub(crate) fn routes() -> Router<App> {
    let mut router = Router::new().route("/console/assets/{hash}/{*file}", get(file));
    for route in PAGE_ROUTES {
        router = router.route(route, get(page));
    }
    for route in ITEM_ROUTES {
        router = router.route(route, get(item_page));
    }
    router.layer(axum::middleware::map_request(request_context::record_route))
}

/// The files as they are sent.
struct Assets {
    /// The directory of all files except the page: a hash of their contents.
    hash: String,
    page: Asset,
    files: HashMap<&'static str, Asset>,
}

struct Asset {
    content_type: &'static str,
    plain: Bytes,
    gzip: Bytes,
}

impl Assets {
    fn new(files: &'static [(&'static str, &'static [u8])]) -> Self {
        let mut hash = Sha256::new();
        for (path, bytes) in files {
            // The lengths keep the end of one apart from the beginning of the next.
            for part in [path.as_bytes(), bytes] {
                hash.update(part.len().to_be_bytes());
                hash.update(part);
            }
        }
        let hash = hash.finalize()[..8].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let page = files.iter().find(|(path, _)| *path == PAGE).map_or(&[][..], |(_, page)| *page);
        let page = String::from_utf8_lossy(page);
        let page = page.replace(PLACEHOLDER, &format!("/console/assets/{hash}"));
        let others = files.iter().filter(|(path, _)| *path != PAGE);
        Self {
            hash,
            page: Asset::new(PAGE, Bytes::from(page)),
            files: others
                .map(|(path, bytes)| (*path, Asset::new(path, shortened(path, bytes))))
                .collect(),
        }
    }
}

impl Asset {
    fn new(path: &str, plain: Bytes) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder.write_all(&plain).and_then(|()| encoder.finish());
        // Writing to memory does not fail; without it, the file is sent as it is.
        let gzip = gzip.map_or_else(|_| plain.clone(), Bytes::from);
        Self { content_type: content_type(path), plain, gzip }
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let is_smaller = self.gzip.len() < self.plain.len();
        let mut response = if is_smaller && accepts_gzip(headers) {
            ([(header::CONTENT_ENCODING, "gzip")], self.gzip.clone()).into_response()
        } else {
            self.plain.clone().into_response()
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}

/// The file without what only its readers in the repository need.
fn shortened(path: &str, bytes: &'static [u8]) -> Bytes {
    let is_code = matches!(path.rsplit('.').next(), Some("js" | "css"));
    let is_source = is_code && !path.starts_with(VENDOR);
    match str::from_utf8(bytes) {
        Ok(source) if is_source => Bytes::from(comments::without_comments(source)),
        _ => Bytes::from_static(bytes),
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// Whether the client reads gzip. A weight of 0 means that it does not.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let codings = accepted.flat_map(|it| it.split(','));
    codings.map(|it| it.split_once(';').unwrap_or((it, ""))).any(|(coding, weight)| {
        let weight = weight.trim().strip_prefix("q=").and_then(|it| it.parse::<f32>().ok());
        coding.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// The page. A browser asks for it each time, because it names the present files.
async fn page(headers: HeaderMap) -> Response {
    let mut response = ASSETS.page.respond(&headers);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// The page for a template, whose id must look like one.
async fn item_page(
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_id = id.is_ok_and(|id| !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit()));
    if is_id { Ok(page(headers).await) } else { Err(wrong_path::not_found(uri.path())) }
}

async fn file(
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let not_found = || wrong_path::not_found(uri.path());
    let Path((hash, file)) = path.map_err(|_| not_found())?;
    let asset = ASSETS.files.get(&*file).filter(|_| hash == ASSETS.hash);
    let mut response = asset.ok_or_else(not_found)?.respond(&headers);
    response.headers_mut().insert(header::CACHE_CONTROL, IMMUTABLE);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_to_clients_that_read_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0, br", false),
            ("gzip; q=0.000", false),
            ("br", false),
            ("", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn another_content_has_another_directory() {
        let one = Assets::new(&[("a.js", b"1"), ("index.html", b"<{{assets}}/a.js>")]);
        let two = Assets::new(&[("a.js", b"2"), ("index.html", b"<{{assets}}/a.js>")]);
        assert_ne!(one.hash, two.hash);
        assert_eq!(one.hash.len(), 16);
        let page = format!("</console/assets/{}/a.js>", one.hash);
        assert_eq!(one.page.plain, page);
    }
}
