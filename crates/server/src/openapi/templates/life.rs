//! What becomes of a template: its versions, decisions on it, and messages made from it.

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::json;

use super::{TAG, template};
use crate::{
    api::{
        problem::ProblemKind,
        v1::templates::{RENDER, REVIEW, VERSIONS},
    },
    openapi::{
        calls::{BODY, CALLER, body, content, contents, link},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn versions() -> Operation {
    let version = Some(("query.version", json!("$response.body#/data/0/version")));
    let next = Some(("query.after", json!("$response.body#/paging/cursors/after")));
    let id = Some("$request.path.id");
    Operation {
        method: "get",
        path: VERSIONS,
        id: "listVersions",
        tag: TAG,
        summary: "List the versions of a template",
        description: "Every version that the template ever had, newest first: what became of it, when and by whom. Its components are shown by reading the template with `version`.",
        scope: Some(Scope::Read),
        parameters: &["PhoneNumberId", "Key", "TemplateId", "Limit", "AfterVersion"],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "A page of versions.",
            headers: &["Cache-Control"],
            content: Some(content("VersionPage", &examples::page_of_versions())),
            links: Some(json!({
                "show": link("showTemplate", "Reads the template in that version.", id, version),
                "next": link("listVersions", "Goes on behind the end of this page.", id, next),
            })),
        }],
        refusals: [CALLER, &[ProblemKind::BadRequest, ProblemKind::TemplateUnknown]].concat(),
    }
}

pub(super) fn review() -> Operation {
    Operation {
        method: "post",
        path: REVIEW,
        id: "reviewTemplate",
        tag: TAG,
        summary: "Decide on a template",
        description: "Approves or rejects the version that waits, or takes the template out of use: `pause` for a while, until `resume`; `disable` for good. Which decisions are possible depends on where the template stands; the refusal of another one lists them.",
        scope: Some(Scope::Review),
        parameters: &["PhoneNumberId", "Key", "TemplateId", "IfMatch"],
        body: Some(body("The decision", "Decision", &examples::of_decisions())),
        answers: vec![template("The template as it stands now.", &examples::paused())],
        refusals: [
            CALLER,
            BODY,
            &[
                ProblemKind::TemplateUnknown,
                ProblemKind::InvalidDecision,
                ProblemKind::RevisionOutdated,
                ProblemKind::MoveNotPossible,
            ],
        ]
        .concat(),
    }
}

pub(super) fn render() -> Operation {
    Operation {
        method: "post",
        path: RENDER,
        id: "renderTemplate",
        tag: TAG,
        summary: "Render a template",
        description: "Puts values into the live version of the template: the texts as the customer reads them, and the message as WhatsApp's API takes it, complete but for the recipient. Nothing is sent. Which values are needed is up to the template: one for each different placeholder, the address of the attachment for a MEDIA header, and one for each button that takes one; a template of the rulebook `whatsapp` takes values by name where it has names, and values for its cards and its offer. Unknown members are refused here, because ignoring them would hide a typo.",
        scope: Some(Scope::Read),
        parameters: &["PhoneNumberId", "Key", "TemplateId"],
        body: Some(body("The values", "Values", &examples::of_values())),
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "The message.",
            headers: &["Cache-Control"],
            content: Some(contents("Rendered", &examples::rendered())),
            links: None,
        }],
        refusals: [
            CALLER,
            BODY,
            &[ProblemKind::TemplateUnknown, ProblemKind::NotLive, ProblemKind::InvalidValues],
        ]
        .concat(),
    }
}
