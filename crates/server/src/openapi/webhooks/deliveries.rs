//! What has become of the events on their way to an endpoint.

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::json;

use super::{TAG, links_to_one};
use crate::{
    api::{
        problem::ProblemKind,
        v1::webhooks::{DELIVERIES, REPLAY},
    },
    openapi::{
        calls::{BODY, CALLER, body, content, link},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn list() -> Operation {
    let next = Some(("query.after", json!("$response.body#/paging/cursors/after")));
    let mut links = links_to_one("$request.path.id");
    links["next"] = link(
        "listDeliveries",
        "Goes on behind the end of this page.",
        Some("$request.path.id"),
        next,
    );
    Operation {
        method: "get",
        path: DELIVERIES,
        id: "listDeliveries",
        tag: TAG,
        summary: "List the deliveries of an endpoint",
        description: "Which events were sent to the endpoint or are on their way to it, newest first: what has become of each, after how many attempts, and what came back from the last one. Events that are not yet processed for this endpoint are not listed; its `behind` counts those.",
        scope: Some(Scope::Webhooks),
        parameters: &[
            "PhoneNumberId",
            "Key",
            "WebhookId",
            "DeliveryStatus",
            "Limit",
            "AfterDelivery",
        ],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "A page of deliveries.",
            headers: &["Cache-Control"],
            content: Some(content("DeliveryPage", &examples::page_of_deliveries())),
            links: Some(links),
        }],
        refusals: [CALLER, &[ProblemKind::BadRequest, ProblemKind::WebhookUnknown]].concat(),
    }
}

pub(super) fn replay() -> Operation {
    Operation {
        method: "post",
        path: REPLAY,
        id: "replayEvents",
        tag: TAG,
        summary: "Send events once more",
        description: "Has one event, or every event since a moment, delivered to the endpoint once more, whatever became of it before. Events of types that the endpoint does not take are passed over. Of a moment before the oldest event that is kept, the events from that one on are sent.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key", "WebhookId"],
        body: Some(body("Which events", "Replay", &examples::of_replays())),
        answers: vec![Answer {
            status: StatusCode::ACCEPTED,
            description: "They will be sent.",
            headers: &["Cache-Control"],
            content: Some(content("Replayed", &examples::replayed())),
            links: Some(links_to_one("$request.path.id")),
        }],
        refusals: [
            CALLER,
            BODY,
            &[
                ProblemKind::WebhookUnknown,
                ProblemKind::InvalidWebhook,
                ProblemKind::EventUnknown,
                ProblemKind::EventsForgotten,
            ],
        ]
        .concat(),
    }
}
