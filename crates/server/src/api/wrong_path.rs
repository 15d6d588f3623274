//! Says what is wrong with a path or method that does not exist. A path can contain an API key, so no
//! sentence repeats a segment of it.

use axum::http::Method;
use galley_domain::{account, document::suggest::nearest};

use super::problem::{Problem, ProblemKind};

/// The collections of API v1.0.
const COLLECTIONS: [&str; 7] =
    ["message_templates", "events", "webhooks", "tokens", "audit", "emulator", "upstream"];

/// What clients call instead of `message_templates`.
const OTHER_NAMES: [&str; 4] = ["templates", "template", "message-templates", "messagetemplates"];

/// How many segments of an unknown path are looked at.
const MAX_SEGMENTS: usize = 8;

/// The paths of the service that have one segment.
const PAGES: [&str; 7] =
    ["docs", "openapi.json", "openapi-graph.json", "problems", "healthz", "readyz", "metrics"];

const TEMPLATES: &str = "`/api/v1.0/{phone_number_id}/{key}/message_templates`";

/// The problem of an unknown path.
pub(crate) fn not_found(path: &str) -> Problem {
    Problem::of(ProblemKind::NotFound).detail(explain(path))
}

/// What is wrong with an unknown path.
fn explain(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match segments[..] {
        ["api", "v1.0", ref rest @ ..] => explain_v1(rest),
        ["api", version, ..] if is_like_version(version) => format!(
            "The only version of this API is `v1.0`: begin the path with `/api/v1.0/`, as in {TEMPLATES}."
        ),
        ["api", ..] => {
            format!(
                "After `/api` comes the version `v1.0`: begin the path with `/api/v1.0/`, as in {TEMPLATES}."
            )
        }
        ["console", ..] => {
            "The console has no such page: it begins at `/console`, unless the setting `console` is off."
                .to_owned()
        }
        _ if segments.iter().take(MAX_SEGMENTS).any(|segment| is_templates(segment)) => format!(
            "The path lacks its beginning: API v1.0 is at {TEMPLATES}, and the Graph surface at `/{{version}}/{{account_id}}/message_templates` with a version such as `v23.0`."
        ),
        [page] => near_page(page),
        ["docs", ..] => "There is no such file. The API reference is at `/docs`.".to_owned(),
        ["schemas", ..] => {
            "The schemas are at `/schemas/v1/template.json` and `/schemas/whatsapp/template.json`."
                .to_owned()
        }
        ["problem", _] => {
            "The pages of problems are at `/problems/{slug}`, and `/problems` lists them."
                .to_owned()
        }
        _ => UNKNOWN.to_owned(),
    }
}

const UNKNOWN: &str =
    "There is nothing at this path. `/` lists what this service offers, and `/docs` all calls.";

fn near_page(page: &str) -> String {
    let page = match page {
        "health" | "live" | "livez" | "ping" | "status" => Some("healthz"),
        "ready" => Some("readyz"),
        "swagger" | "swagger-ui" | "redoc" => Some("docs"),
        "openapi" | "openapi.yaml" | "openapi.yml" | "swagger.json" => Some("openapi.json"),
        page => nearest(page, PAGES),
    };
    page.map_or_else(|| UNKNOWN.to_owned(), |page| format!("Did you mean `/{page}`?"))
}

/// Whether a segment is `message_templates`, or what clients write instead.
fn is_templates(segment: &str) -> bool {
    OTHER_NAMES.contains(&segment) || nearest(segment, ["message_templates"]).is_some()
}

/// Whether a segment is meant as a version: `v2`, `1.0`.
fn is_like_version(segment: &str) -> bool {
    let numbers = segment.trim_start_matches(['v', 'V']);
    let is_short = (1..=5).contains(&numbers.len());
    let has_mark = numbers.len() < segment.len() || numbers.contains('.');
    has_mark && is_short && numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// What is wrong with the segments after `/api/v1.0`.
fn explain_v1(rest: &[&str]) -> String {
    if rest.contains(&"") {
        return format!(
            "The path has an empty segment: a phone number id or API key that is not set leaves one. Calls are at {TEMPLATES}."
        );
    }
    let collection = rest.iter().position(|segment| COLLECTIONS.contains(segment));
    let missing = match (collection, rest.len()) {
        (Some(0), _) | (None, 0) => "Phone number id and API key are missing",
        (Some(1), _) => {
            "The phone number id or the API key is missing: both come before the collection"
        }
        (None, 1) => "The API key and the collection are missing",
        (None, 2) => {
            return "The collection is missing: after the API key comes `/message_templates`, `/events`, `/webhooks`, `/tokens` or `/audit`.".to_owned();
        }
        (Some(3..), _) => "There are too many segments before the collection",
        _ => return explain_call(rest),
    };
    format!("{missing}. Calls are at {TEMPLATES}.")
}

/// What is wrong with a path that has a phone number id, a key and a third segment.
fn explain_call(rest: &[&str]) -> String {
    for (segment, what) in rest.iter().zip(["phone number id", "API key"]) {
        if !account::is_valid_path_segment(segment) {
            return format!(
                "The {what} in the path is invalid: it consists of 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -, without percent-encoding."
            );
        }
    }
    match rest[2..] {
        ["message_templates", "validate", ..] => {
            "Nothing comes after `message_templates/validate`.".to_owned()
        }
        ["message_templates", "proof", ..] => {
            "Nothing comes after `message_templates/proof`.".to_owned()
        }
        ["message_templates", _, action] => action_sentence(
            action,
            "message_templates/{id}",
            ["versions", "review", "render", "proof", "upstream"].as_slice(),
        ),
        ["message_templates", _, "upstream", action] => action_sentence(
            action,
            "message_templates/{id}/upstream",
            ["submit", "accept", "push", "retry"].as_slice(),
        ),
        ["webhooks", _, action] => {
            action_sentence(action, "webhooks/{id}", ["rotate", "deliveries", "replay"].as_slice())
        }
        ["events", ..] => {
            "Nothing comes after `events`: use the query parameters `after` and `limit`.".to_owned()
        }
        ["audit", ..] => {
            "Nothing comes after `audit`: use the query parameters `after` and `limit`.".to_owned()
        }
        ["emulator"] => {
            "After `emulator` comes `/rules`, `/clock`, `/faults` or `/messages`.".to_owned()
        }
        ["emulator", call] => action_sentence(
            call,
            "emulator",
            ["rules", "clock", "faults", "messages"].as_slice(),
        ),
        ["upstream", call] => action_sentence(call, "upstream", ["operations"].as_slice()),
        ["message_templates" | "webhooks" | "tokens" | "emulator" | "upstream", ..] => {
            "The path has more segments than any call. `/docs` lists all calls.".to_owned()
        }
        ["messages", ..] => {
            "Galley does not send messages. Render a template with `POST …/message_templates/{id}/render`, and send the result with your messaging provider.".to_owned()
        }
        [other, ..] => {
            let near = nearest(other, COLLECTIONS);
            let near = near.or(OTHER_NAMES.contains(&other).then_some("message_templates"));
            near.map_or_else(
                || "The collection after the API key does not exist: use `message_templates`, `events`, `webhooks`, `tokens` or `audit`.".to_owned(),
                |near| format!("The collection after the API key is called `{near}`."),
            )
        }
        [] => UNKNOWN.to_owned(),
    }
}

fn action_sentence(written: &str, base: &str, actions: &[&str]) -> String {
    match nearest(written, actions.iter().copied()) {
        Some(action) => format!("Did you mean `{base}/{action}`?"),
        None => format!("After `{base}` comes nothing, or one of `{}`.", actions.join("`, `")),
    }
}

/// Which method to use instead, for routes where clients expect another one.
pub(crate) fn method_hint(method: &Method, route: &str) -> Option<&'static str> {
    let call = route.strip_prefix("/api/v1.0/{phone_number_id}/{key}/")?;
    let hint = match (call, method.as_str()) {
        ("message_templates", "PUT" | "PATCH" | "DELETE") => {
            "POST creates a template and GET lists templates. To edit or delete one, add its id to the path: PATCH or DELETE `…/message_templates/{id}`."
        }
        ("message_templates/{id}", _) => {
            "GET reads the template, PATCH edits it and DELETE deletes it. To create one, POST to `…/message_templates`."
        }
        ("webhooks", "PUT" | "PATCH" | "DELETE") => {
            "POST registers an endpoint and GET lists them. To change or delete one, add its id to the path: PATCH or DELETE `…/webhooks/{id}`."
        }
        ("webhooks/{id}", _) => {
            "GET reads the endpoint, PATCH changes it and DELETE deletes it. To register one, POST to `…/webhooks`."
        }
        ("message_templates/validate", _) => "POST the document that is to be validated.",
        ("message_templates/proof", _) => {
            "POST the document that is to be shown. GET `…/message_templates/{id}/proof` shows a stored one."
        }
        ("message_templates/{id}/review", _) => "POST the decision.",
        ("message_templates/{id}/render", _) => "POST the values to fill in.",
        ("tokens", "PUT" | "PATCH" | "DELETE") => {
            "POST creates a token and GET lists them. To revoke one, add its id to the path: DELETE `…/tokens/{id}`."
        }
        ("emulator/rules", _) => "GET shows the review rules, PUT replaces them.",
        ("emulator/clock", _) => "GET shows the clock, POST moves it.",
        ("emulator/faults", _) => {
            "GET lists the faults, POST adds one, DELETE deletes all of them."
        }
        ("emulator/faults/{id}", _) => {
            "DELETE deletes the fault. GET `…/emulator/faults` lists all of them."
        }
        ("tokens/{id}", _) => "DELETE revokes the token. GET `…/tokens` lists all of them.",
        (
            "message_templates/{id}/versions"
            | "message_templates/{id}/proof"
            | "events"
            | "audit"
            | "emulator/messages"
            | "upstream"
            | "upstream/operations"
            | "upstream/templates"
            | "message_templates/{id}/upstream"
            | "webhooks/{id}/deliveries",
            _,
        ) => "This call only reads: use GET.",
        (
            "webhooks/{id}/rotate"
            | "webhooks/{id}/replay"
            | "message_templates/{id}/upstream/submit"
            | "message_templates/{id}/upstream/accept"
            | "message_templates/{id}/upstream/push"
            | "message_templates/{id}/upstream/retry",
            _,
        ) => "Use POST.",
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detail_says_what_is_wrong_with_the_path() {
        for (path, expected) in [
            ("/api", "After `/api` comes the version `v1.0`"),
            ("/api/1555/KEY/message_templates", "After `/api` comes the version `v1.0`"),
            ("/api/v1/1555/KEY/message_templates", "The only version of this API is `v1.0`"),
            ("/api/v2.0/1555/KEY/message_templates", "The only version of this API is `v1.0`"),
            ("/api/v1.0", "Phone number id and API key are missing"),
            ("/api/v1.0/message_templates", "Phone number id and API key are missing"),
            ("/api/v1.0/KEY/message_templates", "both come before the collection"),
            ("/api/v1.0/KEY/message_templates/7", "both come before the collection"),
            ("/api/v1.0/1555", "The API key and the collection are missing"),
            ("/api/v1.0/1555/KEY", "after the API key comes `/message_templates`"),
            ("/api/v1.0/1555/a/KEY/message_templates", "too many segments before the collection"),
            ("/api/v1.0//KEY/message_templates", "empty segment"),
            ("/api/v1.0/1555/KEY/message_templates//7", "empty segment"),
            ("/api/v1.0/1 5/KEY/message_templates", "phone number id in the path is invalid"),
            ("/api/v1.0/1555/K%45Y/message_templates", "API key in the path is invalid"),
            ("/api/v1.0/1555/KEY/message_template", "is called `message_templates`"),
            ("/api/v1.0/1555/KEY/message-templates", "is called `message_templates`"),
            ("/api/v1.0/1555/KEY/templates/7", "is called `message_templates`"),
            ("/api/v1.0/1555/KEY/event", "is called `events`"),
            ("/api/v1.0/1555/KEY/webhook/7", "is called `webhooks`"),
            ("/api/v1.0/1555/KEY/messages", "Galley does not send messages"),
            (
                "/api/v1.0/1555/KEY/orders",
                "use `message_templates`, `events`, `webhooks`, `tokens` or `audit`",
            ),
            ("/api/v1.0/1555/KEY/token/7", "is called `tokens`"),
            ("/api/v1.0/1555/KEY/emulator", "`/rules`, `/clock`, `/faults` or `/messages`"),
            ("/api/v1.0/1555/KEY/emulator/message", "`emulator/messages`?"),
            ("/api/v1.0/1555/KEY/emulator/faults/7/8", "more segments than any call"),
            ("/api/v1.0/1555/KEY/upstream/operation", "`upstream/operations`?"),
            ("/api/v1.0/1555/KEY/upstream/a/b", "more segments than any call"),
            (
                "/api/v1.0/1555/KEY/message_templates/7/upstream/submitt",
                "`message_templates/{id}/upstream/submit`?",
            ),
            ("/api/v1.0/1555/KEY/audit/7", "query parameters `after` and `limit`"),
            ("/api/v1.0/1555/KEY/tokens/7/rotate", "more segments than any call"),
            ("/api/v1.0/1555/KEY/message_templates/7/reder", "`message_templates/{id}/render`?"),
            (
                "/api/v1.0/1555/KEY/message_templates/7/copy",
                "`versions`, `review`, `render`, `proof`",
            ),
            ("/api/v1.0/1555/KEY/message_templates/7/proofs", "`message_templates/{id}/proof`?"),
            ("/api/v1.0/1555/KEY/message_templates/proof/7", "Nothing comes after"),
            ("/api/v1.0/1555/KEY/message_templates/7/versions/1", "more segments than any call"),
            ("/api/v1.0/1555/KEY/message_templates/validate/7", "Nothing comes after"),
            ("/api/v1.0/1555/KEY/webhooks/7/delivery", "`webhooks/{id}/deliveries`?"),
            ("/api/v1.0/1555/KEY/events/7", "query parameters `after` and `limit`"),
            ("/message_templates", "The path lacks its beginning"),
            ("/v1/1555/KEY/message_templates", "The path lacks its beginning"),
            ("/abc/KEY/message_template", "The path lacks its beginning"),
            ("/health", "Did you mean `/healthz`?"),
            ("/openapi.yaml", "Did you mean `/openapi.json`?"),
            ("/metric", "Did you mean `/metrics`?"),
            ("/console/unknown", "it begins at `/console`"),
            ("/console/api/-/message_template", "it begins at `/console`"),
            ("/problem/not-found", "`/problems` lists them"),
            ("/wp-login.php", "There is nothing at this path"),
            ("/a/b/c", "There is nothing at this path"),
            ("", "There is nothing at this path"),
        ] {
            let detail = explain(path);
            assert!(detail.contains(expected), "{path}: {detail}");
            assert!(detail.ends_with(['.', '?']), "{path}: {detail}");
        }
    }

    #[test]
    fn no_segment_of_the_path_is_repeated() {
        let secret = "gk-secret";
        for path in [
            "/api/v1.0/1555/S",
            "/api/v1.0/S/message_templates",
            "/api/v1.0/1555/S/S",
            "/S",
            "/api/v1.0/S/S/message_template/S",
            "/api/S",
            "/api/v1/S",
            "/S/S/message_templates",
            "/api/v1.0/1555/S%/events",
            "/api/v1.0/1/S/message_templates/S/S",
            "/problem/S",
        ] {
            let detail = explain(&path.replace('S', secret));
            assert!(!detail.contains(secret), "{path}: {detail}");
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_one() {
        let base = "/api/v1.0/{phone_number_id}/{key}/";
        for (method, call, expected) in [
            (Method::PUT, "message_templates/{id}", "PATCH edits it"),
            (Method::POST, "message_templates/{id}", "POST to `…/message_templates`"),
            (Method::DELETE, "message_templates", "add its id"),
            (Method::GET, "message_templates/{id}/render", "POST the values"),
            (Method::POST, "events", "use GET"),
        ] {
            let hint = method_hint(&method, &format!("{base}{call}")).unwrap();
            assert!(hint.contains(expected), "{method} {call}: {hint}");
        }
        assert_eq!(method_hint(&Method::POST, "/healthz"), None);
    }
}
