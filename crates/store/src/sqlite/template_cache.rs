//! Templates that were read lately, in memory. Everything kept belongs to one number of commits;
//! with the next commit all of it is forgotten, so that nobody has to say what has changed.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use galley_domain::id::{AccountId, TemplateId};

use crate::StoredTemplate;

/// So much is kept, counted in bytes of templates; then it begins anew.
const MOST: usize = 32 * 1_024 * 1_024;

/// What a template takes beside its content, about.
const EACH: usize = 512;

#[derive(Default)]
pub(super) struct Recent(RwLock<Kept>);

#[derive(Default)]
struct Kept {
    commits: u64,
    bytes: usize,
    templates: HashMap<TemplateId, (AccountId, Arc<StoredTemplate>)>,
}

impl Recent {
    /// The template, if it was read since that commit.
    pub(super) fn get(
        &self,
        commits: u64,
        account: AccountId,
        id: TemplateId,
    ) -> Option<Arc<StoredTemplate>> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if kept.commits != commits {
            return None;
        }
        let (owner, template) = kept.templates.get(&id)?;
        (*owner == account).then(|| Arc::clone(template))
    }

    /// Keeps a template that was read at that commit.
    pub(super) fn keep(
        &self,
        commits: u64,
        account: AccountId,
        template: StoredTemplate,
    ) -> Arc<StoredTemplate> {
        let bytes = EACH + template.template.content().len();
        let template = Arc::new(template);
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // What was read before the newest commit is of no use to anybody else.
        if kept.commits > commits {
            return template;
        }
        if kept.commits < commits || kept.bytes + bytes > MOST {
            *kept = Kept { commits, ..Kept::default() };
        }
        kept.bytes += bytes;
        kept.templates.insert(template.id, (account, Arc::clone(&template)));
        template
    }
}
