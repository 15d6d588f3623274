//! The feed.

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::json;

use super::{
    calls::{CALLER, content, link},
    examples,
    operation::{Answer, Operation},
};
use crate::api::{problem::ProblemKind, v1::events::FEED};

pub(super) const TAG: &str = "Events";

pub(super) fn list() -> Operation {
    let next = Some(("query.after", json!("$response.body#/paging/cursors/after")));
    Operation {
        method: "get",
        path: FEED,
        id: "listEvents",
        tag: TAG,
        summary: "Follow the events",
        description: "The events of the account's templates and endpoints, oldest first, without gaps. A client that continues with the cursor of the last response misses no event and sees none twice. With `wait`, the response is sent as soon as there is an event. Events are kept for a period that the operator configures, at least five days; a cursor that points to an expired event is refused.",
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
        refusals: [CALLER, &[ProblemKind::BadRequest, ProblemKind::EventsForgotten]].concat(),
    }
}
