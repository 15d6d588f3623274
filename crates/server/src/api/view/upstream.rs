//! The JSON form of a connection, of operations, and of templates at the provider.

use galley_domain::upstream::ProviderError;
use galley_store::{MirroredTemplate, StoredOperation, UpstreamConnection};

use super::{ObjectWriter, write_data};
use crate::api::at_provider::AtProvider;

/// A connection, without its secrets. `unseen`: how many templates a suspicious sweep did not see, and the
/// first of them.
pub(crate) fn connection(
    connection: &UpstreamConnection,
    unseen: Option<&(u64, Vec<MirroredTemplate>)>,
) -> String {
    let mut out = String::with_capacity(512);
    let mut object = ObjectWriter::open(&mut out);
    object.string("provider", host(&connection.base_url));
    object.string("waba_id", &connection.waba);
    if let Some(app) = &connection.app_id {
        object.string("app_id", app);
    }
    object.unescaped("state", connection.state().as_str());
    object.timestamp("connected_at", connection.connected_at);
    object.optional_timestamp("paused_at", connection.paused_at);
    object.optional_timestamp("suspicious_at", connection.suspicious_at);
    if let Some((count, first)) = unseen {
        let mut list = String::with_capacity(256 * first.len());
        write_data(&mut list, first, write_provided);
        object.raw("unseen", &format!("{list},\"count\":{count}}}"));
    }
    if let Some(degraded) = &connection.degraded {
        object.object("degraded", |object| {
            object.unescaped("reason", degraded.reason.as_str());
            object.timestamp("since", degraded.since);
            object.optional_timestamp("until", degraded.until);
            write_error(object, degraded.error.as_ref());
        });
    }
    object.optional_timestamp("last_sweep_at", connection.swept_at);
    object.optional_timestamp("last_full_sweep_at", connection.read_all_at);
    object.optional_timestamp("token_expires_at", connection.token_expires_at);
    if let Some(limit) = connection.template_limit {
        object.number("template_limit", limit);
    }
    object.close();
    out
}

/// The host of a base URL, with its port.
fn host(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// A page of operations, newest first; `next` is the query of the next page.
pub(crate) fn operations(operations: &[StoredOperation], next: Option<&str>) -> String {
    page(operations, write_operation, next)
}

/// A page of templates at the provider, by their ids there; `next` is the query of the next page.
pub(crate) fn provided(rows: &[MirroredTemplate], next: Option<&str>) -> String {
    page(rows, write_provided, next)
}

fn page<T>(items: &[T], write: impl Fn(&mut String, &T), next: Option<&str>) -> String {
    let mut out = String::with_capacity(256 * items.len() + 64);
    write_data(&mut out, items, write);
    if let Some(next) = next {
        out.push_str(",\"paging\":{\"next\":");
        out.push_str(&serde_json::to_string(next).unwrap_or_default());
        out.push('}');
    }
    out.push('}');
    out
}

pub(crate) fn operation(operation: &StoredOperation) -> String {
    let mut out = String::with_capacity(256);
    write_operation(&mut out, operation);
    out
}

fn write_operation(out: &mut String, stored: &StoredOperation) {
    let operation = &stored.operation;
    let mut object = ObjectWriter::open(out);
    object.display("id", stored.id);
    object.display("template_id", stored.template);
    if let (Some(name), Some(language)) = (&stored.name, &stored.language) {
        object.string("name", name);
        object.string("language", language);
    }
    object.number("version", stored.version);
    object.unescaped("kind", operation.kind.as_str());
    object.unescaped("state", operation.state.as_str());
    object.number("attempts", operation.attempts.into());
    object.optional_timestamp("held_until", operation.held_until);
    if let Some(reason) = operation.state.held_reason() {
        object.unescaped("held_reason", reason.as_str());
    }
    write_error(&mut object, operation.error.as_ref());
    object.timestamp("created_at", stored.created_at);
    object.timestamp("updated_at", stored.updated_at);
    object.close();
}

/// A template at the provider, whether the account has it or not.
fn write_provided(out: &mut String, row: &MirroredTemplate) {
    let mut object = ObjectWriter::open(out);
    object.string("id", row.id.as_str());
    if let Some(template) = row.template {
        object.display("template_id", template);
    }
    object.string("name", &row.name);
    object.string("language", &row.language);
    write_shown(&mut object, row);
    object.close();
}

/// What the provider shows of a template, without its identity and its content.
fn write_shown(object: &mut ObjectWriter<'_>, row: &MirroredTemplate) {
    object.string("status", row.status.as_str());
    object.string("category", &row.category);
    if let Some(source) = &row.source {
        object.string("source", source.as_str());
    }
    if let Some(quality) = row.quality {
        object.unescaped("quality", quality.as_str());
    }
    object.timestamp("observed_at", row.observed_at);
}

/// A template at the provider, with the provider's document if it was read.
pub(crate) fn template_at_provider(at: &AtProvider, document: Option<&str>) -> String {
    let mut out = String::with_capacity(document.map_or(0, str::len) + 512);
    let mut object = ObjectWriter::open(&mut out);
    write_member(&mut object, at);
    if let Some(document) = document {
        object.raw("document", document);
    }
    object.close();
    out
}

/// The member `upstream` of a template.
pub(super) fn write_member(object: &mut ObjectWriter<'_>, at: &AtProvider) {
    object.object("upstream", |object| {
        if let Some(mirrored) = &at.mirrored {
            object.string("id", mirrored.id.as_str());
        }
        object.unescaped("state", at.state());
        if let Some(mirrored) = &at.mirrored {
            write_shown(object, mirrored);
        }
        write_error(object, at.error());
    });
}

/// The member `error`: an error of the provider.
fn write_error(object: &mut ObjectWriter<'_>, error: Option<&ProviderError>) {
    let Some(error) = error else { return };
    object.object("error", |object| {
        object.number("code", error.code.into());
        if let Some(subcode) = error.subcode {
            object.number("subcode", subcode.into());
        }
        if let Some(title) = &error.title {
            object.string("title", title);
        }
        object.string("message", &error.message);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_base_url_has_no_path() {
        for (url, expected) in [
            ("https://graph.facebook.com/v23.0", "graph.facebook.com"),
            ("http://127.0.0.1:8080/v23.0", "127.0.0.1:8080"),
            ("https://provider.test", "provider.test"),
        ] {
            assert_eq!(host(url), expected);
        }
    }
}
