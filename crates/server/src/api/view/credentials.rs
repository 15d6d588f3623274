//! The JSON form of tokens and of the audit feed.

use galley_domain::account::Scope;
use galley_store::{AuditEntry, Credential};

use super::{ObjectWriter, Paging, page, write_data};

/// All active tokens of an account. They are few, so the list has only one page.
pub(crate) fn tokens(tokens: &[Credential]) -> String {
    let mut out = String::with_capacity(256 * tokens.len() + 16);
    write_data(&mut out, tokens, |out, token| write_token(out, token, None));
    out.push('}');
    out
}

/// A new token with its secret, which no later response contains.
pub(crate) fn token_with_secret(token: &Credential, secret: &str) -> String {
    let mut out = String::with_capacity(512);
    write_token(&mut out, token, Some(secret));
    out
}

fn write_token(out: &mut String, token: &Credential, secret: Option<&str>) {
    let mut object = ObjectWriter::open(out);
    object.display("id", token.id);
    object.string("name", &token.name);
    let scopes: Vec<&str> = token.scopes.iter().map(Scope::as_str).collect();
    object.raw("scopes", &serde_json::to_string(&scopes).unwrap_or_default());
    if let Some(secret) = secret {
        object.unescaped("token", secret);
    }
    object.timestamp("created_at", token.created_at);
    object.optional_timestamp("last_used_at", token.last_used_at);
    object.optional_timestamp("expires_at", token.expires_at);
    object.close();
}

pub(crate) fn audit_entries(entries: &[AuditEntry], paging: &Paging) -> String {
    page(entries, paging, write_entry)
}

fn write_entry(out: &mut String, entry: &AuditEntry) {
    let mut object = ObjectWriter::open(out);
    object.number("seq", entry.seq);
    object.string("type", &entry.kind);
    object.timestamp("at", entry.at);
    object.display("actor", entry.actor);
    object.string("actor_name", &entry.actor_name);
    object.string("subject", &entry.subject);
    object.raw("details", &serde_json::to_string(&entry.details).unwrap_or_default());
    object.close();
}
