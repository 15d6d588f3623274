//! The audit feed: which entry a change appends, and how an entry's row is decoded.

use std::time::Duration;

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::Review,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    AccountLimits, AccountQuotas, AuditEntry, AuditKind, Credential, CredentialId,
    MAX_DAILY_CHANGES, NewAccount, NewConnection, NewConsoleLink, NewCredential, Quota, StoreError,
    Webhook,
    encoding::origin,
    stored_row::{Row, StoredRow as _},
};

/// The columns that [`entry`] reads; `c` is the credential of the actor.
pub(crate) const COLUMNS: &str = "a.seq, a.at, a.actor, coalesce(c.name, '') AS actor_name, \
     a.account_id, a.kind, a.subject, a.details \
     FROM audit a LEFT JOIN credential c ON c.id = a.actor";

/// The newest entries that count towards the limit of an account (the first parameter), in
/// descending order: changes by tokens that could be repeated for ever.
pub(crate) const LIMITED: &str = "WHERE actor > 0 AND kind IN ('credential.created', \
     'webhook.created', 'webhook.changed', 'webhook.secret_rotated')";

/// The rotations of an account (the first parameter), as [`rotation`] reads them.
pub(crate) const ROTATIONS: &str = "SELECT subject, details FROM audit WHERE kind = \
     'credential.rotated' AND account_id = $1";

/// How many entries follow the one that decides on the limit.
pub(crate) const LIMIT_OFFSET: i64 = MAX_DAILY_CHANGES as i64 - 1;

const DAY_MS: i64 = 24 * 3_600_000;

/// Refuses a change at `at` if the account has as many as permitted since `oldest`, the time of the
/// oldest entry that counts, and that is less than a day ago.
pub(crate) fn refusal(oldest: Option<i64>, at: Timestamp) -> Result<(), StoreError> {
    let end = oldest.map_or(i64::MIN, |oldest| oldest.saturating_add(DAY_MS));
    match u64::try_from(end.saturating_sub(at.as_millisecond())) {
        Ok(left) if left > 0 => {
            Err(StoreError::TooManyChanges { retry_after: Duration::from_millis(left) })
        }
        _ => Ok(()),
    }
}

/// The old and the new credential of a rotation.
pub(crate) fn rotation(row: &Row<'_>) -> Result<(CredentialId, CredentialId), StoreError> {
    let id = |text: &str| text.parse().ok().map(CredentialId);
    let replacement = |details: &str| {
        let details: Value = serde_json::from_str(details).ok()?;
        details["replacement"].as_str().and_then(id)
    };
    Ok((row.parsed("subject", id)?, row.parsed("details", replacement)?))
}

/// A change that the audit feed records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditedChange<'a> {
    AccountCreated(&'a NewAccount),
    AccountRenamed {
        from: &'a str,
        to: &'a str,
    },
    ReviewChanged {
        from: Review,
        to: Review,
    },
    FourEyesChanged {
        is_on: bool,
    },
    LimitsChanged {
        from: Option<AccountLimits>,
        to: Option<AccountLimits>,
    },
    QuotasChanged {
        from: AccountQuotas,
        to: AccountQuotas,
    },
    AccountDisabled,
    AccountDeleted {
        name: &'a str,
    },
    AccountEnabled,
    CredentialCreated(CredentialId, &'a NewCredential),
    CredentialRotated {
        old: CredentialId,
        new: CredentialId,
        replacement: &'a NewCredential,
        old_ends_at: Timestamp,
    },
    CredentialRevoked(&'a Credential),
    ConsoleLinkCreated(&'a NewConsoleLink),
    PhoneAdded(&'a str),
    PhoneRemoved(&'a str),
    WebhookCreated(&'a Webhook),
    WebhookChanged(&'a Webhook),
    WebhookSecretRotated(&'a Webhook),
    WebhookDeleted(WebhookId),
    UpstreamConnected(&'a NewConnection),
    UpstreamChanged {
        change: &'static str,
    },
    UpstreamDisconnected {
        waba: &'a str,
    },
    /// The word of an action on a template, and the newest version of the template after it.
    UpstreamAction {
        template: TemplateId,
        action: &'static str,
        version: Option<u64>,
    },
}

/// The entry that a change appends.
pub(crate) struct NewAuditEntry {
    pub(crate) kind: AuditKind,
    pub(crate) subject: String,
    /// A JSON object.
    pub(crate) details: String,
}

/// The entry of a change of an account.
pub(crate) fn new_entry(account: AccountId, change: AuditedChange<'_>) -> NewAuditEntry {
    let own = account.to_string();
    let (kind, subject, details) = match change {
        AuditedChange::AccountCreated(new) => {
            let review = new.first_review().as_str();
            let mut details = json!({"name": new.name, "rulebook": new.rulebook, "review": review});
            if let Some(kind) = new.emulator {
                details["emulator"] = kind.as_str().into();
            }
            if let Some(limits) = new.limits {
                details["limits"] = limits_shown(Some(limits));
            }
            (AuditKind::AccountCreated, own, details)
        }
        AuditedChange::AccountRenamed { from, to } => {
            (AuditKind::AccountRenamed, own, json!({"from": from, "to": to}))
        }
        AuditedChange::ReviewChanged { from, to } => {
            let details = json!({"from": from.as_str(), "to": to.as_str()});
            (AuditKind::AccountReviewChanged, own, details)
        }
        AuditedChange::FourEyesChanged { is_on } => {
            (AuditKind::AccountFourEyesChanged, own, json!({"four_eyes": is_on}))
        }
        AuditedChange::LimitsChanged { from, to } => {
            let details = json!({"from": limits_shown(from), "to": limits_shown(to)});
            (AuditKind::AccountLimitsChanged, own, details)
        }
        AuditedChange::QuotasChanged { from, to } => {
            let details = json!({"from": quotas_shown(from), "to": quotas_shown(to)});
            (AuditKind::AccountLimitsChanged, own, details)
        }
        AuditedChange::AccountDisabled => (AuditKind::AccountDisabled, own, json!({})),
        AuditedChange::AccountEnabled => (AuditKind::AccountEnabled, own, json!({})),
        AuditedChange::AccountDeleted { name } => {
            (AuditKind::AccountDeleted, own, json!({"name": name}))
        }
        AuditedChange::CredentialCreated(id, new) => {
            (AuditKind::CredentialCreated, id.to_string(), new_credential(new))
        }
        AuditedChange::CredentialRotated { old, new, replacement, old_ends_at } => {
            let mut details = new_credential(replacement);
            details["replacement"] = new.to_string().into();
            details["old_ends_at"] = timestamp(Some(old_ends_at));
            (AuditKind::CredentialRotated, old.to_string(), details)
        }
        AuditedChange::CredentialRevoked(old) => {
            let details = json!({"type": old.kind.as_str(), "name": old.name});
            (AuditKind::CredentialRevoked, old.id.to_string(), details)
        }
        AuditedChange::ConsoleLinkCreated(new) => (
            AuditKind::ConsoleLinkCreated,
            own,
            json!({"name": new.name, "scopes": new.scopes.to_string()}),
        ),
        AuditedChange::PhoneAdded(phone) => (AuditKind::PhoneAdded, phone.to_owned(), json!({})),
        AuditedChange::PhoneRemoved(phone) => {
            (AuditKind::PhoneRemoved, phone.to_owned(), json!({}))
        }
        AuditedChange::WebhookCreated(webhook) => {
            (AuditKind::WebhookCreated, webhook.id.to_string(), webhook_shown(webhook))
        }
        AuditedChange::WebhookChanged(webhook) => {
            (AuditKind::WebhookChanged, webhook.id.to_string(), webhook_shown(webhook))
        }
        AuditedChange::WebhookSecretRotated(webhook) => {
            let details = json!({"origin": origin(&webhook.url)});
            (AuditKind::WebhookSecretRotated, webhook.id.to_string(), details)
        }
        AuditedChange::WebhookDeleted(id) => (AuditKind::WebhookDeleted, id.to_string(), json!({})),
        AuditedChange::UpstreamConnected(new) => {
            let details = json!({"origin": origin(&new.base_url), "waba": new.waba});
            (AuditKind::UpstreamConnected, own, details)
        }
        AuditedChange::UpstreamChanged { change } => {
            (AuditKind::UpstreamChanged, own, json!({"change": change}))
        }
        AuditedChange::UpstreamDisconnected { waba } => {
            (AuditKind::UpstreamDisconnected, own, json!({"waba": waba}))
        }
        AuditedChange::UpstreamAction { template, action, version } => {
            let mut details = json!({"action": action});
            if let Some(version) = version {
                details["version"] = version.into();
            }
            (AuditKind::TemplateUpstreamAction, template.to_string(), details)
        }
    };
    NewAuditEntry { kind, subject, details: details.to_string() }
}

fn limits_shown(limits: Option<AccountLimits>) -> Value {
    json!({"templates": limits.map(|it| it.templates)})
}

/// The details of a migration of the schema.
pub(crate) fn migration(from: usize, to: usize) -> String {
    json!({"from": from, "to": to}).to_string()
}

fn new_credential(new: &NewCredential) -> Value {
    json!({
        "type": new.kind.as_str(),
        "name": new.name,
        "scopes": new.scopes.to_string(),
        "expires_at": timestamp(new.expires_at),
    })
}

/// The rest of a URL may be a secret.
fn webhook_shown(webhook: &Webhook) -> Value {
    let events: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
    json!({
        "origin": origin(&webhook.url),
        "events": events,
        "format": webhook.format.as_str(),
        "disabled": webhook.disabled.is_some(),
    })
}

fn quotas_shown(quotas: AccountQuotas) -> Value {
    let AccountQuotas { requests_per_second, stored_bytes, phone_numbers } = quotas;
    json!({
        "requests_per_second": requests_per_second,
        "stored_bytes": quota(stored_bytes),
        "phone_numbers": quota(phone_numbers),
    })
}

/// A quota as on the command line.
fn quota(quota: Quota) -> Value {
    match quota {
        Quota::Default => "default".into(),
        Quota::Unlimited => "none".into(),
        Quota::Max(max) => max.into(),
    }
}

fn timestamp(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| format!("{at:.3}").into())
}

/// The entry in a row.
pub(crate) fn entry(row: &Row<'_>) -> Result<AuditEntry, StoreError> {
    let actor = row.actor("actor")?;
    Ok(AuditEntry {
        seq: row.number("seq")?,
        at: row.timestamp("at")?,
        actor,
        actor_name: row.actor_name("actor_name", actor)?,
        account: row.optional("account_id", |id: i64| AccountId::new(u64::try_from(id).ok()?))?,
        kind: row.value("kind")?,
        subject: row.value("subject")?,
        details: row.decoded("details", |text: String| {
            serde_json::from_str::<Map<String, Value>>(&text).ok()
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Author, CredentialKind, NewCredential};

    fn account() -> AccountId {
        AccountId::new(7).unwrap()
    }

    #[test]
    fn an_entry_about_a_credential_never_contains_its_hash() {
        let new = NewCredential {
            name: "CI \"x\"".to_owned(),
            ..NewCredential::unrestricted(CredentialKind::Token, "secret")
        };
        let entry = new_entry(account(), AuditedChange::CredentialCreated(CredentialId(3), &new));
        assert_eq!((entry.kind, &*entry.subject), (AuditKind::CredentialCreated, "3"));
        let details: Value = serde_json::from_str(&entry.details).unwrap();
        assert_eq!(
            details,
            json!({
                "type": "token", "name": "CI \"x\"", "scopes": "read,write,review,webhooks",
                "expires_at": null,
            })
        );
    }

    #[test]
    fn a_new_account_shows_the_limits_that_it_begins_with() {
        let details = |limits| -> Value {
            let new = NewAccount {
                id: None,
                name: "one".to_owned(),
                rulebook: "whatsapp",
                review: Review::Auto,
                emulator: None,
                limits,
                phones: Vec::new(),
                credentials: Vec::new(),
                only_if_first: false,
                by: Author::operator(Timestamp::UNIX_EPOCH),
            };
            let entry = new_entry(account(), AuditedChange::AccountCreated(&new));
            serde_json::from_str(&entry.details).unwrap()
        };
        let limits = &details(Some(AccountLimits::VERIFIED))["limits"];
        assert_eq!(limits, &json!({"templates": 6_000}));
        assert_eq!(details(None).get("limits"), None);
    }

    #[test]
    fn quotas_are_shown_as_on_the_command_line() {
        let quotas = AccountQuotas {
            requests_per_second: Some(5),
            stored_bytes: Quota::Unlimited,
            phone_numbers: Quota::Max(2),
        };
        let shown = json!({"requests_per_second": 5, "stored_bytes": "none", "phone_numbers": 2});
        assert_eq!(quotas_shown(quotas), shown);
        let defaults = quotas_shown(AccountQuotas::default());
        assert_eq!(defaults["stored_bytes"], "default");
    }

    #[test]
    fn kinds_name_a_subject_and_a_change() {
        let mut values: Vec<&str> = AuditKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert!(values.iter().all(|value| value.split('.').count() == 2), "{values:?}");
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), AuditKind::ALL.len());
    }
}
