//! `{base}/webhooks` itself: listing and registering.

use axum::http::StatusCode;
use galley_domain::account::Scope;

use super::{TAG, links_to_one};
use crate::{
    api::{problem::ProblemKind, v1::webhooks::COLLECTION},
    openapi::{
        calls::{BODY, CALLER, body, content},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn list() -> Operation {
    Operation {
        method: "get",
        path: COLLECTION,
        id: "listWebhooks",
        tag: TAG,
        summary: "List endpoints",
        description: "Every endpoint of the account, oldest first, on one page: there are at most 20.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key"],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "The endpoints.",
            headers: &["Cache-Control"],
            content: Some(content("WebhookList", &examples::list_of_webhooks())),
            links: Some(links_to_one("$response.body#/data/0/id")),
        }],
        refusals: [CALLER, &[ProblemKind::BadRequest]].concat(),
    }
}

pub(super) fn create() -> Operation {
    Operation {
        method: "post",
        path: COLLECTION,
        id: "createWebhook",
        tag: TAG,
        summary: "Register an endpoint",
        description: "Has the events from now on delivered to an address. They are signed as Standard Webhooks 1.0 says, with the secret that this answer tells and no other does. The address has to be https, and every address of its host public, unless the operator allows others; this is looked at now and at every delivery. With the format `whatsapp` they are sent as Meta sends changes of templates, signed in `X-Hub-Signature-256`; before anything is kept the address is asked with `hub.challenge`, and has to answer. An Idempotency-Key is not looked at: the answer holds a secret.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key"],
        body: Some(body("The endpoint", "NewWebhook", &examples::of_webhooks())),
        answers: vec![Answer {
            status: StatusCode::CREATED,
            description: "The endpoint is registered.",
            headers: &["Cache-Control", "Location"],
            content: Some(content("WebhookWithSecret", &examples::registered())),
            links: Some(links_to_one("$response.body#/id")),
        }],
        refusals: [CALLER, BODY, &[ProblemKind::InvalidWebhook, ProblemKind::TooManyWebhooks]]
            .concat(),
    }
}
