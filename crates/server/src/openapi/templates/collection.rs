//! `{base}/message_templates` itself: listing, creating and trying out.

use axum::http::StatusCode;
use galley_domain::account::Scope;
use serde_json::json;

use super::{TAG, links_to_one};
use crate::{
    api::{
        problem::ProblemKind,
        v1::templates::{COLLECTION, VALIDATE},
    },
    openapi::{
        calls::{BODY, CALLER, body, content, link},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn list() -> Operation {
    let mut links = links_to_one("$response.body#/data/0/id", None);
    let next = Some(("query.after", json!("$response.body#/paging/cursors/after")));
    links["next"] = link("listTemplates", "Goes on behind the end of this page.", None, next);
    Operation {
        method: "get",
        path: COLLECTION,
        id: "listTemplates",
        tag: TAG,
        summary: "List and search templates",
        description: "The account's templates, newest first, whichever of its phone numbers they were created for. Filters may be combined; a template has to pass all of them. What is found by `q` follows a change after a moment.",
        scope: Some(Scope::Read),
        parameters: &[
            "PhoneNumberId",
            "Key",
            "Name",
            "Status",
            "Category",
            "Language",
            "Words",
            "Limit",
            "AfterTemplate",
        ],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "A page of templates.",
            headers: &["Cache-Control"],
            content: Some(content("TemplatePage", &examples::page_of_templates())),
            links: Some(links),
        }],
        refusals: [CALLER, &[ProblemKind::BadRequest]].concat(),
    }
}

pub(super) fn create() -> Operation {
    Operation {
        method: "post",
        path: COLLECTION,
        id: "createTemplate",
        tag: TAG,
        summary: "Create a template",
        description: "Checks the document against every rule and keeps it. Its name has to be free across the whole service. What the schema cannot say is checked too: placeholders count from `{{1}}` without gaps, and there is exactly one sample for each different one.",
        scope: Some(Scope::Write),
        parameters: &["PhoneNumberId", "Key", "IdempotencyKey"],
        body: Some(body("The template", "NewTemplate", &examples::of_templates())),
        answers: vec![Answer {
            status: StatusCode::CREATED,
            description: "The template was created, now or by an earlier request with the same Idempotency-Key.",
            headers: &["Cache-Control", "Location", "Idempotent-Replayed"],
            content: Some(content("Created", &examples::created())),
            links: Some(links_to_one("$response.body#/id", None)),
        }],
        refusals: [
            CALLER,
            BODY,
            &[
                ProblemKind::InvalidTemplate,
                ProblemKind::IdempotencyKeyReused,
                ProblemKind::NameTaken,
                ProblemKind::WrongSurface,
                ProblemKind::LimitReached,
            ],
        ]
        .concat(),
    }
}

pub(super) fn validate() -> Operation {
    Operation {
        method: "post",
        path: VALIDATE,
        id: "validateTemplate",
        tag: TAG,
        summary: "Try a template out",
        description: "Tells everything that a creation would be refused for, a taken name included, or with `template` an edit of that one, and what is worth a second look although it would be accepted. Nothing is kept. A document that breaks rules is no failure here: the answer says so.",
        scope: Some(Scope::Write),
        parameters: &["PhoneNumberId", "Key", "EditedTemplate"],
        body: Some(body("The template", "Trial", &examples::of_trials())),
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "What the document would meet with.",
            headers: &["Cache-Control"],
            content: Some(content("Verdict", &examples::verdict())),
            links: None,
        }],
        refusals: [CALLER, BODY, &[ProblemKind::TemplateUnknown]].concat(),
    }
}
