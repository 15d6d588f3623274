//! What an observation of a template at the provider changes: its row of the mirror, the template of
//! the account, or a new template.
//!
//! The provider owns status, category and quality; the account owns the content. The template of the
//! account changes only when the content at the provider is known: if a header has changed, the
//! template is read first, so that no version counts as approved whose content the provider does not
//! have.

mod local;
#[cfg(test)]
mod tests;
mod versions;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::{Category, WHATSAPP},
    template::{Review, Status, Template, lifecycle::State, quality::Quality},
    upstream::{
        RemoteTemplate, TemplateSource,
        content::{ContentKey, document_key},
        failure::PROBE_INTERVAL,
        sweep::SWEEPS_UNTIL_GONE,
    },
};
use jiff::Timestamp;

use self::{local::Seen, versions::VersionMatch};
pub(crate) use self::{
    local::{LocalChange, OWN_APPROVALS, UNSENT},
    versions::FormerVersion,
};
use super::content::imported_content;
use crate::records::KeptSamples;
use crate::upstream::{
    hints::{after_second, postponed_to, unsettled},
    observations::OpenCall,
};
use crate::{
    Actor, EndedApproval, MirroredTemplate, NewTemplate, SampleLink, StoredTemplate, ToRead,
    TranslationGroup,
    template_rows::{ChangedTemplate, NewDecision},
};

/// Where an observation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A page of the sweep with this number.
    Page(u64),
    /// A read of the template.
    Read {
        /// The reason to read it that was known before.
        asked: Option<Timestamp>,
        /// The version that it has, if a probe has found that out.
        confirmed: Option<u64>,
    },
}

/// An observation, and what is stored about the same template.
pub(crate) struct Observation<'a> {
    pub(crate) account: AccountId,
    pub(crate) remote: &'a RemoteTemplate,
    pub(crate) source: Source,
    /// Its row of the mirror.
    pub(crate) before: Option<&'a MirroredTemplate>,
    /// The account's template with the same name and language.
    pub(crate) local: Option<&'a StoredTemplate>,
    /// Whether another template at the provider, which is not deleted, belongs to `local`.
    pub(crate) is_superseded: bool,
    /// The call about it that has not ended.
    pub(crate) open_call: Option<OpenCall>,
    /// When the provider showed the template.
    pub(crate) seen_at: Timestamp,
    /// When the observation is recorded: what changes in the account changes then.
    pub(crate) at: Timestamp,
}

/// What an observation changes.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The row of the mirror. Its `template` is that of an import once that has an id.
    pub(crate) row: MirroredTemplate,
    /// Whether the provider has changed something.
    pub(crate) is_changed: bool,
    /// What changes in the template of the account.
    pub(crate) change: Option<LocalChange>,
    /// A template to create.
    pub(crate) import: Option<Box<Import>>,
}

/// A template to create from a document of the provider.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) new: NewTemplate,
    pub(crate) state: State,
    /// The samples that its document shows as links.
    pub(crate) links: Vec<SampleLink>,
    quality: Quality,
    decision: Option<NewDecision>,
}

impl Import {
    /// Refers to the files that the account keeps, in place of links that expire.
    #[expect(clippy::disallowed_methods, reason = "the provider's document is kept as it is")]
    pub(crate) fn use_samples(&mut self, kept: &KeptSamples) {
        let template = &self.new.template;
        let content = kept.in_content(template.content().to_owned(), &self.links);
        let (name, language) = (template.name().to_owned(), template.language().to_owned());
        let (category, allows) = (template.category(), template.allow_category_change());
        self.new.template = Template::restore(name, language, category, allows, content);
    }

    /// The columns that a create does not write, if one of them is not empty.
    pub(crate) fn further_columns(&self, id: TemplateId) -> Option<ChangedTemplate> {
        let is_plain = self.state.hold.is_none()
            && self.quality == Quality::Unknown
            && self.decision.is_none();
        (!is_plain).then(|| ChangedTemplate {
            quality: self.quality,
            decision: self.decision.clone(),
            ..ChangedTemplate::of_new(&self.new, id, self.state)
        })
    }
}

impl Observed {
    /// The approval that the observation ends.
    pub(crate) fn ended(&mut self) -> Option<EndedApproval> {
        self.change.as_mut().and_then(|change| change.ended.take())
    }

    /// The template to read now, if its content may have changed.
    pub(crate) fn to_read(&self) -> Option<ToRead> {
        let MirroredTemplate { id, dirty_at, missing, observed_at, .. } = &self.row;
        let is_due = dirty_at.is_some_and(|dirty_at| dirty_at <= *observed_at);
        is_due.then(|| ToRead { id: id.clone(), dirty_at: *dirty_at, missing: *missing })
    }
}

impl<'a> Observation<'a> {
    /// The names under which the account's template is looked up: PostgreSQL stores no U+0000.
    pub(crate) fn unique_key(account: AccountId, remote: &RemoteTemplate) -> String {
        let [name, language] = [&remote.name, &remote.language].map(|text| without_nul(text));
        (WHATSAPP.unique_key)(account, &name, &language)
    }

    /// How the template came into being. A provider that does not tell it this time, for example because
    /// it refused the field in the session, has told it before. For a template of the account, only what
    /// is told now counts, so that a wrong word does not last.
    fn template_source(&self) -> Option<&'a TemplateSource> {
        let before = || self.before.filter(|before| before.template.is_none())?.source.as_ref();
        self.remote.source.as_ref().or_else(before)
    }

    /// Whether the provider generated the template: the mirror shows it, and the account ignores it.
    fn is_generated(&self) -> bool {
        self.template_source().is_some_and(TemplateSource::is_generated)
    }

    /// Whether the header differs from the mirror in a way that a change of the content can cause.
    fn has_new_header(&self) -> bool {
        self.before.is_none_or(|before| {
            before.status != self.remote.status
                || before.remote_updated_at != self.remote.updated_at
                || before.gone_at.is_some()
        })
    }

    /// The fingerprint of the content, as far as it is known.
    fn content_key(&self) -> Option<ContentKey> {
        let document = self.remote.document.as_deref();
        let stored = || self.before.and_then(|before| before.content_key);
        document.and_then(document_key).or_else(stored)
    }

    /// Whether the content of the observation is known: it has a document, or nothing has changed
    /// since the last one, which was about the same template. A deleted template needs none.
    fn is_settled(&self) -> bool {
        let is_unchanged = || {
            let is_linked = |before: &&MirroredTemplate| {
                self.local().is_none_or(|local| before.template == Some(local.id))
            };
            let before = self.before.filter(|before| before.content_key.is_some());
            let before = before.filter(is_linked);
            before.is_some_and(|before| before.dirty_at.is_none()) && !self.has_new_header()
        };
        let is_deleted =
            || self.remote.status.is_deleted() && matches!(self.source, Source::Read { .. });
        self.remote.document.is_some() || is_unchanged() || is_deleted()
    }

    /// The account's template, if the observation is about it: a template that the provider is to delete
    /// is not, nor one that it has deleted if another one has taken its place, or if it belonged to none
    /// before.
    fn local(&self) -> Option<&'a StoredTemplate> {
        let is_foreign = self.remote.status.is_deleted()
            && self.before.is_some_and(|before| before.template.is_none());
        let is_other = self.is_superseded || is_foreign || self.deleted().is_some();
        self.local.filter(|_| !is_other && !self.is_generated())
    }

    /// The template that the account has deleted, if the provider is yet to learn it.
    fn deleted(&self) -> Option<TemplateId> {
        match self.open_call {
            Some(OpenCall::Delete(id)) => Some(id),
            _ => None,
        }
    }

    /// The template that the row belongs to. The delete at the provider finds the row by it, and a
    /// former id at the provider its template.
    fn linked(&self) -> Option<TemplateId> {
        let former = || self.before.filter(|_| self.is_superseded).and_then(|it| it.template);
        self.local().map(|local| local.id).or_else(|| self.deleted()).or_else(former)
    }

    /// Decides. `former` are the former versions of the account's template, newest first, if they are
    /// wanted.
    pub(crate) fn decide(&self, former: &[FormerVersion]) -> Observed {
        if self.is_generated() {
            return self.generated();
        }
        let content_key = self.content_key();
        let matched = self.version_match(Some(former));
        let mut row = self.row(content_key, matched);
        let is_changed = self.before.is_none_or(|before| before.differs_from(self.remote));
        if is_changed {
            row.changed_at = self.seen_at;
        }
        let mut observed = Observed { row, is_changed, change: None, import: None };
        if self.is_settled() && content_key.is_some() {
            match self.local() {
                Some(local) => self.follow(local, matched, &mut observed),
                None => self.import(&mut observed),
            }
        }
        observed
    }

    /// A generated template is shown in the mirror. It is neither read, imported nor linked to a template
    /// of the account, whatever its name is. One that was imported before its source was known is read,
    /// has the status that the provider shows, and is live only with the content that was imported.
    fn generated(&self) -> Observed {
        let before = self.before.filter(|before| before.template.is_some());
        let content_key = self.content_key();
        let matched = before.filter(|it| it.content_key == content_key).and_then(|it| it.version);
        let row = self.row(content_key, VersionMatch::None);
        let row = MirroredTemplate {
            template: before.and_then(|before| before.template),
            version: matched,
            drifted: false,
            dirty_at: before.and(row.dirty_at),
            ..row
        };
        let is_imported = |it: &&StoredTemplate| !self.is_superseded && row.template == Some(it.id);
        let local = self.local.filter(is_imported).filter(|_| self.is_settled());
        let change = local.and_then(|local| {
            let seen =
                Seen { matched, is_known: true, is_new_drift: false, is_category_unsent: false };
            LocalChange::followed(self.account, local, &row, seen, self.at)
        });
        Observed { row, is_changed: false, change, import: None }
    }

    /// The row after the observation.
    fn row(&self, content_key: Option<ContentKey>, matched: VersionMatch) -> MirroredTemplate {
        let Self { remote, before, seen_at, .. } = *self;
        let version = matched.version();
        // A newer change needs a look of its own, not the one after the second of the former change.
        let is_obsolete = |before: &&MirroredTemplate| {
            remote.document.is_some()
                && !before.has_unread_change()
                && before.remote_updated_at < remote.updated_at
        };
        let dirty_at = before.filter(|it| !is_obsolete(it)).and_then(|before| before.dirty_at);
        let dirty_at = match self.source {
            Source::Read { asked, .. } => {
                let open = unsettled(dirty_at, asked);
                open.or_else(|| self.second_look(asked))
            }
            // One for a document only: an unchanged header tells nothing about the second.
            Source::Page(_) if remote.document.is_some() => {
                dirty_at.or_else(|| self.second_look(None))
            }
            Source::Page(_) if self.is_settled() => dirty_at,
            // The header differs, so that the read need not wait for the next second.
            Source::Page(_) if self.has_new_header() => {
                Some(dirty_at.map_or(seen_at, |dirty_at| dirty_at.min(seen_at)))
            }
            Source::Page(_) => Some(dirty_at.unwrap_or(seen_at)),
        };
        let content_at = match before {
            Some(before) if !self.is_settled() => before.remote_updated_at,
            _ => remote.updated_at,
        };
        MirroredTemplate {
            id: remote.id.clone(),
            template: self.linked(),
            name: without_nul(&remote.name),
            language: without_nul(&remote.language),
            status: remote.status.clone(),
            category: without_nul(&remote.category),
            correct_category: remote.correct_category.clone(),
            quality: remote.quality,
            reason: remote.rejected_reason.clone(),
            remote_updated_at: content_at,
            content_key,
            version,
            // If it shows neither that version nor what it showed before, another author has edited it.
            sent_version: if self.is_lost(matched) {
                Some(MirroredTemplate::LOST_CALL)
            } else {
                let may_hide = |it: &&MirroredTemplate| {
                    it.shows_same(content_key, content_at) || self.may_precede_call(it, version)
                };
                let sent = before.filter(|_| !self.is_confirmed()).filter(may_hide);
                let sent = sent.and_then(|it| it.sent_version);
                sent.filter(|it| Some(*it) != version && *it != MirroredTemplate::LOST_CALL)
            },
            drifted: before.is_some_and(|before| before.drifted),
            observed_at: seen_at,
            changed_at: before.map_or(seen_at, |before| before.changed_at),
            sweep: match self.source {
                Source::Page(sweep) => sweep,
                Source::Read { .. } => before.map_or(0, |before| before.sweep),
            },
            missing: 0,
            gone_at: None,
            dirty_at,
            info: before.and_then(|before| before.info.clone()),
            source: self.template_source().cloned(),
        }
    }

    /// When the template is to be looked at once more, because it may have been seen in the second of its
    /// last change, or because the read has shown no content, as one that has failed. If that look was
    /// asked for by the one before and shows the same content, the provider may show the time of now as
    /// that of the change: then the next one waits as after a read that has failed.
    fn second_look(&self, asked: Option<Timestamp>) -> Option<Timestamp> {
        let later = || self.seen_at.checked_add(PROBE_INTERVAL).map(postponed_to).ok();
        if !self.is_settled() {
            return later();
        }
        let next = after_second(self.remote.updated_at, self.seen_at)?;
        let before = self.before.and_then(|it| after_second(it.remote_updated_at, it.observed_at));
        let is_unchanged = self.before.is_some_and(|it| it.content_key == self.content_key());
        let is_asked = before.is_some_and(|before| unsettled(Some(before), asked).is_none());
        let is_again = is_asked && is_unchanged;
        if is_again { later() } else { Some(next) }
    }

    /// Applies what the provider shows to the template of the account.
    fn follow(&self, local: &StoredTemplate, matched: VersionMatch, observed: &mut Observed) {
        let newest = local.state.version;
        let was_drifted = self.before.is_some_and(|before| before.drifted);
        let was_given = self.before.is_some_and(|before| {
            before.template == Some(local.id)
                && (before.version == Some(newest) || before.sent_version == Some(newest))
        });
        let (version, sent) = (matched.version(), observed.row.sent_version);
        let is_as_before = self.before.is_some_and(|before| {
            before.shows_same(observed.row.content_key, observed.row.remote_updated_at)
        });
        let is_drifted = match version {
            Some(version) if version == newest => false,
            // The last call made it: a look that showed another version was from before that call.
            Some(shown) if self.before.is_some_and(|it| it.sent_version == Some(shown)) => false,
            // What is shown may be from before the call.
            Some(_) if sent == Some(newest) && is_as_before => was_drifted,
            // A version that waits for its review is not sent yet; an approved one claims too much.
            Some(_) => was_drifted || was_given || local.state.newest_status == Status::Approved,
            // So may what is of another author, whom a call has replaced since.
            None if sent.is_some_and(|it| it != MirroredTemplate::LOST_CALL) => was_drifted,
            None => was_drifted || matched != VersionMatch::Unsettled(None),
        };
        observed.row.drifted = is_drifted;
        let seen = Seen {
            matched: version,
            is_known: self.before.is_some_and(|before| {
                before.template == Some(local.id) && before.content_key.is_some()
            }),
            is_new_drift: is_drifted && !was_drifted,
            is_category_unsent: version.is_some_and(|version| version != local.state.version)
                && self.before.is_some_and(|before| before.category == self.remote.category),
        };
        observed.change = LocalChange::followed(self.account, local, &observed.row, seen, self.at);
    }

    /// Creates a template, or asks for the document that it needs.
    fn import(&self, observed: &mut Observed) {
        let category = Category::parse(&self.remote.category);
        let is_wanted =
            !self.remote.status.is_deleted() && self.deleted().is_none() && self.local.is_none();
        let (Some(category), true) = (category, is_wanted) else { return };
        let Some(document) = self.remote.document.as_deref() else {
            if let Source::Page(_) = self.source {
                let dirty_at = observed.row.dirty_at;
                observed.row.dirty_at = dirty_at.or(Some(self.seen_at));
            }
            return;
        };
        observed.row.version = Some(1);
        observed.row.drifted = false;
        let links = SampleLink::all(self.account, &self.remote.id, document);
        observed.import = imported_content(document)
            .map(|content| Box::new(self.imported(category, content, links)));
    }

    #[expect(clippy::disallowed_methods, reason = "the provider's document is kept as it is")]
    fn imported(&self, category: Category, content: String, links: Vec<SampleLink>) -> Import {
        let remote = self.remote;
        let [name, language] = [&remote.name, &remote.language].map(|text| without_nul(text));
        let shown = remote.status.state();
        let newest_status = shown.version_status.unwrap_or(Status::Pending);
        let state = State {
            version: 1,
            newest_status,
            approved_version: (shown.version_status == Some(Status::Approved)).then_some(1),
            hold: shown.hold,
        };
        let is_rejected = newest_status == Status::Rejected;
        Import {
            new: NewTemplate {
                account: self.account,
                phone: None,
                unique_key: Self::unique_key(self.account, remote),
                translation_group: Some(TranslationGroup::of(self.account, &name)),
                template: Template::restore(name, language, category, true, content),
                review: Review::Manual,
                actor: Actor::Service,
                trace: None,
                idempotency: None,
                at: self.at,
            },
            state,
            links,
            quality: remote.quality.unwrap_or(Quality::Unknown),
            decision: is_rejected.then(|| NewDecision::Made(remote.rejected_reason.clone())),
        }
    }
}

impl MirroredTemplate {
    /// Whether the provider shows something else than the mirror.
    pub fn differs_from(&self, remote: &RemoteTemplate) -> bool {
        let content = remote.document.as_deref().and_then(document_key);
        self.gone_at.is_some()
            || self.status != remote.status
            || self.remote_updated_at != remote.updated_at
            || self.category != without_nul(&remote.category)
            || self.correct_category != remote.correct_category
            || self.quality != remote.quality
            || self.reason != remote.rejected_reason
            || (content.is_some() && self.content_key != content)
    }
}

/// A text that PostgreSQL can store.
fn without_nul(text: &str) -> String {
    text.replace('\0', " ")
}

/// The row of a template that a read did not find.
pub(crate) fn absent(
    before: &MirroredTemplate,
    asked: Option<Timestamp>,
    is_suspicious: bool,
    at: Timestamp,
) -> MirroredTemplate {
    let is_gone = before.missing >= SWEEPS_UNTIL_GONE && !is_suspicious && before.gone_at.is_none();
    MirroredTemplate {
        dirty_at: unsettled(before.dirty_at, asked),
        gone_at: if is_gone { Some(at) } else { before.gone_at },
        changed_at: if is_gone { at } else { before.changed_at },
        ..before.clone()
    }
}

/// The row of a template whose read failed; `None` if nothing changes, because the reason to read it
/// is another one since, or because it is gone.
pub(crate) fn postponed(
    before: &MirroredTemplate,
    asked: Option<Timestamp>,
    until: Timestamp,
) -> Option<MirroredTemplate> {
    let is_wanted = before.gone_at.is_none() || before.dirty_at.is_some();
    let is_same =
        before.dirty_at.is_some() == asked.is_some() && unsettled(before.dirty_at, asked).is_none();
    (is_wanted && is_same)
        .then(|| MirroredTemplate { dirty_at: Some(postponed_to(until)), ..before.clone() })
}
