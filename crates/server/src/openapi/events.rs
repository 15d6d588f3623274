//! The feed.

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::json;

use super::{
    calls::{CALLER, content, link},
    examples,
    operation::{Answer, Operation},
};
use crate::api::{problem::Kind, v1::events::FEED};

pub(super) const TAG: &str = "Events";

pub(super) fn list() -> Operation {
    let next = Some(("query.after", json!("$response.body#/paging/cursors/after")));
    Operation {
        method: "get",
        path: FEED,
        id: "listEvents",
        tag: TAG,
        summary: "Follow the events",
        description: "What has happened to the account's templates and endpoints, oldest first, each fact once and without gaps. Whoever asks again with the cursor that the answer ended with misses nothing and sees nothing twice, whatever is written meanwhile; with `wait`, the answer comes as soon as there is something to tell. Events are kept for a time that the operator sets, five days at least; whoever comes too late is told so.",
        scope: Some(Scope::Read),
        parameters: &["PhoneNumberId", "Key", "AfterEvent", "Limit", "Wait"],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "Some events; none if there were none before the time was up.",
            headers: &["Cache-Control"],
            content: Some(content("EventPage", &examples::page_of_events())),
            links: Some(json!({
                "next": link("listEvents", "Goes on behind the end of this page.", None, next),
            })),
        }],
        refusals: [CALLER, &[Kind::BadRequest, Kind::EventsForgotten]].concat(),
    }
}
