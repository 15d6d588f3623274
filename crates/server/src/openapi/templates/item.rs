//! `{base}/message_templates/{id}`: reading, editing and deleting one template.

use axum::http::StatusCode;
use galley_domain::account::Scope;

use super::{TAG, template};
use crate::{
    api::{problem::ProblemKind, v1::templates::ITEM},
    openapi::{
        calls::{BODY, CALLER, body},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn show() -> Operation {
    Operation {
        method: "get",
        path: ITEM,
        id: "showTemplate",
        tag: TAG,
        summary: "Read a template",
        description: "One template of the account, whichever of its phone numbers it was created for: its newest version, or the one that is asked for.",
        scope: Some(Scope::Read),
        parameters: &["PhoneNumberId", "Key", "TemplateId", "Version", "IfNoneMatch"],
        body: None,
        answers: vec![
            template("The template.", &examples::shown()),
            Answer {
                status: StatusCode::NOT_MODIFIED,
                description: "The template is as the caller knows it: its tag is among those in If-None-Match.",
                headers: &["Cache-Control", "ETag"],
                content: None,
                links: None,
            },
        ],
        refusals: [
            CALLER,
            &[ProblemKind::BadRequest, ProblemKind::TemplateUnknown, ProblemKind::VersionUnknown],
        ]
        .concat(),
    }
}

pub(super) fn edit() -> Operation {
    Operation {
        method: "patch",
        path: ITEM,
        id: "editTemplate",
        tag: TAG,
        summary: "Edit a template",
        description: "Gives the template a new version with other components, another category or both, or brings an older version back. `name`, `language` and `allow_category_change` never change: they are left out, or repeated as they are. The version that was approved last stays live until the new one is approved.",
        scope: Some(Scope::Write),
        parameters: &["PhoneNumberId", "Key", "TemplateId", "IfMatch"],
        body: Some(body("What changes", "Edit", &examples::of_edits())),
        answers: vec![template("The template in its new version.", &examples::edited())],
        refusals: [
            CALLER,
            BODY,
            &[
                ProblemKind::TemplateUnknown,
                ProblemKind::VersionUnknown,
                ProblemKind::InvalidTemplate,
                ProblemKind::RevisionOutdated,
                ProblemKind::CategoryLocked,
                ProblemKind::LimitReached,
                ProblemKind::MoveNotPossible,
                ProblemKind::WrongSurface,
            ],
        ]
        .concat(),
    }
}

pub(super) fn delete() -> Operation {
    Operation {
        method: "delete",
        path: ITEM,
        id: "deleteTemplate",
        tag: TAG,
        summary: "Delete a template",
        description: "Takes the template away, wherever it stands. Its name is free at once.",
        scope: Some(Scope::Write),
        parameters: &["PhoneNumberId", "Key", "TemplateId", "IfMatch"],
        body: None,
        answers: vec![Answer {
            status: StatusCode::NO_CONTENT,
            description: "The template is gone.",
            headers: &["Cache-Control"],
            content: None,
            links: None,
        }],
        refusals: [
            CALLER,
            &[ProblemKind::BadRequest, ProblemKind::TemplateUnknown, ProblemKind::RevisionOutdated],
        ]
        .concat(),
    }
}
