//! Reading the bodies of responses. Unknown members are ignored, and templates keep their text.

use galley_domain::{
    document::{Document, Json, raw},
    upstream::{CallKind, Created, RemoteTemplate},
};
use jiff::Timestamp;
use serde_json::{Value, value::RawValue};

use crate::upstream::{Page, TokenInfo};

/// The longest cursor, and the longest id of an upload.
const MAX_TOKEN_BYTES: usize = 4_096;

/// Whether the body of a response of success has what the client reads after a call of this kind. A
/// body that was cut off, or the page of a proxy, does not.
pub fn is_readable(kind: CallKind, body: &[u8]) -> bool {
    let text = || std::str::from_utf8(body).unwrap_or_default();
    match kind {
        CallKind::Page => raw::members(text()).is_some_and(|it| items(&it).is_some()),
        CallKind::Read => RemoteTemplate::parse(text()).is_ok(),
        CallKind::Create => Created::parse(text()).is_some(),
        CallKind::Edit | CallKind::Delete => is_success(body),
        CallKind::Archive | CallKind::Unarchive => {
            let lists = ["archived_templates", "unarchived_templates", "failed_templates"];
            Document::parse(body)
                .is_ok_and(|it| lists.iter().any(|list| it.root().get(list).is_some()))
        }
        CallKind::Upload => member(body, "id").or_else(|| member(body, "h")).is_some(),
        CallKind::Check => member(body, "id").is_some() || token_info(body).is_some(),
    }
}

/// The templates of a page with these members.
fn items<'a>(members: &[(impl AsRef<str>, &'a str)]) -> Option<Vec<&'a RawValue>> {
    let (_, data) = members.iter().find(|(key, _)| key.as_ref() == "data")?;
    serde_json::from_str(data).ok()
}

/// Reads a page of the list; `None` if the body is not one.
///
/// Only the cursor is taken from `paging`: the link `next` contains the token. That the link exists
/// says that there is another page, because the last page has a cursor, too.
pub(crate) fn page(body: &[u8]) -> Option<Page> {
    let members = raw::members(std::str::from_utf8(body).ok()?)?;
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|it| it.1);
    let items = items(&members)?;
    let mut page = Page::default();
    for item in items {
        match RemoteTemplate::parse(item.get()) {
            Ok(template) => page.templates.push(template),
            Err(_) => page.unreadable += 1,
        }
    }
    if let Some(paging) = member("paging").and_then(|it| Document::parse(it.as_bytes()).ok()) {
        let has_next = paging.root().get("next").is_some();
        let after = paging.root().get("cursors").and_then(|it| short_text(it, "after"));
        page.after = after.filter(|_| has_next);
    }
    if let Some(summary) = member("summary").and_then(|it| Document::parse(it.as_bytes()).ok()) {
        let number = |key: &str| u32::try_from(summary.root().get(key)?.as_i64()?).ok();
        page.total = number("total_count").or_else(|| number("message_template_count"));
        page.limit = number("message_template_limit");
    }
    Some(page)
}

/// Whether a response reports success. An edit may show the template instead.
pub(crate) fn is_success(body: &[u8]) -> bool {
    let Ok(document) = Document::parse(body) else { return false };
    match document.root().get("success") {
        Some(success) => matches!(success, Json::Bool(true)),
        None => document.root().get("id").is_some() && document.root().get("error").is_none(),
    }
}

/// What a response about the archive says of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Archiving {
    /// It is listed among those that were changed.
    Changed,
    /// It was not changed; the provider says why.
    Failed(String),
    /// The response does not mention it, or cannot be read.
    Unknown,
}

/// Reads what a response says of a template. `changed` is the member that lists those that were changed.
pub(crate) fn archiving(body: &[u8], changed: &str, id: &str) -> Archiving {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return Archiving::Unknown };
    // Meta's ids are texts in some responses and numbers in others.
    let is_id = |it: &Value| match it {
        Value::Number(number) => number.as_u64().is_some_and(|it| it.to_string() == id),
        text => text.as_str() == Some(id),
    };
    let listed = body.get(changed).and_then(Value::as_array);
    if listed.is_some_and(|listed| listed.iter().any(is_id)) {
        return Archiving::Changed;
    }
    match body.get("failed_templates").and_then(|it| it.get(id)) {
        Some(Value::String(reason)) => Archiving::Failed(reason.clone()),
        Some(reason) => Archiving::Failed(reason.to_string()),
        None => Archiving::Unknown,
    }
}

/// The longest name of a permission, and the most permissions that are kept.
const MAX_SCOPE_BYTES: usize = 100;
const MAX_SCOPES: usize = 100;

/// Reads what a provider tells about a token; `None` if the body does not.
pub(crate) fn token_info(body: &[u8]) -> Option<TokenInfo> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let data = body.get("data")?;
    let expires_at = data.get("expires_at").and_then(Value::as_i64).filter(|second| *second > 0);
    let scopes = data.get("scopes").and_then(Value::as_array).into_iter().flatten();
    let scopes = scopes.filter_map(Value::as_str).filter(|it| it.len() <= MAX_SCOPE_BYTES);
    Some(TokenInfo {
        is_valid: data.get("is_valid")?.as_bool()?,
        expires_at: expires_at.and_then(|second| Timestamp::from_second(second).ok()),
        scopes: scopes.take(MAX_SCOPES).map(str::to_owned).collect(),
    })
}

/// The string in a member of the body, unless it is empty or very long.
pub(crate) fn member(body: &[u8], key: &str) -> Option<String> {
    short_text(Document::parse(body).ok()?.root(), key)
}

fn short_text(object: &Json<'_>, key: &str) -> Option<String> {
    let text = object.get(key)?.as_str()?;
    (1..=MAX_TOKEN_BYTES).contains(&text.len()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_readable_if_it_has_what_its_call_returns() {
        let template =
            r#"{"id":"7","name":"a","language":"en","status":"PENDING","category":"UTILITY"}"#;
        let token = r#"{"data":{"is_valid":true}}"#;
        for (kind, good) in [
            (CallKind::Page, r#"{"data":[]}"#),
            (CallKind::Read, template),
            (CallKind::Create, r#"{"id":"7"}"#),
            (CallKind::Edit, r#"{"success":true}"#),
            (CallKind::Delete, r#"{"success":true}"#),
            (CallKind::Upload, r#"{"id":"upload:7"}"#),
            (CallKind::Upload, r#"{"h":"4:handle"}"#),
            (CallKind::Check, r#"{"id":"17","name":"Shop"}"#),
            (CallKind::Check, token),
        ] {
            assert!(is_readable(kind, good.as_bytes()), "{kind:?} {good}");
            let cut_off = &good.as_bytes()[..good.len() - 1];
            for bad in [cut_off, b"", b"{}", b"<html>", br#"{"success":false}"#, b"\xff"] {
                assert!(!is_readable(kind, bad), "{kind:?} {bad:?}");
            }
        }
    }
}
