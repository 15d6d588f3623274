//! The pages and files of the console.

use std::{collections::BTreeSet, path::Path};

use axum::{body::Body, http::Request};
use flate2::read::GzDecoder;

use super::app::TestApp;
use crate::harness::TestResponse;

async fn get(app: &TestApp, path: &str, encoding: &str) -> TestResponse {
    let request = Request::get(path).header("accept-encoding", encoding);
    app.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn the_page_has_its_policy_and_names_the_present_files() {
    let app = TestApp::start().await;
    let page = get(&app, "/console", "").await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.headers["cache-control"], "no-cache");
    assert_eq!(
        page.headers["content-security-policy"],
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types lit-html"
    );
    assert!(!page.text().contains("{{"), "{page:?}");
    for path in [
        "/console/",
        "/console/new?from=1",
        "/console/templates/12",
        "/console/templates/12/edit",
        "/console/review",
        "/console/review/12",
        "/console/account",
        "/console/emulator",
        "/console/sign-in",
    ] {
        assert_eq!(get(&app, path, "").await.text(), page.text(), "{path}");
    }
    for path in ["/console/templates/a", "/console/unknown", "/console/assets/x/main.js"] {
        get(&app, path, "").await.problem(404, "not-found");
    }
    let main = page.text().split('"').find(|it| it.ends_with("/main.js")).unwrap();
    let script = get(&app, main, "").await;
    assert_eq!(script.status, 200, "{main}");
    assert_eq!(script.headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(script.headers["cache-control"], "public, max-age=31536000, immutable");
}

/// The files below a directory, with `/` between the segments of their paths.
fn files(directory: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name);
        }
    }
}

/// The line without the comments that tell the types of expressions.
fn without_types(line: &str) -> String {
    let mut parts = line.split("/** @type {");
    let begin = parts.next().unwrap_or_default();
    let expressions = parts.map(|it| it.split_once("*/").map_or("", |(_, rest)| rest.trim_start()));
    std::iter::once(begin).chain(expressions).collect()
}

#[tokio::test]
async fn every_file_of_the_console_is_served_compressed_and_plain() {
    let app = TestApp::start().await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/assets");
    let mut found = BTreeSet::new();
    files(&root, "", &mut found);
    let page = get(&app, "/console", "").await;
    let main = page.text().split('"').find(|it| it.ends_with("/main.js")).unwrap().to_owned();
    let directory = main.strip_suffix("main.js").unwrap();
    // The page has its own address, and licences are not for browsers.
    let is_served = |it: &&String| {
        let extension = Path::new(it).extension();
        *it != "index.html" && extension.is_some_and(|extension| extension != "md")
    };
    for file in found.iter().filter(is_served) {
        let path = format!("{directory}{file}");
        let plain = get(&app, &path, "").await;
        assert_eq!(plain.status, 200, "{file}");
        // Scripts and styles are sent without comments, types and indentation.
        let source = std::fs::read_to_string(root.join(file)).unwrap();
        let mut lines = source.lines().map(without_types);
        for sent in plain.text().lines() {
            assert!(lines.any(|line| line.trim().ends_with(sent.trim())), "{file}: {sent}");
        }
        let compressed = get(&app, &path, "br, gzip").await;
        if compressed.header("content-encoding").is_none() {
            assert!(compressed.bytes.len() < 200, "{file} is not compressed");
            continue;
        }
        let mut text = Vec::new();
        std::io::copy(&mut GzDecoder::new(&compressed.bytes[..]), &mut text).unwrap();
        assert!(text == plain.bytes, "{file}");
    }
}
