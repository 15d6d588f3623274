//! Reading the bodies of responses. Unknown members are ignored, and templates keep their text.

use galley_domain::{
    document::{Document, Json, raw},
    upstream::RemoteTemplate,
};
use jiff::Timestamp;
use serde_json::{Value, value::RawValue};

use crate::upstream::{Page, TokenInfo};

/// The longest cursor, and the longest id of an upload.
const MAX_TOKEN_BYTES: usize = 4_096;

/// Reads a page of the list; `None` if the body is not one.
///
/// Only the cursor is taken from `paging`: the link `next` contains the token. That the link exists
/// says that there is another page, because the last page has a cursor, too.
pub(crate) fn page(body: &[u8]) -> Option<Page> {
    let members = raw::members(std::str::from_utf8(body).ok()?)?;
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|it| it.1);
    let items: Vec<&RawValue> = serde_json::from_str(member("data")?).ok()?;
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
