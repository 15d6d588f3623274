//! The JSON form of a session of the console.

use galley_domain::account::Scope;
use galley_store::{Account, Credential, Session};

use super::ObjectWriter;

/// Who is signed in, and until when.
pub(crate) fn session(
    session: &Session,
    account: &Account,
    token: &Credential,
    phones: &[String],
) -> String {
    let mut out = String::with_capacity(512);
    let mut object = ObjectWriter::open(&mut out);
    object.object("account", |object| {
        object.display("id", account.id);
        object.string("name", &account.name);
        object.string("rulebook", &account.rulebook);
        object.unescaped("review", account.review.as_str());
        object.raw("four_eyes", if account.four_eyes { "true" } else { "false" });
        if let Some(kind) = account.emulator {
            object.unescaped("emulator", kind.as_str());
        }
        if account.is_connected {
            object.raw("connected", "true");
        }
    });
    object.object("token", |object| {
        object.display("id", token.id);
        object.string("name", &token.name);
        let scopes: Vec<&str> = token.scopes.iter().map(Scope::as_str).collect();
        object.raw("scopes", &serde_json::to_string(&scopes).unwrap_or_default());
        object.optional_timestamp("expires_at", token.expires_at);
    });
    object.raw("phone_number_ids", &serde_json::to_string(phones).unwrap_or_default());
    let idle_end = Session::idle_end(session.last_seen_at).min(session.expires_at);
    object.timestamp("idle_expires_at", idle_end);
    object.timestamp("expires_at", session.expires_at);
    object.close();
    out
}
