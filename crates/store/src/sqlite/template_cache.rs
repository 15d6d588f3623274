//! An in-memory cache of templates that is valid until the next commit.
//!
//! All entries belong to one value of the commit counter. The next commit invalidates all of them,
//! so that writes need not report which templates they changed.
//!
//! A full cache keeps its entries and refuses others, so that reads of more templates than fit do not
//! cost an insert each. After many refusals it starts again: other templates are in demand now.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use galley_domain::id::{AccountId, TemplateId};

use crate::StoredTemplate;

/// Size limit of the cache.
const MAX_CACHE_BYTES: usize = 16 * 1_024 * 1_024;

/// Estimated size of an entry without the template's content.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// After this many refusals per entry, a full cache starts again.
const MAX_REFUSALS: usize = 8;

#[derive(Default)]
pub(super) struct TemplateCache(RwLock<Entries>);

#[derive(Default)]
struct Entries {
    commits: u64,
    bytes: usize,
    /// How many templates were not cached because the cache was full.
    refused: AtomicUsize,
    templates: HashMap<TemplateId, (AccountId, Arc<StoredTemplate>)>,
}

impl TemplateCache {
    /// The template, if it was cached at that commit.
    pub(super) fn get(
        &self,
        commits: u64,
        account: AccountId,
        id: TemplateId,
    ) -> Option<Arc<StoredTemplate>> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if entries.commits != commits {
            return None;
        }
        let (owner, template) = entries.templates.get(&id)?;
        (*owner == account).then(|| Arc::clone(template))
    }

    /// Frees the memory of the entries, which the next commit has invalidated.
    pub(super) fn clear(&self) {
        let is_empty = self.0.read().unwrap_or_else(PoisonError::into_inner).templates.is_empty();
        if !is_empty {
            let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let former = mem::take(&mut *entries);
            drop(entries);
            drop(former);
        }
    }

    /// Caches a template that was read at that commit, if there is room for it.
    pub(super) fn insert(&self, commits: u64, account: AccountId, template: &Arc<StoredTemplate>) {
        let bytes = ENTRY_OVERHEAD_BYTES + template.template.content().len();
        if self.0.read().unwrap_or_else(PoisonError::into_inner).refuses(commits, bytes) {
            return;
        }
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A template read before the newest commit may be outdated.
        if entries.commits > commits {
            return;
        }
        let mut former = Entries::default();
        if entries.commits < commits || entries.bytes + bytes > MAX_CACHE_BYTES {
            former = mem::replace(&mut entries, Entries { commits, ..Entries::default() });
        }
        let added = (account, Arc::clone(template));
        if entries.templates.insert(template.id, added).is_none() {
            entries.bytes += bytes;
        }
        // Others need not wait until all former entries are dropped.
        drop(entries);
        drop(former);
    }
}

impl Entries {
    /// Whether there is no room for another template of that commit; counts the refusal.
    fn refuses(&self, commits: u64, bytes: usize) -> bool {
        self.commits == commits
            && self.bytes + bytes > MAX_CACHE_BYTES
            && self.refused.fetch_add(1, Ordering::Relaxed) < MAX_REFUSALS * self.templates.len()
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::{
        rulebook::Category,
        template::{Status, Template, lifecycle::State, quality::Quality},
    };
    use jiff::Timestamp;

    use super::*;

    const COMMITS: u64 = 2;
    /// As many templates of this size fill the cache.
    const CONTENT_BYTES: usize = 256 * 1_024 - ENTRY_OVERHEAD_BYTES;
    const FULL: u64 = 64;

    fn account() -> AccountId {
        AccountId::new(1_000_000_000_000_001).unwrap()
    }

    fn id(number: u64) -> TemplateId {
        TemplateId::new(1_000_000_000_000_000 + number).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "the content does not matter here")]
    fn template(number: u64) -> Arc<StoredTemplate> {
        let content = " ".repeat(CONTENT_BYTES);
        let (name, language) = ("n".to_owned(), "en_US".to_owned());
        Arc::new(StoredTemplate {
            id: id(number),
            phone: None,
            template: Template::restore(name, language, Category::Marketing, true, content),
            state: State {
                version: 1,
                newest_status: Status::Approved,
                approved_version: None,
                hold: None,
            },
            previous_category: None,
            announced_category: None,
            quality: Quality::Unknown,
            reason: None,
            decided_by: None,
            revision: 1,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        })
    }

    fn cached(cache: &TemplateCache, numbers: std::ops::Range<u64>) -> usize {
        numbers.filter(|it| cache.get(COMMITS, account(), id(*it)).is_some()).count()
    }

    #[test]
    fn an_entry_is_valid_for_its_commit_and_its_account_only() {
        let cache = TemplateCache::default();
        cache.insert(COMMITS, account(), &template(1));
        assert!(cache.get(COMMITS, account(), id(1)).is_some());
        assert!(cache.get(COMMITS + 2, account(), id(1)).is_none());
        assert!(
            cache.get(COMMITS, AccountId::new(1_000_000_000_000_002).unwrap(), id(1)).is_none()
        );
        cache.insert(COMMITS + 2, account(), &template(2));
        cache.insert(COMMITS, account(), &template(1));
        assert!(cache.get(COMMITS, account(), id(1)).is_none(), "read before the newest commit");
        assert!(cache.get(COMMITS + 2, account(), id(1)).is_none());
        assert!(cache.get(COMMITS + 2, account(), id(2)).is_some());
    }

    #[test]
    fn a_full_cache_keeps_its_entries_until_it_has_refused_many() {
        let cache = TemplateCache::default();
        // A template that two requests read at the same time counts once.
        cache.insert(COMMITS, account(), &template(0));
        for number in 0..FULL {
            cache.insert(COMMITS, account(), &template(number));
        }
        assert_eq!(cached(&cache, 0..FULL), 64);
        let refused = template(FULL);
        for _ in 0..MAX_REFUSALS * 64 {
            cache.insert(COMMITS, account(), &refused);
        }
        assert_eq!((cached(&cache, 0..FULL), cached(&cache, FULL..FULL + 1)), (64, 0));
        cache.insert(COMMITS, account(), &refused);
        assert_eq!((cached(&cache, 0..FULL), cached(&cache, FULL..FULL + 1)), (0, 1));
    }

    #[test]
    fn a_cleared_cache_does_not_return_templates_of_an_earlier_commit() {
        let cache = TemplateCache::default();
        cache.insert(COMMITS, account(), &template(1));
        cache.clear();
        assert_eq!(cached(&cache, 0..FULL), 0);
        // Read before the commit, but inserted afterwards.
        cache.insert(COMMITS - 2, account(), &template(1));
        assert_eq!(cached(&cache, 0..FULL), 0);
    }

    #[test]
    fn a_full_cache_starts_again_after_a_commit() {
        let cache = TemplateCache::default();
        for number in 0..FULL {
            cache.insert(COMMITS - 2, account(), &template(number));
        }
        cache.insert(COMMITS, account(), &template(FULL));
        assert_eq!(cached(&cache, 0..FULL + 1), 1);
    }
}
