//! Which new fields providers refuse, so that not every session asks for them again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};

/// The new fields that the provider of each account refuses, by the provider's base URL. They are forgotten after a day: the
/// provider may know them by then.
#[derive(Clone, Debug, Default)]
pub struct RefusedFields(Arc<Mutex<FieldsByProvider>>);

type FieldsByProvider = HashMap<(AccountId, String), (u8, Timestamp)>;

impl RefusedFields {
    const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

    pub(super) fn of(&self, account: AccountId, base_url: &str, now: Timestamp) -> u8 {
        let known = self.lock().get(&(account, base_url.to_owned())).copied();
        let is_recent = |at: Timestamp| now.duration_since(at) < Self::LIFETIME;
        known.filter(|(_, at)| is_recent(*at)).map_or(0, |(fields, _)| fields)
    }

    pub(super) fn record(&self, account: AccountId, base_url: &str, fields: u8, now: Timestamp) {
        if fields != self.of(account, base_url, now) {
            self.lock().insert((account, base_url.to_owned()), (fields, now));
        }
    }

    fn lock(&self) -> MutexGuard<'_, FieldsByProvider> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_fields_are_known_for_a_day() {
        let (fields, account) = (RefusedFields::default(), AccountId::new(1).unwrap());
        let hour = |hour: i64| Timestamp::from_second(hour * 3_600).unwrap();
        let url = "https://a.example/v23.0";
        assert_eq!(fields.of(account, url, hour(0)), 0);
        fields.clone().record(account, url, 3, hour(0));
        fields.record(account, url, 3, hour(23));
        assert_eq!(fields.of(account, url, hour(23)), 3);
        assert_eq!(fields.of(AccountId::new(2).unwrap(), url, hour(23)), 0);
        assert_eq!(fields.of(account, "https://b.example", hour(23)), 0, "another provider");
        assert_eq!(fields.of(account, url, hour(24)), 0, "a later use does not prolong it");
    }
}
