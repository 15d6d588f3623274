//! The operations on templates, and what they share: answers and links.

mod collection;
mod item;
mod life;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    calls::{content, link},
    operation::{Answer, Operation},
};

pub(super) const TAG: &str = "Templates";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        collection::list(),
        collection::create(),
        collection::validate(),
        item::show(),
        item::edit(),
        item::delete(),
        life::versions(),
        life::review(),
        life::render(),
    ]
}

/// The template as it is now, with its tag and everything that can be done to it next.
fn template(description: &'static str, example: &Value) -> Answer {
    Answer {
        status: StatusCode::OK,
        description,
        headers: &["Cache-Control", "ETag"],
        content: Some(content("Template", example)),
        links: Some(links_to_one("$request.path.id", Some("$response.header.ETag"))),
    }
}

/// Everything that can be done to one template: `id` tells where its id stands, `tag` where the
/// tag of what is known of it.
fn links_to_one(id: &str, tag: Option<&str>) -> Value {
    let tagged = |header: &'static str| tag.map(|tag| (header, json!(tag)));
    let links = [
        ("show", "showTemplate", "Reads the template.", tagged("header.If-None-Match")),
        ("edit", "editTemplate", "Gives it a new version.", tagged("header.If-Match")),
        ("review", "reviewTemplate", "Decides on it.", tagged("header.If-Match")),
        ("delete", "deleteTemplate", "Takes it away.", tagged("header.If-Match")),
        ("versions", "listVersions", "Shows its history.", None),
        ("render", "renderTemplate", "Puts values into it.", None),
    ];
    let links = links.into_iter().map(|(name, operation, about, more)| {
        (name.to_owned(), link(operation, about, Some(id), more))
    });
    Value::Object(links.collect())
}
