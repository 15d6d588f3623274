//! `{base}/webhooks/{id}`: reading, changing and deleting one endpoint, and rotating its secret.

use axum::http::StatusCode;
use galley_domain::account::Scope;

use super::{TAG, webhook};
use crate::{
    api::{
        problem::ProblemKind,
        v1::webhooks::{ITEM, ROTATE},
    },
    openapi::{
        calls::{BODY, CALLER, body, optional_body},
        examples,
        operation::{Answer, Operation},
    },
};

pub(super) fn show() -> Operation {
    Operation {
        method: "get",
        path: ITEM,
        id: "showWebhook",
        tag: TAG,
        summary: "Read an endpoint",
        description: "One endpoint of the account: where events are sent, which, and how it is doing. Its secret is not shown.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key", "WebhookId"],
        body: None,
        answers: vec![webhook("The endpoint.", "Webhook", &examples::failing_webhook())],
        refusals: [CALLER, &[ProblemKind::BadRequest, ProblemKind::WebhookUnknown]].concat(),
    }
}

pub(super) fn edit() -> Operation {
    Operation {
        method: "patch",
        path: ITEM,
        id: "editWebhook",
        tag: TAG,
        summary: "Change an endpoint",
        description: "Gives the endpoint another address or other types of event, or switches it off or on again. What is left out stays. With the format `whatsapp` another address needs a `verify_token` and is asked before it is kept; a token alone has the present one asked once more. An endpoint that is switched on again continues with the first event that it has not received and that is still kept.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key", "WebhookId"],
        body: Some(body("What changes", "WebhookChange", &examples::of_webhook_changes())),
        answers: vec![webhook("The endpoint as it is now.", "Webhook", &examples::webhook())],
        refusals: [CALLER, BODY, &[ProblemKind::WebhookUnknown, ProblemKind::InvalidWebhook]]
            .concat(),
    }
}

pub(super) fn delete() -> Operation {
    Operation {
        method: "delete",
        path: ITEM,
        id: "deleteWebhook",
        tag: TAG,
        summary: "Delete an endpoint",
        description: "Takes the endpoint away, and its deliveries with it. Nothing more is sent to it.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key", "WebhookId"],
        body: None,
        answers: vec![Answer {
            status: StatusCode::NO_CONTENT,
            description: "The endpoint is gone.",
            headers: &["Cache-Control"],
            content: None,
            links: None,
        }],
        refusals: [CALLER, &[ProblemKind::WebhookUnknown]].concat(),
    }
}

pub(super) fn rotate() -> Operation {
    let examples = examples::of_rotations();
    Operation {
        method: "post",
        path: ROTATE,
        id: "rotateSecret",
        tag: TAG,
        summary: "Give an endpoint another secret",
        description: "Makes a new secret, told here and nowhere else. For 24 hours what is sent is signed with both, so that the receiver can be changed meanwhile. Until these are over there is no other rotation, unless it is forced: then the secret before the last one is worth nothing at once. The header of the format `whatsapp` has room for one signature: there the new secret counts alone, at once.",
        scope: Some(Scope::Webhooks),
        parameters: &["PhoneNumberId", "Key", "WebhookId"],
        body: Some(optional_body("How to rotate; nothing has to be said", "Rotation", &examples)),
        answers: vec![webhook(
            "The endpoint with its new secret.",
            "WebhookWithSecret",
            &examples::rotated(),
        )],
        refusals: [
            CALLER,
            BODY,
            &[ProblemKind::WebhookUnknown, ProblemKind::InvalidWebhook, ProblemKind::RotationOpen],
        ]
        .concat(),
    }
}
