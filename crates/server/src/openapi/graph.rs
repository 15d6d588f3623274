//! The surface that clients of WhatsApp's Graph API use: its main operations, for people who read.
//! How those clients call it is Meta's to say; here is what is answered.

mod parameters;
mod schemas;

use galley_domain::account::Scope;
use serde_json::{Value, json};

use super::{operation::reference, shared::ID};
use crate::api::graph::{NODE, SUBSCRIBED_APPS, TEMPLATE, TEMPLATES, UNPAUSE, UPLOADS, UPSERT};
pub(super) use schemas::all as all_schemas;

pub(super) const TAG: &str = "WhatsApp";

/// An operation of this surface: its refusals have one form, and need no list.
struct Call {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    description: &'static str,
    scope: Scope,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// The schema of what is answered, and an example of it.
    answer: (&'static str, Value),
}

/// Path, method and description of each operation.
pub(super) fn operations() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let of_templates = [list(), create(), delete(), show_below(), unpause(), upsert()];
    let of_nodes = [show(), edit(), cancel(), upload()];
    let of_apps = [subscribe(), subscribed(), unsubscribe()];
    let calls = of_templates.into_iter().chain(of_nodes).chain(of_apps);
    calls.map(|call| (call.path, call.method, call.render()))
}

impl Call {
    fn render(self) -> Value {
        let (schema, example) = self.answer;
        let headers = json!({
            "Cache-Control": reference("headers", "Cache-Control"),
            "x-request-id": reference("headers", "x-request-id"),
        });
        let mut parameters = parameters::of_path(self.path);
        parameters.extend(self.parameters);
        parameters.push(reference("parameters", "RequestId"));
        let mut operation = json!({
            "operationId": self.id,
            "tags": [TAG],
            "summary": self.summary,
            "description": self.description,
            "parameters": parameters,
            "security": [
                {"accessToken": [self.scope.as_str()]},
                {"accessTokenInQuery": [self.scope.as_str()]},
            ],
            "responses": {
                "200": {
                    "description": "It was done.",
                    "headers": headers,
                    "content": {"application/json": {"schema": reference("schemas", schema), "example": example}},
                },
                "default": {
                    "description": "A refusal, in the form that clients of the Graph API read: 401 and code 190 for the token, 403 for a scope or a disabled account, 503 and code 2 when the service cannot do its work right now, 400 for nearly everything else.",
                    "headers": headers,
                    "content": {"application/json": {"schema": reference("schemas", "GraphRefusal"), "example": schemas::refusal_example()}},
                },
            },
        });
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        operation
    }
}

fn list() -> Call {
    Call {
        method: "get",
        path: TEMPLATES,
        id: "graphListTemplates",
        summary: "List templates",
        description: "The account's templates, newest first. A filter with several values is written as one value, as a list with commas, or as a JSON list. `paging.next` and `paging.previous` are whole addresses, with the token in them, as the Graph API has them.",
        scope: Scope::Read,
        parameters: parameters::of_list(),
        body: None,
        answer: ("GraphTemplatePage", schemas::page_example()),
    }
}

fn create() -> Call {
    Call {
        method: "post",
        path: TEMPLATES,
        id: "graphCreateTemplate",
        summary: "Create a template",
        description: "Checks the document against every rule of the `whatsapp` rulebook and keeps it. Name and language together have to be free in the account, and all languages of a name share a category.",
        scope: Scope::Write,
        parameters: vec![reference("parameters", "IdempotencyKey")],
        body: Some(schemas::body("GraphNewTemplate", &schemas::templates())),
        answer: ("Created", json!({"id": ID, "status": "APPROVED", "category": "UTILITY"})),
    }
}

fn delete() -> Call {
    Call {
        method: "delete",
        path: TEMPLATES,
        id: "graphDeleteTemplates",
        summary: "Delete templates",
        description: "By `name` alone all languages of it, with `language` or `hsm_id` that one, by `hsm_ids` several; all of them or none.",
        scope: Scope::Write,
        parameters: parameters::of_deletion(),
        body: None,
        answer: ("GraphSuccess", json!({"success": true})),
    }
}

fn show() -> Call {
    Call {
        method: "get",
        path: NODE,
        id: "graphShowNode",
        summary: "Read a template, or the account",
        description: "A template by its id, or the account by its own; by the id of an upload, how far that has come: `file_offset` is where to go on.",
        scope: Scope::Read,
        parameters: vec![parameters::fields()],
        body: None,
        answer: ("GraphTemplate", schemas::template_example()),
    }
}

fn show_below() -> Call {
    Call {
        path: TEMPLATE,
        id: "graphShowTemplate",
        summary: "Read a template",
        description: "The same as by its id alone. The Graph API does not have this path, but at least one client does.",
        ..show()
    }
}

fn edit() -> Call {
    Call {
        method: "post",
        path: NODE,
        id: "graphEditTemplate",
        summary: "Edit a template",
        description: "Gives the template a new version. Components are replaced as a whole; what is left out stays, and what an edit does not have is passed over. Sent to the id of an upload, the body is bytes of the file, and the header `file_offset` says where they begin; the answer to the last of them holds the handle, as `h`. What has come before a connection breaks is kept.",
        scope: Scope::Write,
        parameters: Vec::new(),
        body: Some(schemas::body("GraphEdit", &schemas::edits())),
        answer: (
            "GraphEdited",
            json!({"success": true, "id": ID, "name": "order_shipped", "category": "UTILITY", "status": "APPROVED"}),
        ),
    }
}

fn cancel() -> Call {
    Call {
        method: "delete",
        path: NODE,
        id: "graphCancelUpload",
        summary: "Cancel an upload",
        description: "Forgets an upload that is not finished. What is finished stays for the templates that name it, or goes by itself after a week; templates are deleted by their name.",
        scope: Scope::Write,
        parameters: Vec::new(),
        body: None,
        answer: ("GraphSuccess", json!({"success": true})),
    }
}

fn unpause() -> Call {
    Call {
        method: "post",
        path: UNPAUSE,
        id: "graphUnpauseTemplate",
        summary: "End a template's pause",
        description: "The template is as it was before it was paused.",
        scope: Scope::Review,
        parameters: Vec::new(),
        body: None,
        answer: ("GraphSuccess", json!({"success": true})),
    }
}

fn upload() -> Call {
    Call {
        method: "post",
        path: UPLOADS,
        id: "graphBeginUpload",
        summary: "Announce the sample of an attachment",
        description: "Answers the id that the bytes are then sent to, with `POST /{version}/upload:…`. What stands before `uploads` is an app's id there; here it may be anything.",
        scope: Scope::Write,
        parameters: parameters::of_upload(),
        body: None,
        answer: ("GraphUpload", json!({"id": "upload:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"})),
    }
}

fn upsert() -> Call {
    Call {
        method: "post",
        path: UPSERT,
        id: "graphUpsertTemplates",
        summary: "Create or edit an authentication template in several languages",
        description: "For each language the template of that name is edited, or made if it is not there. All documents are judged before the first is kept; then each is a step of its own.",
        scope: Scope::Write,
        parameters: Vec::new(),
        body: Some(schemas::body("GraphUpsert", &schemas::upserts())),
        answer: ("GraphUpserted", schemas::upserted_example()),
    }
}

fn subscribe() -> Call {
    Call {
        method: "post",
        path: SUBSCRIBED_APPS,
        id: "graphSubscribe",
        summary: "Have changes of templates sent to an address",
        description: "Registers `override_callback_uri` as an endpoint of the format `whatsapp`, or lets it take the place of the one that was registered this way. Before, the address is asked with `hub.challenge` and the `verify_token`. When a secret was made, the answer tells it as `galley_secret`, this once. Without an address nothing is done.",
        scope: Scope::Webhooks,
        parameters: Vec::new(),
        body: Some(schemas::optional_body("GraphSubscription", &schemas::subscriptions())),
        answer: (
            "GraphSubscribed",
            json!({"success": true, "galley_secret": "0123456789abcdef0123456789abcdef"}),
        ),
    }
}

fn subscribed() -> Call {
    Call {
        method: "get",
        path: SUBSCRIBED_APPS,
        id: "graphListSubscriptions",
        summary: "Show where changes of templates are sent",
        description: "One app, which is this service, with the address that was registered this way, if one was. Other endpoints are listed on API v1.0.",
        scope: Scope::Webhooks,
        parameters: Vec::new(),
        body: None,
        answer: ("GraphSubscriptions", schemas::subscriptions_example()),
    }
}

fn unsubscribe() -> Call {
    Call {
        method: "delete",
        path: SUBSCRIBED_APPS,
        id: "graphUnsubscribe",
        summary: "Have nothing more sent to that address",
        description: "Deletes the endpoint that was registered this way, if there is one.",
        scope: Scope::Webhooks,
        parameters: Vec::new(),
        body: None,
        answer: ("GraphSuccess", json!({"success": true})),
    }
}
