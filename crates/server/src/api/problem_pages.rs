//! `/problems/{slug}`: the page to which the `type` of a problem leads.

use axum::{
    extract::{Path, rejection::PathRejection},
    http::header,
    response::{IntoResponse, Response},
};

use super::problem::{Problem, ProblemKind};

pub(crate) async fn show(slug: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let slug = slug.map_err(|_| Problem::of(ProblemKind::NotFound))?;
    let kind = ProblemKind::ALL.iter().find(|kind| kind.slug() == *slug);
    let kind = kind.ok_or(Problem::of(ProblemKind::NotFound))?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page(*kind)).into_response())
}

fn page(kind: ProblemKind) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (title, remedy) = (escape(kind.title()), escape(kind.remedy()));
    let (slug, status) = (kind.slug(), kind.status());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title} · Galley</title></head>\n\
         <body>\n<h1>{title}</h1>\n<p>Problem <code>{slug}</code>, HTTP status {status}.</p>\n\
         <p>{remedy}</p>\n<p><a href=\"/docs\">API reference</a></p>\n</body>\n</html>\n"
    )
}
