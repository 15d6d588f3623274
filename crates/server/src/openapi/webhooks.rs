//! The operations on endpoints that events are delivered to.

mod collection;
mod deliveries;
mod item;

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::{
    calls::{content, link},
    operation::{Answer, Operation},
};

pub(super) const TAG: &str = "Webhooks";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        collection::list(),
        collection::create(),
        item::show(),
        item::edit(),
        item::delete(),
        item::rotate(),
        deliveries::list(),
        deliveries::replay(),
    ]
}

/// The endpoint as it is now, and everything that can be done to it next.
fn webhook(description: &'static str, schema: &str, example: &Value) -> Answer {
    Answer {
        status: StatusCode::OK,
        description,
        headers: &["Cache-Control"],
        content: Some(content(schema, example)),
        links: Some(links_to_one("$request.path.id")),
    }
}

/// Everything that can be done to one endpoint: `id` tells where its id stands.
fn links_to_one(id: &str) -> Value {
    let links = [
        ("show", "showWebhook", "Reads the endpoint."),
        ("edit", "editWebhook", "Changes it."),
        ("rotate", "rotateSecret", "Gives it another secret."),
        ("deliveries", "listDeliveries", "Shows what has become of its events."),
        ("replay", "replayEvents", "Sends events once more."),
        ("delete", "deleteWebhook", "Takes it away."),
    ];
    let links = links
        .map(|(name, operation, about)| (name.to_owned(), link(operation, about, Some(id), None)));
    Value::Object(Map::from_iter(links))
}
