//! The parameters of the operations: path segments, query parameters and request headers.

use galley_domain::{
    account::MAX_SEGMENT_BYTES,
    document::MAX_SAFE_INTEGER,
    reference::json_schema,
    rulebook::{Category, Field, FieldType, ObjectSchema, Presence},
    template::Status,
    webhook::delivery::DeliveryStatus,
};
use serde_json::{Map, Value, json};

use super::shared::{self, ID, MOST_ON_A_PAGE, PHONE};
use crate::api::{
    problem::ProblemKind,
    query::MAX_SEARCH_WORDS,
    v1::events::{LATEST, MAX_WAIT_SECONDS},
};

pub(super) fn all() -> Value {
    let groups = [("path", in_path()), ("query", in_query()), ("header", in_header())];
    let mut all = Map::new();
    for (place, group) in groups {
        for (component, name, schema, example, about) in group {
            let parameter = json!({
                "name": name,
                "in": place,
                "required": place == "path",
                "description": about,
                "schema": schema,
                "example": example,
            });
            all.insert(component.to_owned(), parameter);
        }
    }
    Value::Object(all)
}

/// The name of the component, the name of the parameter, its schema, an example, and what it is.
type Parameter = (&'static str, &'static str, Value, Value, &'static str);

fn in_path() -> Vec<Parameter> {
    vec![
        (
            "PhoneNumberId",
            "phone_number_id",
            segment(),
            json!(PHONE),
            "The phone number that messages are sent from. It has to be the account's.",
        ),
        (
            "Key",
            "key",
            segment(),
            json!("gk_your-api-key"),
            "The caller's API key. It belongs to the same account as the access token.",
        ),
        (
            "TemplateId",
            "id",
            shared::id(),
            json!(ID),
            "The template's id, as its creation answered it.",
        ),
        (
            "WebhookId",
            "id",
            shared::id(),
            json!(ID),
            "The endpoint's id, as its registration answered it.",
        ),
        (
            "MediaName",
            "name",
            media_name(),
            json!("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"),
            "What the sample is found by; templates are shown with the whole address.",
        ),
        (
            "DocsFile",
            "file",
            file(),
            json!("swagger-ui.css"),
            "The name of a file that the page loads.",
        ),
        (
            "Slug",
            "slug",
            slug(),
            json!(ProblemKind::InvalidTemplate.slug()),
            "The last part of a problem's `type`.",
        ),
    ]
}

fn in_query() -> Vec<Parameter> {
    const BEHIND: &str =
        "Only what comes behind this one: the cursor that the page before ended with.";
    vec![
        (
            "Name",
            "name",
            text(),
            json!("opening_hours"),
            "Only the template that has exactly this name.",
        ),
        (
            "Status",
            "status",
            filter("status"),
            json!("APPROVED"),
            "Only templates that stand there.",
        ),
        (
            "Category",
            "category",
            filter("category"),
            json!("UTILITY"),
            "Only templates that are sent for this.",
        ),
        (
            "Language",
            "language",
            text(),
            json!("en_US"),
            "Only templates in exactly this language.",
        ),
        (
            "Words",
            "q",
            words(),
            json!("order ship"),
            "Only templates in whose name, texts and labels some word begins with each of these: 1 to 40 words, that is runs of letters and digits, in any letter case. Where a script has no spaces between words, each character is one.",
        ),
        ("Limit", "limit", limit(), json!(10), "How many items a page has."),
        ("AfterTemplate", "after", cursor(), json!(ID), BEHIND),
        ("AfterVersion", "after", version(), json!(3), BEHIND),
        (
            "AfterEvent",
            "after",
            position(),
            json!(12),
            "Only events behind this one: the `seq` that was read last, 0 for the beginning, or `latest` for what happens from now on. Without it, the oldest events that are kept. It is refused when it is ahead of the newest event, and when events behind it are not kept any more.",
        ),
        (
            "Wait",
            "wait",
            wait(),
            json!(20),
            "For how many seconds to wait for an event if there is none yet.",
        ),
        (
            "DeliveryStatus",
            "status",
            filter("delivery"),
            json!("failed"),
            "Only deliveries of which this has become.",
        ),
        (
            "AfterDelivery",
            "after",
            version(),
            json!(12),
            "Only deliveries of events before this one: the cursor that the page before ended with.",
        ),
        (
            "Version",
            "version",
            version(),
            json!(1),
            "Which version to show, instead of the newest.",
        ),
        (
            "EditedTemplate",
            "template",
            cursor(),
            json!(ID),
            "The caller's own template that the document is to edit: it is then judged as that edit would be.",
        ),
    ]
}

fn in_header() -> Vec<Parameter> {
    vec![
        (
            "IdempotencyKey",
            "Idempotency-Key",
            idempotency_key(),
            json!("7f9c2ba4-e88f-4a3c-9d07-5a3b1f1c2d4e"),
            "Makes it safe to send the request again: the same key with the same path and body is answered with the first answer for 24 hours, and nothing is made twice. The same key with another body is refused.",
        ),
        (
            "IfMatch",
            "If-Match",
            tags(),
            json!("\"3\""),
            "Only if the template is at one of these revisions, as its ETag told; `*` for any. Otherwise nothing is done.",
        ),
        (
            "IfNoneMatch",
            "If-None-Match",
            tags(),
            json!("\"3\""),
            "Only if the template is at none of these revisions; `*` for any. Otherwise the answer is 304, without content.",
        ),
        (
            "WantedMedia",
            "If-Match",
            text(),
            json!("\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\""),
            "Only if the file's tag is one of these; `*` for any. Otherwise the answer is 412.",
        ),
        (
            "KnownMedia",
            "If-None-Match",
            text(),
            json!("\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\""),
            "Only if the file's tag is none of these; `*` for any. Otherwise the answer is 304, without content.",
        ),
        (
            "Range",
            "Range",
            text(),
            json!("bytes=0-0"),
            "Only these bytes of the file. One range is answered with 206; what makes no sense, and several at once, with the whole.",
        ),
        (
            "RequestId",
            "x-request-id",
            text(),
            json!("order-4711"),
            "A name for this request, repeated in the answer and the log. It is taken if it has 1 to 64 of the characters `A-Z a-z 0-9 . _ ~ + -`; otherwise the service makes its own.",
        ),
    ]
}

/// A part of the path that names a phone number or a key.
fn segment() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_SEGMENT_BYTES,
        "pattern": format!("^[A-Za-z0-9._~+-]{{1,{MAX_SEGMENT_BYTES}}}$"),
    })
}

/// What a sample is found by.
fn media_name() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{32}$"})
}

fn file() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9._-]+$"})
}

fn slug() -> Value {
    let slugs: Vec<&str> = ProblemKind::ALL.iter().map(|kind| kind.slug()).collect();
    json!({"type": "string", "enum": slugs})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// Words that are read in any letter case, as the rulebook's table would say it.
static FILTERS: ObjectSchema = ObjectSchema {
    title: "filters",
    fields: &[
        Field {
            name: "status",
            presence: Presence::Required,
            field_type: FieldType::Choice(Status::VALUES),
            about: "Where templates stand.",
        },
        Field {
            name: "category",
            presence: Presence::Required,
            field_type: FieldType::Choice(Category::VALUES),
            about: "What templates are sent for.",
        },
        Field {
            name: "delivery",
            presence: Presence::Required,
            field_type: FieldType::Choice(DeliveryStatus::VALUES),
            about: "What has become of deliveries.",
        },
    ],
};

fn filter(name: &str) -> Value {
    json_schema::object_schema(&FILTERS)["properties"][name].take()
}

/// Some words. Which characters beyond ASCII are letters, no pattern says that every usual
/// engine reads.
fn words() -> Value {
    const LETTER: &str = "[A-Za-z0-9]";
    const OTHER: &str = r"[\u0000-/:-@\[-`{-\u007f]";
    let plain =
        format!("^{OTHER}*{LETTER}+(?:{OTHER}+{LETTER}+){{0,{}}}{OTHER}*$", MAX_SEARCH_WORDS - 1);
    json!({
        "type": "string",
        "anyOf": [
            {"pattern": plain},
            {"pattern": r"[^\u0000-\u007f]", "description": "There are characters beyond ASCII."},
        ],
    })
}

fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MOST_ON_A_PAGE, "default": 25})
}

fn version() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER})
}

/// A place among the events.
fn position() -> Value {
    let number = json!({"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER});
    json!({"anyOf": [number, {"type": "string", "const": LATEST}]})
}

fn wait() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0})
}

/// An id that can be; one that cannot is no cursor.
fn cursor() -> Value {
    json!({"type": "string", "pattern": format!("^(?:{})$", from_one_to(MAX_SAFE_INTEGER))})
}

/// The whole numbers from 1 to `most`, as the alternatives of a pattern.
fn from_one_to(most: u64) -> String {
    let digits = most.to_string();
    let mut forms = vec![digits.clone()];
    if digits.len() > 1 {
        forms.push(format!("[1-9][0-9]{{0,{}}}", digits.len() - 2));
    }
    for (at, digit) in digits.char_indices() {
        let (least, rest) = (if at == 0 { '1' } else { '0' }, digits.len() - at - 1);
        // The same beginning, then a smaller digit, then anything.
        if let Some(smaller) = (least..digit).next_back() {
            forms.push(format!("{}[{least}-{smaller}][0-9]{{{rest}}}", &digits[..at]));
        }
    }
    forms.join("|")
}

/// What an HTTP header can carry: no control characters, no white space at the ends.
fn idempotency_key() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": r"^[!-~\u0080-\u00ff](?:[\t -~\u0080-\u00ff]*[!-~\u0080-\u00ff])?$",
    })
}

/// `*`, or entity tags as RFC 9110 writes them.
fn tags() -> Value {
    const TAG: &str = "(?:W/)?\"[!#-~\\u0080-\\u00ff]*\"";
    let list = format!(r"(?:,[ \t,]*)?{TAG}(?:[ \t]*,[ \t,]*{TAG})*(?:[ \t,]*,)?");
    json!({"type": "string", "pattern": format!(r"^(?:\*|{list})$")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_up_to_a_limit_are_written_out() {
        assert_eq!(from_one_to(7), "7|[1-6][0-9]{0}");
        assert_eq!(from_one_to(120), "120|[1-9][0-9]{0,1}|1[0-1][0-9]{1}");
        let all = from_one_to(MAX_SAFE_INTEGER);
        assert!(all.starts_with("9007199254740991|[1-9][0-9]{0,14}|[1-8][0-9]{15}|900[0-6]"));
    }
}
