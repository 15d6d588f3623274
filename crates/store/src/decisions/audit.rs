//! The audit feed: which entry a change appends.

use std::fmt::Display;

use galley_domain::id::AccountId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AccountLimits, AccountQuotas, AuditKind, Credential, CredentialId, NewAccount, NewCredential,
    Quota, Webhook, encoding::origin, schema_policy::Migrations,
};

/// A change that the audit feed records: the entry that it appends.
#[derive(Debug)]
pub(crate) struct AuditedChange {
    pub(crate) kind: AuditKind,
    /// The id of what was changed.
    pub(crate) subject: String,
    /// A JSON object.
    pub(crate) details: Value,
}

impl AuditedChange {
    pub(crate) fn new(kind: AuditKind, subject: impl Display + Copy, details: Value) -> Self {
        Self { kind, subject: subject.to_string(), details }
    }

    pub(crate) fn account_created(id: AccountId, new: &NewAccount) -> Self {
        let review = new.first_review().as_str();
        let mut details = json!({"name": new.name, "rulebook": new.rulebook, "review": review});
        if let Some(kind) = new.emulator {
            details["emulator"] = kind.as_str().into();
        }
        if new.limits.is_some() {
            details["limits"] = limits_shown(new.limits);
        }
        Self::new(AuditKind::AccountCreated, id, details)
    }

    pub(crate) fn credential_created(id: CredentialId, new: &NewCredential) -> Self {
        Self::new(AuditKind::CredentialCreated, id, new_credential(new))
    }

    /// The change that `replacement` was added as `new`.
    pub(crate) fn credential_rotated(
        old: &Credential,
        new: CredentialId,
        replacement: &NewCredential,
        old_ends_at: Timestamp,
    ) -> Self {
        let mut details = new_credential(replacement);
        details["replacement"] = new.to_string().into();
        details["old_ends_at"] = timestamp(Some(old_ends_at));
        Self::new(AuditKind::CredentialRotated, old.id, details)
    }

    pub(crate) fn credential_revoked(old: &Credential) -> Self {
        let details = json!({"type": old.kind.as_str(), "name": old.name});
        Self::new(AuditKind::CredentialRevoked, old.id, details)
    }

    /// The change of this kind after which an endpoint is as it is shown. The rest of its URL may be a
    /// secret.
    pub(crate) fn of_webhook(kind: AuditKind, webhook: &Webhook) -> Self {
        let events: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
        let details = json!({
            "origin": origin(&webhook.url),
            "events": events,
            "format": webhook.format.as_str(),
            "disabled": webhook.disabled.is_some(),
        });
        Self::new(kind, webhook.id, details)
    }
}

pub(crate) fn limits_shown(limits: Option<AccountLimits>) -> Value {
    json!({"templates": limits.map(|it| it.templates)})
}

/// The details of a migration of the schema from this version.
pub(crate) fn migration(migrations: &Migrations, from: usize) -> String {
    json!({"from": from, "to": migrations.latest()}).to_string()
}

fn new_credential(new: &NewCredential) -> Value {
    json!({
        "type": new.kind.as_str(),
        "name": new.name,
        "scopes": new.scopes.to_string(),
        "expires_at": timestamp(new.expires_at),
    })
}

pub(crate) fn quotas_shown(quotas: AccountQuotas) -> Value {
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

#[cfg(test)]
mod tests {
    use galley_domain::template::Review;

    use super::*;
    use crate::{Author, CredentialKind};

    #[test]
    fn an_entry_about_a_credential_never_contains_its_hash() {
        let new = NewCredential {
            name: "CI \"x\"".to_owned(),
            ..NewCredential::unrestricted(CredentialKind::Token, "secret")
        };
        let entry = AuditedChange::credential_created(CredentialId(3), &new);
        assert_eq!((entry.kind, &*entry.subject), (AuditKind::CredentialCreated, "3"));
        assert_eq!(
            entry.details,
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
            AuditedChange::account_created(AccountId::new(7).unwrap(), &new).details
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
