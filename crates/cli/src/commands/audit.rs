//! `galley audit`: shows who changed what.

use galley_domain::id::AccountId;
use galley_store::AuditEntry;
use serde_json::{Value, json};

use super::{
    CommandContext,
    credentials::{shown_actor, timestamp},
};
use crate::{arguments::AuditOptions, table};

/// Number of entries read from the store at a time.
const PAGE_SIZE: u64 = 500;

pub(super) async fn audit(context: &CommandContext, options: &AuditOptions) -> anyhow::Result<()> {
    let account = match &options.account {
        // The id of a deleted account still finds its entries.
        Some(wanted) => Some(match wanted.parse::<AccountId>() {
            Ok(id) if context.store.account(id).await?.is_none() => id,
            _ => context.account(wanted).await?.id,
        }),
        None => None,
    };
    let mut after = options.after.unwrap_or(0);
    let mut left = options.limit.unwrap_or(u64::MAX);
    let mut rows = Vec::new();
    while left > 0 {
        let page = usize::try_from(left.min(PAGE_SIZE))?;
        let entries = context.store.audit_entries(account, after, page).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        left = left.saturating_sub(u64::try_from(entries.len())?);
        for entry in entries {
            if !context.json {
                rows.push(cells(&entry));
            } else if table::try_print_line(&object(&entry).to_string()).is_err() {
                // The reader closed the pipe.
                return Ok(());
            }
        }
    }
    if !context.json {
        let columns = ["seq", "at", "type", "account", "subject", "actor", "actor_name", "details"];
        table::print(false, &columns, rows);
    }
    Ok(())
}

fn object(entry: &AuditEntry) -> Value {
    json!({
        "seq": entry.seq,
        "type": entry.kind,
        "at": timestamp(Some(entry.at)),
        "account_id": entry.account.map(|id| id.to_string()),
        "actor": entry.actor.to_string(),
        "actor_name": entry.actor_name,
        "subject": entry.subject,
        "details": entry.details,
    })
}

/// The id of a subject, with its kind if it is a credential: the id alone does not tell a token from a
/// key.
fn with_kind(entry: &AuditEntry, id: &str) -> String {
    match entry.details.get("type").and_then(Value::as_str) {
        Some(kind) => format!("{kind} {id}"),
        None => id.to_owned(),
    }
}

fn detail(entry: &AuditEntry, name: &str, value: &Value) -> String {
    match value {
        Value::String(id) if name == "replacement" => format!("{name}={}", with_kind(entry, id)),
        value => format!("{name}={value}"),
    }
}

fn cells(entry: &AuditEntry) -> Vec<Value> {
    let details = entry.details.iter().filter(|(_, value)| !value.is_null());
    let details: Vec<String> = details.map(|(name, value)| detail(entry, name, value)).collect();
    vec![
        entry.seq.into(),
        timestamp(Some(entry.at)),
        entry.kind.clone().into(),
        entry.account.map_or(Value::Null, |id| id.to_string().into()),
        with_kind(entry, &entry.subject).into(),
        shown_actor(entry.actor).into(),
        entry.actor_name.clone().into(),
        details.join(" ").into(),
    ]
}
