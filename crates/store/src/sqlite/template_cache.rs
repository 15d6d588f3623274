//! An in-memory cache of templates that is valid until the next commit.
//!
//! All entries belong to one value of the commit counter. The next commit invalidates all of them,
//! so that writes need not report which templates they changed.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use galley_domain::id::{AccountId, TemplateId};

use crate::StoredTemplate;

/// Size limit of the cache. An insert beyond it clears the cache.
const MAX_CACHE_BYTES: usize = 32 * 1_024 * 1_024;

/// Estimated size of an entry without the template's content.
const ENTRY_OVERHEAD_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct TemplateCache(RwLock<Entries>);

#[derive(Default)]
struct Entries {
    commits: u64,
    bytes: usize,
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

    /// Caches a template that was read at that commit.
    pub(super) fn insert(
        &self,
        commits: u64,
        account: AccountId,
        template: StoredTemplate,
    ) -> Arc<StoredTemplate> {
        let bytes = ENTRY_OVERHEAD_BYTES + template.template.content().len();
        let template = Arc::new(template);
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A template read before the newest commit may be outdated.
        if entries.commits > commits {
            return template;
        }
        if entries.commits < commits || entries.bytes + bytes > MAX_CACHE_BYTES {
            *entries = Entries { commits, ..Entries::default() };
        }
        entries.bytes += bytes;
        entries.templates.insert(template.id, (account, Arc::clone(&template)));
        template
    }
}
