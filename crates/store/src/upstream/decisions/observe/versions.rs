//! Which version of the account's template the provider has.

use std::iter;

use galley_domain::{
    rulebook::Category,
    template::sample,
    upstream::content::{ContentKey, ContentMatch, VersionContent},
};
use jiff::Timestamp;

use super::{Observation, OpenCall, Source, after_second};
use crate::{
    Actor, MirroredTemplate, StoreError, StoredTemplate, Version, stored_row::Row,
    stored_row::StoredRow as _,
};

/// Which version of the account's template has the content of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionMatch {
    Version(u64),
    None,
    /// A call whose outcome is not known may have replaced what the provider shows, or has replaced it:
    /// the version that it was before, if that is known.
    Unsettled(Option<u64>),
    /// The former versions have to be searched.
    AmongFormer,
}

impl VersionMatch {
    pub(super) fn version(self) -> Option<u64> {
        match self {
            Self::Version(version) => Some(version),
            Self::Unsettled(version) => version,
            Self::None | Self::AmongFormer => None,
        }
    }
}

impl From<Option<u64>> for VersionMatch {
    fn from(version: Option<u64>) -> Self {
        version.map_or(Self::None, Self::Version)
    }
}

/// A former version of a template.
#[derive(Debug)]
pub(crate) struct FormerVersion {
    pub(crate) number: u64,
    pub(crate) category: Category,
    pub(crate) content: String,
}

impl From<Version> for FormerVersion {
    fn from(version: Version) -> Self {
        let Version { number, category, content, .. } = version;
        Self { number, category, content }
    }
}

impl FormerVersion {
    /// The rows that [`read`](Self::read) reads: those of a template (`$1`), newest first.
    pub(crate) const ROWS: &str = "SELECT version, category, content FROM former_version \
         WHERE template_id = $1 ORDER BY version DESC";

    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            number: row.number("version")?,
            category: row.parsed("category", Category::parse)?,
            content: row.value("content")?,
        })
    }

    fn content(&self) -> VersionContent<'_> {
        VersionContent { category: self.category, content: &self.content }
    }
}

impl Observation<'_> {
    /// The version that the provider has. Where it does not show all of a version, only the call that
    /// sent the version tells, and the row before. A look without a document changes none. `former` are the former versions, newest first, if
    /// they are loaded.
    pub(super) fn version_match(&self, former: Option<&[FormerVersion]>) -> VersionMatch {
        let (Some(local), Some(key)) = (self.local(), self.content_key()) else {
            return VersionMatch::None;
        };
        let newest = local.state.version;
        let before = self.before.filter(|before| before.template == Some(local.id));
        let Some(document) = self.remote.document.as_deref() else {
            return before.and_then(|it| it.version).into();
        };
        if self.has_lost_call() {
            return self.match_after_lost_call(local, document, former);
        }
        let older = before.filter(|it| self.is_older_than_call(it));
        let sent = match self.source {
            Source::Read { confirmed: Some(version), .. } => Some(version),
            // The call has replaced what is shown: it is not a newer version that looks like it.
            _ if let Some(older) = older.filter(|it| it.sent_version != Some(newest)) => {
                return older.version.into();
            }
            _ => before.filter(|_| older.is_none()).and_then(|it| it.sent_version),
        };
        let compare_newest = || VersionContent::of(&local.template).compare(document);
        if let Some(sent) = sent.filter(|sent| *sent != newest) {
            let Some(former) = former else { return VersionMatch::AmongFormer };
            let sent_match = former.iter().find(|it| it.number == sent);
            let sent_match = sent_match.map(|it| it.content().compare(document));
            let is_sent = match sent_match {
                Some(ContentMatch::Equal) => true,
                Some(ContentMatch::Alike) => compare_newest() != ContentMatch::Equal,
                Some(ContentMatch::Different) | None => false,
            };
            if is_sent {
                return VersionMatch::Version(sent);
            }
        }
        let unchanged = before.filter(|before| before.content_key == Some(key));
        let newest_match = compare_newest();
        match newest_match {
            ContentMatch::Equal if sent == Some(newest) || !self.differs_beside_content(local) => {
                return VersionMatch::Version(newest);
            }
            ContentMatch::Alike if sent == Some(newest) => return VersionMatch::Version(newest),
            _ => {}
        }
        // Versions do not change: what is shown unchanged is the same version as before.
        if let Some(version) = unchanged.and_then(|before| before.version) {
            return VersionMatch::Version(version);
        }
        // A version that was not sent yet may differ from a former one only in its category or a sample:
        // the provider has the former one. It has had the newest one if it has decided on that.
        let is_newest_equal = newest_match == ContentMatch::Equal;
        if unchanged.is_some() || (is_newest_equal && local.decided_by == Some(Actor::Service)) {
            return if is_newest_equal {
                VersionMatch::Version(newest)
            } else {
                VersionMatch::None
            };
        }
        let Some(former) = former else { return VersionMatch::AmongFormer };
        let is_equal = |it: &&FormerVersion| it.content().compare(document) == ContentMatch::Equal;
        match former.iter().find(is_equal) {
            Some(found) => VersionMatch::Version(found.number),
            None if is_newest_equal => VersionMatch::Version(newest),
            None => VersionMatch::None,
        }
    }

    /// Whether it is not known what the last call has done. A probe that has found that out tells it.
    fn has_lost_call(&self) -> bool {
        let lost = Some(MirroredTemplate::LOST_CALL);
        let is_marked = self.before.is_some_and(|before| before.sent_version == lost);
        !self.is_confirmed() && (self.lost_version().is_some() || is_marked)
    }

    /// The version of a call whose outcome is yet to be found out.
    fn lost_version(&self) -> Option<u64> {
        match self.open_call {
            Some(OpenCall::Edit(version)) => Some(version),
            _ => None,
        }
    }

    /// Whether that is still not known after the observation: another version that the provider shows may
    /// be from before a call that is yet to be found out.
    pub(super) fn is_lost(&self, matched: VersionMatch) -> bool {
        let is_shown = self.remote.document.is_some()
            && match (matched, self.lost_version()) {
                (VersionMatch::Version(shown), Some(lost)) => shown == lost,
                (VersionMatch::Unsettled(_), _) | (_, Some(_)) => false,
                _ => true,
            };
        self.has_lost_call() && !is_shown
    }

    /// The version that the provider has after a call whose outcome is not known: one of which it shows
    /// all, or the one before if nothing has changed since. Otherwise the status may be that of another
    /// version, and the call is made again.
    fn match_after_lost_call(
        &self,
        local: &StoredTemplate,
        document: &str,
        former: Option<&[FormerVersion]>,
    ) -> VersionMatch {
        let before = self.before.filter(|before| before.template == Some(local.id));
        if let Some(before) = before.filter(|it| self.is_as_before_call(it)) {
            return VersionMatch::Unsettled(before.version);
        }
        let Some(former) = former else { return VersionMatch::AmongFormer };
        let unchanged = before.filter(|before| before.content_key == self.content_key());
        let newest = (local.state.version, VersionContent::of(&local.template));
        let versions = iter::once(newest).chain(former.iter().map(|it| (it.number, it.content())));
        let matches: Vec<_> =
            versions.map(|(number, it)| (number, it, it.compare(document))).collect();
        let is_shown = |(_, version, found): &&(u64, VersionContent<'_>, ContentMatch)| {
            *found == ContentMatch::Equal && !has_samples(version.content)
        };
        // The newest version may be a former one that is saved again, and not sent yet.
        let mut shown = matches.iter().filter(is_shown).map(|it| it.0);
        let same = shown.clone().find(|it| unchanged.is_some_and(|row| row.version == Some(*it)));
        match same.or_else(|| shown.next()) {
            Some(version) => VersionMatch::Version(version),
            None if unchanged.is_some() => VersionMatch::Unsettled(None),
            None if matches.iter().any(|it| it.2 != ContentMatch::Different) => {
                VersionMatch::Unsettled(None)
            }
            None => VersionMatch::None,
        }
    }

    /// Whether the provider shows what it showed before the last call.
    fn is_older_than_call(&self, before: &MirroredTemplate) -> bool {
        before.sent_version.is_some()
            && before.sent_version != before.version
            && self.is_as_before_call(before)
    }

    /// Whether the provider shows the same content, with the same time of its last change. A call in the
    /// second of that one is told by the look after the second.
    fn is_as_before_call(&self, before: &MirroredTemplate) -> bool {
        let Some(updated_at) = self.remote.updated_at else { return false };
        let second_look = after_second(Some(updated_at), updated_at);
        before.content_key == self.content_key()
            && before.remote_updated_at == Some(updated_at)
            && (before.dirty_at != second_look || second_look.is_some_and(|it| self.seen_at < it))
    }

    /// Whether a version that is shown may be from before the last call: the newest version, or one that was
    /// sent before that call and has not been shown yet. If the newest one was not sent, a former one with
    /// the same content is shown.
    pub(super) fn may_precede_call(&self, before: &MirroredTemplate, shown: Option<u64>) -> bool {
        let newest = self.local().map(|local| local.state.version);
        let is_between = before.version < shown && shown < before.sent_version;
        is_between || (shown.is_some() && shown == newest)
    }

    /// Whether a probe has shown that the provider has the version of the operation.
    pub(super) fn is_confirmed(&self) -> bool {
        matches!(self.source, Source::Read { confirmed: Some(_), .. })
    }

    /// Whether the newest version has another category than the provider shows, or a sample, which no
    /// provider shows as it was sent.
    fn differs_beside_content(&self, local: &StoredTemplate) -> bool {
        let shown = Category::parse(&self.remote.category);
        shown.is_some_and(|shown| shown != local.template.category())
            || has_samples(local.template.content())
    }

    /// Whether [`decide`](Self::decide) needs the former versions of the account's template.
    pub(crate) fn wants_former_versions(&self) -> bool {
        self.version_match(None) == VersionMatch::AmongFormer
    }
}

/// Whether a content has samples, which no provider shows as they were sent.
fn has_samples(content: &str) -> bool {
    sample::referenced_names(content).next().is_some()
}

impl MirroredTemplate {
    /// Whether it has this content, with this time of the last change.
    pub(super) fn shows_same(
        &self,
        content_key: Option<ContentKey>,
        updated_at: Option<Timestamp>,
    ) -> bool {
        (self.content_key, self.remote_updated_at) == (content_key, updated_at)
    }

    /// Whether the provider has the newest version of the template, so that nothing has to be sent:
    /// it shows all of that version, or it was found to have it, and no call has given it another one
    /// since. Samples are not shown as they were sent: a content with samples is always sent.
    pub fn has_version(&self, template: &StoredTemplate) -> bool {
        let own = VersionContent::of(&template.template);
        let is_replaced = self.sent_version.is_some_and(|sent| sent != template.state.version);
        let has_content =
            self.version == Some(template.state.version) || own.is_shown_by(self.content_key);
        has_content
            && !is_replaced
            && self.other_category(template).is_none()
            && !has_samples(own.content)
    }

    /// The category of the template, if the provider shows another one, so that an edit has to change
    /// it.
    pub fn other_category(&self, template: &StoredTemplate) -> Option<Category> {
        let own = template.template.category();
        Category::parse(&self.category).filter(|shown| *shown != own).map(|_| own)
    }
}
