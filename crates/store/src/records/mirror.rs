//! The mirror of the provider's templates: what pages and reads record, and what is known of each one.

use galley_domain::{
    id::TemplateId,
    template::quality::Quality,
    upstream::{
        RemoteId, RemoteStatus, RemoteTemplate, SweepProgress, SweepVerdict, TemplateSource,
        content::ContentKey,
    },
};
use jiff::Timestamp;

use super::EndedApproval;

/// A page of the list of templates.
#[derive(Clone, Debug, Default)]
pub struct PageRecord {
    /// Its templates.
    pub templates: Vec<RemoteTemplate>,
    /// How many more it has that cannot be read.
    pub unreadable: u32,
    /// The cursor of the next page; `None` if this is the last one.
    pub after: Option<String>,
    /// The number of templates that the provider counts.
    pub total: Option<u32>,
    /// The maximum number of templates at the provider.
    pub limit: Option<u32>,
    /// Whether the cursor of the sweep had expired, so that this is the first page again.
    pub restarted: bool,
    /// When the provider showed it.
    pub seen_at: Timestamp,
}

/// A template that was read with its components.
#[derive(Clone, Debug)]
pub struct ReadRecord {
    /// The template.
    pub template: RemoteTemplate,
    /// The reason to read it, as it was before the read.
    pub asked: Option<Timestamp>,
    /// The version that it has, if a probe has found that out.
    pub confirmed: Option<u64>,
    /// When the provider showed it.
    pub seen_at: Timestamp,
}

/// What a page has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageResult {
    /// What the sweep has seen, with the page.
    pub progress: SweepProgress,
    /// How many templates were new or had changed at the provider.
    pub changed: u64,
    /// How many templates were created in the account.
    pub imported: u64,
    /// The templates of the page to read, because their content may have changed.
    pub to_read: Vec<ToRead>,
    /// The approvals that it has ended.
    pub ended: Vec<EndedApproval>,
}

/// A template to read at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToRead {
    /// The id.
    pub id: RemoteId,
    /// The last reason to read it, or until when that is postponed. A read settles no other reason
    /// than this one.
    pub dirty_at: Option<Timestamp>,
    /// In how many counted sweeps in a row it was missing.
    pub missing: u32,
}

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepReport {
    /// What it means for templates that it did not see.
    pub verdict: SweepVerdict,
    /// How many templates it saw.
    pub seen: u32,
    /// Those of them that the provider generated.
    pub generated: u32,
    /// How many were new or had changed, without generated ones.
    pub changed: u64,
    /// How many that the mirror shows as present it did not see, without generated ones.
    pub missing: u32,
    /// Whether the connection is suspicious, by this sweep or an earlier one.
    pub suspicious: bool,
}

/// How many hints of webhooks were about templates of the mirror, and how many were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintReport {
    /// Templates that will be read.
    pub known: usize,
    /// Templates that the next sweep has to find.
    pub unknown: usize,
}

/// How many templates the mirror has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounts {
    /// Templates that the provider has.
    pub present: u64,
    /// Those of them whose content differs from what the account has approved or sent.
    pub drifted: u64,
    /// Those of them that the last counted sweep did not see.
    pub missing: u64,
    /// Templates that the account has and the provider no longer does.
    pub gone: u64,
    /// Those of the present ones that the provider generated. They are neither drifted nor missing.
    pub generated: u64,
    /// Those of the present ones that the last sweep which reached the last page did not see, whatever
    /// that sweep means, without those that are missing once too often.
    pub unseen: u64,
}

/// Which templates of the mirror are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorFilter {
    /// All, also those that the provider no longer has.
    All,
    /// Those that the provider has; with this source, if one is given.
    Present(Option<TemplateSource>),
    /// Those that the provider had and a sweep did not see, as [`MirrorCounts::unseen`].
    Unseen,
}

/// A template of the mirror, without its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredTemplate {
    /// The id at the provider.
    pub id: RemoteId,
    /// The template of the account.
    pub template: Option<TemplateId>,
    /// The name.
    pub name: String,
    /// The language.
    pub language: String,
    /// The status at the provider.
    pub status: RemoteStatus,
    /// The category at the provider.
    pub category: String,
    /// The category that the provider will change to.
    pub correct_category: Option<String>,
    /// The quality at the provider.
    pub quality: Option<Quality>,
    /// Why the provider rejected it.
    pub reason: Option<String>,
    /// When the provider had changed it, as it was when its content was seen last.
    pub remote_updated_at: Option<Timestamp>,
    /// The fingerprint of its comparable content; `None` before it was read.
    pub content_key: Option<ContentKey>,
    /// The version of the account's template with the same content.
    pub version: Option<u64>,
    /// The version that the last call has given the provider, until a read shows that one. After a call
    /// whose outcome is not known, 0.
    pub sent_version: Option<u64>,
    /// Whether its content differs from what the account has approved or sent.
    pub drifted: bool,
    /// When it was seen last.
    pub observed_at: Timestamp,
    /// When it was seen changed.
    pub changed_at: Timestamp,
    /// The last sweep that saw it.
    pub sweep: u64,
    /// How many counted sweeps in a row have not seen it.
    pub missing: u32,
    /// When it was found to be gone.
    pub gone_at: Option<Timestamp>,
    /// The last reason to read it. In the future: it is read then, and not before.
    pub dirty_at: Option<Timestamp>,
    /// What only webhooks say, as JSON.
    pub info: Option<String>,
    /// How it came into being, if the provider tells.
    pub source: Option<TemplateSource>,
}

impl MirroredTemplate {
    /// No version: until a read shows all of one, it is not known what the last call has done.
    pub(crate) const LOST_CALL: u64 = 0;

    /// Whether [`is_present`](Self::is_present) is true of a row, as an SQL condition.
    pub(crate) const PRESENT: &str =
        "gone_at IS NULL AND status NOT IN ('DELETED', 'PENDING_DELETION')";

    /// Whether [`is_generated`](Self::is_generated) is false of a row, as an SQL condition.
    pub(crate) const OWN: &str = "coalesce(source, '') <> 'AUTO_GENERATED'";

    /// The order of the rows of a template, as SQL: the one that the provider has, or else the newest,
    /// comes first. The others are former templates of the provider, whose ids resolve for ever.
    pub(crate) const CURRENT_FIRST: &str = "CASE WHEN gone_at IS NULL AND \
         status NOT IN ('DELETED', 'PENDING_DELETION') THEN 0 ELSE 1 END, observed_at DESC, \
         remote_id DESC";

    /// Whether the provider had the template when it was seen last.
    pub fn is_present(&self) -> bool {
        self.gone_at.is_none() && !self.status.is_deleted()
    }

    /// Whether the provider has a template of the account here, and not under this id.
    pub(crate) fn is_other_of(&self, template: TemplateId, id: &RemoteId) -> bool {
        self.template == Some(template) && self.id != *id && self.is_present()
    }

    /// Whether the provider generated the template. It belongs to no template of the account, except if
    /// it was imported before its source was known.
    pub fn is_generated(&self) -> bool {
        self.source.as_ref().is_some_and(TemplateSource::is_generated)
    }
}
