//! Keeps the media samples that a provider shows as links, before the links expire. A file becomes an
//! upload of the account, within its quota; the import, or a person who accepts the content, refers to
//! it. A file that no template refers to is deleted as other unused uploads are.

use std::{slice, sync::Arc, time::Duration};

use galley_domain::{
    template::sample,
    upstream::{
        RemoteTemplate,
        content::{ContentMatch, VersionContent, document_key},
    },
};
use galley_store::{
    AppendOutcome, BeginUploadOutcome, MAX_UPLOAD_BYTES, MirroredTemplate, NewUpload, ReadRecord,
    SampleLink, StoredTemplate,
};
use galley_upstream::Upstream as _;
use jiff::Timestamp;
use tokio::time::Instant;
use url::Url;

use super::session::{Session, SyncError, kept};
use crate::delivery::Random;

/// A failure that took this long is slow.
const SLOW_FAILURE: Duration = Duration::from_secs(10);

/// After so many failures in a row that took long, the other files of the same page are left out,
/// because operations wait meanwhile.
const MAX_SLOW_FAILURES: u32 = 3;

/// How a PNG file begins. The store compares the type of a file with its bytes.
const PNG: &[u8] = b"\x89PNG";

/// Maximum length of a file name; longer names are truncated.
const MAX_NAME_BYTES: usize = 128;

/// How the samples of providers are kept.
#[derive(Clone)]
pub struct SampleSettings {
    /// Source of the handles of files.
    random: Arc<dyn Random>,
    /// The quota of an account for all its files, in bytes.
    quota: u64,
    /// Receives whether a file was kept.
    pub(crate) record: Arc<dyn Fn(bool) + Send + Sync>,
}

impl SampleSettings {
    /// `quota`: the bytes that all files of an account may take.
    pub fn new(random: Arc<dyn Random>, quota: u64) -> Self {
        Self { random, quota, record: Arc::new(|_| {}) }
    }
}

/// Why a sample is not kept.
struct NotKept {
    /// The reason, which names neither the link nor a part of it.
    reason: String,
    /// Whether it took long to learn that.
    is_slow: bool,
}

impl From<&str> for NotKept {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), is_slow: false }
    }
}

/// A file that was fetched.
struct Fetched {
    name: String,
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl Session {
    /// Records a template that was read. `asked` is the reason to read it, as it was before the read.
    pub(super) async fn record_read(
        &self,
        template: RemoteTemplate,
        asked: Option<Timestamp>,
    ) -> Result<(), SyncError> {
        self.record_confirmed(template, asked, None).await
    }

    /// Records a template that was read. It has the version `confirmed`, if a probe has found that out.
    pub(super) async fn record_confirmed(
        &self,
        template: RemoteTemplate,
        asked: Option<Timestamp>,
        confirmed: Option<u64>,
    ) -> Result<(), SyncError> {
        // What was read is as old as the read, however long the samples take; what it changes in the
        // account changes when it is recorded.
        let seen_at = self.now();
        self.keep_samples(slice::from_ref(&template)).await?;
        let read = ReadRecord { template, asked, confirmed, seen_at };
        let ended = self.context.store.record_read(self.fence, read, self.now()).await?;
        self.add_ended(kept(ended)?);
        Ok(())
    }

    /// Keeps the samples of contents that the account does not have, so that they are there when the
    /// observation is recorded. A sample that cannot be kept is left out.
    pub(super) async fn keep_samples(&self, templates: &[RemoteTemplate]) -> Result<(), SyncError> {
        let mut slow_failures = 0;
        for remote in templates {
            let document = remote.document.as_ref().filter(|_| !remote.is_generated());
            let Some(document) = document else { continue };
            let links = SampleLink::all(self.connection.account, &remote.id, document);
            self.extend_if_due().await?;
            if links.is_empty() || !self.is_new_content(remote).await? {
                continue;
            }
            for link in &links {
                if self.is_kept(link).await? {
                    continue;
                }
                let result = match slow_failures {
                    MAX_SLOW_FAILURES.. => Err("other samples could not be fetched".into()),
                    _ => self.keep(link).await?,
                };
                (self.context.samples.record)(result.is_ok());
                match result {
                    Ok(()) => slow_failures = 0,
                    Err(NotKept { reason, is_slow }) => {
                        slow_failures += u32::from(is_slow);
                        // The path and the query of a link are secrets.
                        let url = Url::parse(&link.link).ok();
                        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
                        let (account, template) = (self.connection.account, remote.id.as_str());
                        tracing::warn!(%account, template, host, reason, "a sample of the provider is not kept");
                    }
                }
                self.extend_if_due().await?;
            }
        }
        Ok(())
    }

    async fn is_new_content(&self, remote: &RemoteTemplate) -> Result<bool, SyncError> {
        let (store, account) = (&self.context.store, self.connection.account);
        let row = store.mirrored_template(account, &remote.id).await?;
        let local = if let Some(template) = row.as_ref().and_then(|row| row.template) {
            store.template(account, template).await?
        } else {
            let translations = store.translations(account, &remote.name).await?;
            let is_same = |it: &StoredTemplate| it.template.language() == remote.language;
            translations.into_iter().find(is_same).map(Arc::new)
        };
        Ok(is_new_content(remote, row.as_ref(), local.as_deref()))
    }

    /// Whether the file of a sample is there. What an interrupted fetch has left is deleted.
    async fn is_kept(&self, link: &SampleLink) -> Result<bool, SyncError> {
        let (store, account, now) = (&self.context.store, self.connection.account, self.now());
        let Some(upload) = store.upload(account, &link.upload, now).await? else {
            return Ok(false);
        };
        if upload.handle.is_none() {
            store.cancel_upload(account, &link.upload, now).await?;
        }
        Ok(upload.handle.is_some())
    }

    /// Fetches a sample and stores it as a file of the account.
    async fn keep(&self, link: &SampleLink) -> Result<Result<(), NotKept>, SyncError> {
        let fetched = match self.fetch(link).await? {
            Ok(fetched) => fetched,
            Err(failure) => return Ok(Err(failure)),
        };
        let (store, account) = (&self.context.store, self.connection.account);
        let (quota, id) = (self.context.samples.quota, &link.upload);
        let new = NewUpload {
            account,
            id: id.clone(),
            handle: self.context.samples.random.name(),
            file_name: fetched.name,
            file_type: fetched.media_type.to_owned(),
            length: fetched.bytes.len() as u64,
            quota,
            at: self.now(),
            emulated_at: None,
        };
        let refusal = match store.begin_upload(new).await? {
            BeginUploadOutcome::Begun => None,
            BeginUploadOutcome::InvalidLength => Some("the file is empty or too large"),
            BeginUploadOutcome::TooMany => Some("the account has too many incomplete uploads"),
            BeginUploadOutcome::QuotaExceeded(_) => Some(QUOTA),
            BeginUploadOutcome::DuplicateId => Some("the file is being uploaded"),
        };
        if let Some(refusal) = refusal {
            return Ok(Err(refusal.into()));
        }
        let appended =
            store.append_upload(account, id, 0, &fetched.bytes, quota, self.now()).await?;
        let refusal = match appended {
            AppendOutcome::Complete { sniffed, .. } => {
                let is_fit = |found: &str| sample::media_types(&link.format).contains(&found);
                if sniffed.as_deref().is_some_and(is_fit) {
                    return Ok(Ok(()));
                }
                TYPE
            }
            AppendOutcome::TypeMismatch { .. } => TYPE,
            AppendOutcome::QuotaExceeded(_) => QUOTA,
            AppendOutcome::Received(_)
            | AppendOutcome::OffsetMismatch(_)
            | AppendOutcome::TooLong(_)
            | AppendOutcome::NoUpload => "the file was changed while it was stored",
        };
        store.cancel_upload(account, id, self.now()).await?;
        Ok(Err(refusal.into()))
    }

    /// Fetches the file of a sample: without the token, outside of the budget, since it is no call.
    async fn fetch(&self, link: &SampleLink) -> Result<Result<Fetched, NotKept>, SyncError> {
        let Some(usual) = sample::media_types(&link.format).first() else {
            return Ok(Err("the format of the header takes no file".into()));
        };
        let max_bytes = usize::try_from(MAX_UPLOAD_BYTES).unwrap_or(usize::MAX);
        let started = Instant::now();
        let fetched = self.while_leased(self.upstream.fetch(&link.link, max_bytes)).await?;
        Ok(match fetched {
            Ok(bytes) => {
                let media_type = if bytes.starts_with(PNG) { "image/png" } else { usual };
                Ok(Fetched { name: file_name(&link.link), media_type, bytes })
            }
            Err(failure) => Err(NotKept {
                reason: failure.to_string(),
                is_slow: started.elapsed() >= SLOW_FAILURE,
            }),
        })
    }
}

const QUOTA: &str = "the media of the account take all the space that they may";
const TYPE: &str = "the file is not of a type that the format of the header takes";

/// Whether a template at the provider has a content that neither the account's template nor the row of
/// the mirror has, so that the next record imports it, or a person may accept it.
fn is_new_content(
    remote: &RemoteTemplate,
    row: Option<&MirroredTemplate>,
    local: Option<&StoredTemplate>,
) -> bool {
    let Some(document) = remote.document.as_deref() else { return false };
    if remote.status.is_deleted() {
        return false;
    }
    let Some(local) = local else { return true };
    let is_own =
        || VersionContent::of(&local.template).compare(document) != ContentMatch::Different;
    let key = document_key(document);
    let is_seen = row.is_some_and(|row| row.content_key == key && !row.drifted);
    !is_seen && !is_own()
}

/// The last segment of the path of a link.
fn file_name(link: &str) -> String {
    let url = Url::parse(link).ok();
    let segments = url.as_ref().and_then(Url::path_segments);
    let mut name = segments.and_then(Iterator::last).unwrap_or_default().to_owned();
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_of_its_link_without_the_query() {
        for (link, expected) in [
            ("https://cdn.example/v/t61/123_n.jpg?oh=1&oe=2", "123_n.jpg"),
            ("https://cdn.example", ""),
            ("https://cdn.example/%00a/", ""),
        ] {
            assert_eq!(file_name(link), expected, "{link}");
        }
        let long = format!("https://cdn.example/{}", "a".repeat(1_000));
        assert_eq!(file_name(&long).len(), MAX_NAME_BYTES);
    }
}
