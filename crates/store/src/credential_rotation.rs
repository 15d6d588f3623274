//! Rotation of a credential: whether it is possible, and when both credentials expire.

use jiff::Timestamp;

use crate::{Credential, CredentialId, NewCredential, RotateCredentialOutcome};

/// What a rotation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RotationPlan {
    /// When the replacement expires, if it does.
    pub(crate) expires_at: Option<Timestamp>,
    /// When the old credential ends.
    pub(crate) old_ends_at: Timestamp,
}

impl RotationPlan {
    /// The outcome once the replacement has this id.
    pub(crate) fn done(self, id: CredentialId) -> RotateCredentialOutcome {
        let Self { expires_at, old_ends_at } = self;
        RotateCredentialOutcome::Rotated { id, expires_at, old_ends_at }
    }
}

/// Decides what a rotation of `old` at `at` writes, or why it is refused.
///
/// The replacement keeps the remaining lifetime, unless it has an expiry of its own: otherwise a
/// rotation would turn a temporary credential into a permanent one. The old credential never ends
/// later than without the rotation.
pub(crate) fn plan(
    old: &Credential,
    new: &NewCredential,
    old_ends_at: Timestamp,
    at: Timestamp,
) -> Result<RotationPlan, RotateCredentialOutcome> {
    if let Some(revoked_at) = old.revoked_at {
        return Err(RotateCredentialOutcome::Revoked(revoked_at));
    }
    match old.expires_at {
        Some(expired_at) if expired_at <= at => Err(RotateCredentialOutcome::Expired(expired_at)),
        expiry => Ok(RotationPlan {
            expires_at: new.expires_at.or(expiry),
            old_ends_at: expiry.map_or(old_ends_at, |expiry| expiry.min(old_ends_at)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::{account::Scopes, id::AccountId};

    use super::*;
    use crate::CredentialKind;

    const NOW: i64 = 100;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn planned(
        expires_at: Option<i64>,
        revoked_at: Option<i64>,
        new_expires_at: Option<i64>,
        old_ends_at: i64,
    ) -> Result<(Option<i64>, i64), RotateCredentialOutcome> {
        let old = Credential {
            id: CredentialId(1),
            account: AccountId::new(1).unwrap(),
            kind: CredentialKind::Token,
            scopes: Scopes::ALL,
            created_at: second(0),
            expires_at: expires_at.map(second),
            revoked_at: revoked_at.map(second),
        };
        let new = NewCredential {
            expires_at: new_expires_at.map(second),
            ..NewCredential::unrestricted(CredentialKind::Token, "new")
        };
        let plan = plan(&old, &new, second(old_ends_at), second(NOW))?;
        Ok((plan.expires_at.map(Timestamp::as_second), plan.old_ends_at.as_second()))
    }

    #[test]
    fn the_replacement_keeps_the_remaining_lifetime_unless_it_has_its_own() {
        assert_eq!(planned(None, None, None, 150), Ok((None, 150)));
        assert_eq!(planned(Some(900), None, None, 150), Ok((Some(900), 150)));
        assert_eq!(planned(Some(900), None, Some(2_000), 150), Ok((Some(2_000), 150)));
        assert_eq!(planned(None, None, Some(2_000), 150), Ok((Some(2_000), 150)));
    }

    #[test]
    fn the_old_credential_never_ends_later_than_before() {
        assert_eq!(planned(Some(120), None, None, 150), Ok((Some(120), 120)));
        assert_eq!(planned(Some(101), None, None, NOW), Ok((Some(101), NOW)));
    }

    #[test]
    fn an_expired_or_revoked_credential_is_not_rotated() {
        for expired in [NOW, NOW - 1] {
            let refused = Err(RotateCredentialOutcome::Expired(second(expired)));
            assert_eq!(planned(Some(expired), None, Some(2_000), 150), refused);
        }
        let refused = Err(RotateCredentialOutcome::Revoked(second(50)));
        assert_eq!(planned(None, Some(50), None, 150), refused);
        assert_eq!(planned(Some(60), Some(50), None, 150), refused);
    }
}
