//! `/problems` lists all problems; `/problems/{slug}` is the page to which the `type` of one leads.

use std::fmt::Write as _;

use axum::{
    extract::{Path, rejection::PathRejection},
    http::HeaderMap,
    response::Response,
};
use serde::Serialize;

use super::{
    negotiation::{escape, html, page_or_json},
    problem::{Problem, ProblemKind},
};

pub(crate) async fn list(headers: HeaderMap) -> Response {
    let data: Vec<Entry> = ProblemKind::ALL.iter().copied().map(Entry::of).collect();
    page_or_json(&headers, index, &Entries { data })
}

pub(crate) async fn show(
    slug: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let kind = slug
        .ok()
        .and_then(|slug| ProblemKind::ALL.iter().copied().find(|kind| kind.slug() == *slug));
    let kind = kind.ok_or_else(|| {
        Problem::of(ProblemKind::NotFound)
            .detail("There is no problem with this name. `/problems` lists all of them.")
    })?;
    Ok(page_or_json(&headers, || page(kind), &Entry::of(kind)))
}

#[derive(Serialize)]
struct Entries {
    data: Vec<Entry>,
}

/// A problem as JSON, with the members of a problem document.
#[derive(Serialize)]
struct Entry {
    r#type: String,
    title: &'static str,
    status: u16,
    remedy: &'static str,
}

impl Entry {
    fn of(kind: ProblemKind) -> Self {
        Self {
            r#type: format!("/problems/{}", kind.slug()),
            title: kind.title(),
            status: kind.status().as_u16(),
            remedy: kind.remedy(),
        }
    }
}

fn index() -> String {
    let mut body = "<h1>Problems</h1>\n<ul>\n".to_owned();
    for kind in ProblemKind::ALL {
        let (slug, status, title) = (kind.slug(), kind.status().as_u16(), escape(kind.title()));
        let _ = writeln!(
            body,
            "<li>{status} <a href=\"/problems/{slug}\"><code>{slug}</code></a>: {title}</li>"
        );
    }
    body.push_str("</ul>\n<p><a href=\"/docs\">API reference</a></p>\n");
    html("Problems · Galley", &body)
}

fn page(kind: ProblemKind) -> String {
    let (title, remedy) = (escape(kind.title()), escape(kind.remedy()));
    let (slug, status) = (kind.slug(), kind.status());
    let body = format!(
        "<h1>{title}</h1>\n<p>Problem <code>{slug}</code>, HTTP status {status}.</p>\n\
         <p>{remedy}</p>\n<p><a href=\"/problems\">All problems</a>,\n\
         <a href=\"/docs\">API reference</a></p>\n"
    );
    html(&format!("{title} · Galley"), &body)
}
