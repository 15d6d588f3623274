//! Caches where WhatsApp cannot have a template, so that rendering does not check its content again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use galley_domain::{id::TemplateId, violation::Warnings};

/// Maximum weight of all entries: their number and that of their warnings, a few megabytes. A full
/// cache starts again.
const MAX_WEIGHT: usize = 20_000;

/// The content of a version never changes.
type Key = (TemplateId, u64);

/// The warnings of versions that were rendered.
#[derive(Default)]
pub(crate) struct WarningCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    warnings: HashMap<Key, Arc<Warnings>>,
    weight: usize,
}

impl WarningCache {
    /// The cached warnings, or those that `check` finds.
    pub(crate) fn get_or_insert(
        &self,
        key: Key,
        check: impl FnOnce() -> Warnings,
    ) -> Arc<Warnings> {
        let entries = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = entries().warnings.get(&key) {
            return Arc::clone(found);
        }
        let found = Arc::new(check());
        entries().insert(key, Arc::clone(&found));
        found
    }
}

impl Entries {
    fn insert(&mut self, key: Key, warnings: Arc<Warnings>) {
        let weight = 1 + warnings.listed().len();
        if self.weight + weight > MAX_WEIGHT {
            *self = Self::default();
        }
        if self.warnings.insert(key, warnings).is_none() {
            self.weight += weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_checked_once_and_the_cache_is_bounded() {
        let (cache, mut checks) = (WarningCache::default(), 0);
        let id = TemplateId::new(1).unwrap();
        for version in [1, 1, 2, 1] {
            cache.get_or_insert((id, version), || {
                checks += 1;
                Warnings::default()
            });
        }
        assert_eq!(checks, 2);
        for version in 0..=MAX_WEIGHT as u64 {
            cache.get_or_insert((id, version), Warnings::default);
        }
        let entries = cache.0.lock().unwrap();
        assert!(entries.weight <= MAX_WEIGHT);
        assert_eq!(entries.weight, entries.warnings.len());
    }
}
