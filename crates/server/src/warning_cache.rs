//! Caches where WhatsApp cannot have a template, so that rendering does not check its content again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use galley_domain::{id::TemplateId, violation::Warnings};

/// Maximum number of entries. A full cache starts again.
const MAX_ENTRIES: usize = 10_000;

/// The content of a version never changes.
type Key = (TemplateId, u64);

/// The warnings of versions that were rendered.
#[derive(Default)]
pub(crate) struct WarningCache(Mutex<HashMap<Key, Arc<Warnings>>>);

impl WarningCache {
    /// The cached warnings, or those that `check` finds.
    pub(crate) fn get_or_insert(
        &self,
        key: Key,
        check: impl FnOnce() -> Warnings,
    ) -> Arc<Warnings> {
        let cached = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cached().get(&key) {
            return Arc::clone(found);
        }
        let found = Arc::new(check());
        let mut entries = cached();
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, Arc::clone(&found));
        found
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
        for version in 0..=MAX_ENTRIES as u64 {
            cache.get_or_insert((id, version), Warnings::default);
        }
        assert!(cache.0.lock().unwrap().len() <= MAX_ENTRIES);
    }
}
