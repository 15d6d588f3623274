//! Calls of Meta's Graph API that Galley does not offer, and what to do instead.

use galley_domain::rulebook::graph_codes::GraphError;

use crate::api::problem::{Problem, ProblemKind};

/// The detail for any other unknown path that begins with a version.
const PATH_NOT_FOUND: &str = "The path does not exist. After the version, use the id of a template, the id of the account, or the id of the account followed by `message_templates`, `upsert_message_templates` or `subscribed_apps`. Upload samples to `uploads`.";

/// The problem of an unknown path of this surface.
pub(crate) fn path_not_found(path: &str) -> Problem {
    let mut segments = path.split('/').skip(2);
    let (node, edge) = (segments.next().unwrap_or_default(), segments.next());
    if let Some(refusal) = edge.and_then(edge_problem).or_else(|| node_problem(node)) {
        return refusal;
    }
    if segments.next().is_some_and(is_v1_collection) {
        return Problem::of(ProblemKind::NotFound).detail(
            "This looks like a call of API v1.0, whose paths begin with `/api/v1.0/`: `/api/v1.0/{phone_number_id}/{key}/message_templates`.",
        );
    }
    let detail = match edge {
        Some("templates" | "message_template" | "messageTemplates") => {
            "The edge is called `message_templates`."
        }
        Some("upload") => "The edge is called `uploads`.",
        _ => PATH_NOT_FOUND,
    };
    Problem::of(ProblemKind::NotFound).detail(detail)
}

/// The problem of a node that is not an id, such as `me`.
pub(super) fn node_problem(node: &str) -> Option<Problem> {
    let detail = match node {
        "me" => {
            "A token of Galley belongs to an account and not to a person, so there is no `me`. Use the id of the account: `galley account list` shows it."
        }
        "debug_token" => {
            "Galley does not inspect tokens over the API. `galley token list ACCOUNT` shows scopes and expiry."
        }
        "oauth" => {
            "Galley has no login and exchanges no tokens. `galley token create ACCOUNT` creates an access token."
        }
        "search" | "ids" => {
            "Galley does not offer this call. Use the id of the account or of a template."
        }
        _ => return None,
    };
    Some(not_offered(detail))
}

const NO_MESSAGES: &str = "Galley does not send messages; only emulator accounts have a sandbox for them. Render the template with `POST /api/v1.0/{phone_number_id}/{key}/message_templates/{template_id}/render`, and send the payload to Meta or your provider.";

const NO_ANALYTICS: &str =
    "Galley does not send messages, so it has no analytics. Ask Meta or your provider.";

/// The problem of a comparison in an account that is not an emulator.
pub(super) fn analytics_not_offered() -> Problem {
    refused(ProblemKind::NotAnEmulator, NO_ANALYTICS)
}

/// The problem of a message from an account that is not an emulator.
pub(super) fn messages_not_offered() -> Problem {
    refused(ProblemKind::NotAnEmulator, NO_MESSAGES)
}

fn edge_problem(edge: &str) -> Option<Problem> {
    let detail = match edge {
        "messages" | "marketing_messages" | "calls" | "block_users" => NO_MESSAGES,
        "media" => {
            "Galley stores no media of messages. Upload the sample of a template to `/{version}/app/uploads`; upload media for messages to Meta or your provider."
        }
        "phone_numbers"
        | "register"
        | "deregister"
        | "request_code"
        | "verify_code"
        | "whatsapp_business_profile"
        | "whatsapp_commerce_settings"
        | "settings" => {
            "Galley does not register phone numbers or keep their profiles: do this with Meta or your provider. `galley phone add ACCOUNT ID` lets an account use a phone number id."
        }
        "analytics"
        | "conversation_analytics"
        | "pricing_analytics"
        | "template_analytics"
        | "template_group_analytics" => NO_ANALYTICS,
        "flows" | "assets" | "message_template_library" => {
            "Galley does not offer this call. It creates, reads, edits, deletes and renders message templates; see `/docs`."
        }
        "migrate_message_templates" => {
            "Galley does not copy templates between accounts. List them with one token and create them with the other."
        }
        "subscriptions" => {
            "Galley has no apps with subscriptions. Subscribe the account: `POST /{version}/{account_id}/subscribed_apps` with `override_callback_uri` and `verify_token`."
        }
        "accounts"
        | "businesses"
        | "owned_whatsapp_business_accounts"
        | "client_whatsapp_business_accounts"
        | "assigned_users"
        | "permissions" => {
            "Galley has no businesses and users. A token belongs to one account; `galley account list` shows its id."
        }
        _ => return None,
    };
    Some(not_offered(detail))
}

fn is_v1_collection(segment: &str) -> bool {
    ["message_templates", "events", "webhooks"].contains(&segment)
}

fn not_offered(detail: &str) -> Problem {
    refused(ProblemKind::NotFound, detail)
}

/// A problem with Meta's code for an object that does not support the operation.
fn refused(kind: ProblemKind, detail: &str) -> Problem {
    let title = "Galley does not offer this call";
    let graph = GraphError { code: 100, subcode: Some(33), title };
    Problem::of(kind).detail(detail).graph(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_not_offered_say_so_and_what_to_do() {
        for (path, expected) in [
            ("/v23.0/1555/marketing_messages", "sandbox for them. Render the template with"),
            ("/v23.0/1555/media", "Upload the sample of a template to"),
            ("/v23.0/77/phone_numbers", "`galley phone add ACCOUNT ID`"),
            ("/v23.0/1555/register", "with Meta or your provider"),
            ("/v23.0/77/template_analytics", "no analytics"),
            ("/v23.0/me", "`galley account list` shows it"),
            ("/v23.0/me/accounts", "`galley account list` shows its id"),
            ("/v23.0/me/unknown", "there is no `me`"),
            ("/v23.0/debug_token", "`galley token list ACCOUNT`"),
            ("/v23.0/oauth/access_token", "`galley token create ACCOUNT`"),
            ("/v23.0/app/subscriptions", "subscribed_apps"),
            ("/v23.0/77/migrate_message_templates", "create them with the other"),
            ("/v23.0/77/message_template", "The edge is called `message_templates`"),
            ("/v23.0/1555/KEY/message_templates", "paths begin with `/api/v1.0/`"),
            ("/v23.0/77/unknown", "The path does not exist"),
        ] {
            let problem = path_not_found(path);
            assert!(problem.detail_text().contains(expected), "{path}: {problem:?}");
            assert!(!problem.detail_text().contains("KEY"), "{path}: {problem:?}");
        }
    }
}
