//! The parameters of the surface for clients of the Graph API.

use galley_domain::{rulebook::Category, template::Status};
use serde_json::{Value, json};

use super::super::shared::{self, ID};

/// The segments that vary in a path.
pub(super) fn of_path(path: &str) -> Vec<Value> {
    let node = if path.contains("{node}/") && !path.contains("unpause") {
        "The account's id, which the token has to belong to."
    } else {
        "A template's id, or the account's own."
    };
    let all = [
        (
            "version",
            json!({"type": "string", "pattern": "^v[0-9]+\\.[0-9]+$"}),
            "v23.0",
            "Any version: all are answered alike.",
        ),
        ("node", shared::id(), ID, node),
        ("id", shared::id(), ID, "The template's id."),
    ];
    all.into_iter()
        .filter(|(name, ..)| path.contains(&format!("{{{name}}}")))
        .map(|(name, schema, example, about)| {
            json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema, "example": example})
        })
        .collect()
}

fn in_query(name: &str, example: &str, about: &str) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": about, "schema": {"type": "string"}, "example": example})
}

pub(super) fn fields() -> Value {
    in_query(
        "fields",
        "name,status,components",
        "Which fields are wanted; `id` always comes. Without it: name, parameter_format, components, language, status, category, sub_category, previous_category, message_send_ttl_seconds, as far as they have a value. On request also rejected_reason, quality_score, cta_url_link_tracking_opted_out, degrees_of_freedom_spec, display_format.",
    )
}

pub(super) fn of_list() -> Vec<Value> {
    let one_of = |words: &[&str]| format!("Some of {}, in any letter case.", words.join(", "));
    vec![
        fields(),
        in_query("status", "approved", &one_of(Status::VALUES)),
        in_query("category", "MARKETING,UTILITY", &one_of(Category::VALUES)),
        in_query("language", "[\"en_US\",\"de\"]", "Some languages."),
        in_query("name", "order_shipped", "All languages of this name."),
        in_query(
            "content",
            "half price",
            "Every word of it begins some word of the name or the texts.",
        ),
        in_query("name_or_content", "half price", "The same as `content`."),
        in_query(
            "quality_score",
            "UNKNOWN",
            "Galley does not rate quality: every template is UNKNOWN.",
        ),
        in_query(
            "limit",
            "25",
            "How many templates a page has, at most 250; 25 if it is left out.",
        ),
        in_query("after", ID, "Where a page ended: those behind it."),
        in_query("before", ID, "Where a page began: those before it."),
        in_query("summary", "true", "Whether counts are wanted, too."),
    ]
}

pub(super) fn of_upload() -> Vec<Value> {
    let needed = |name: &str, example: &str, about: &str| {
        let mut parameter = in_query(name, example, about);
        parameter["required"] = json!(true);
        parameter
    };
    vec![
        needed("file_length", "1024", "How many bytes it has: 1 to 16777216."),
        needed(
            "file_type",
            "image/png",
            "application/pdf, image/jpeg, image/jpg, image/png, video/mp4 or video/3gpp.",
        ),
        in_query("file_name", "shoes.png", "What it is called."),
    ]
}

pub(super) fn of_deletion() -> Vec<Value> {
    vec![
        in_query("name", "order_shipped", "All languages of this name."),
        in_query("language", "en_US", "With `name`: only this language of it."),
        in_query("hsm_id", ID, "Only this one."),
        in_query("hsm_ids", "[\"226542649344000\"]", "All of these, whatever their names."),
    ]
}
