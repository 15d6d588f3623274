//! Reads templates of which something may have changed, one at a time.

use std::sync::atomic::Ordering;

use galley_domain::{
    id::TemplateId,
    upstream::{CallFailure, RemoteId, failure::PROBE_INTERVAL},
};
use galley_store::{MirroredTemplate, ToRead};
use galley_upstream::Upstream as _;
use jiff::{SignedDuration, Timestamp};

use super::session::{MAX_UNKNOWN_CALLS, Session, SyncError, kept};

/// A new template that the provider does not show is read again after this time.
const VISIBLE_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// What a failed read means for the other reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailedRead {
    /// It is about the connection: the work ends.
    Ends,
    /// It is about the template, which is read later. The others are read.
    IsPostponed,
}

impl FailedRead {
    /// `unknown_reads`: how many reads in a row had an unknown outcome, with this one.
    fn new(failure: &CallFailure, unknown_reads: u32) -> Self {
        match failure {
            CallFailure::Unknown(_) if unknown_reads >= MAX_UNKNOWN_CALLS => Self::Ends,
            CallFailure::Throttled { .. }
            | CallFailure::NotSent(_)
            | CallFailure::Credentials(_)
            | CallFailure::Restricted(_)
            // The account, not the template: a template that does not exist is no failure.
            | CallFailure::Gone(_) => Self::Ends,
            _ => Self::IsPostponed,
        }
    }
}

impl Session {
    /// Reads templates of which something may have changed. A template whose read fails is read
    /// again a quarter of an hour later, or when a webhook names it.
    pub async fn read_templates(&self, wanted: &[ToRead]) -> Result<(), SyncError> {
        for ToRead { id, dirty_at, .. } in wanted {
            // It is read when the second of its last change is over, or some time after a failure.
            if dirty_at.is_some_and(|dirty_at| dirty_at > self.now()) {
                continue;
            }
            match self.read_template(id, *dirty_at).await? {
                Ok(()) => self.unknown_reads.store(0, Ordering::Relaxed),
                Err(failure) => {
                    self.assess_read(id, failure).await?;
                    self.postpone_read(id, *dirty_at, PROBE_INTERVAL).await?;
                }
            }
            self.extend().await?;
        }
        Ok(())
    }

    /// Reads a template that an operation has changed, at once: a request waits for its status. If the
    /// read fails, it is one of those to be read.
    pub(super) async fn read_after_call(&self, template: TemplateId) -> Result<(), SyncError> {
        let rows = self.context.store.mirror_of(self.connection.account, vec![template]).await?;
        let now = self.now();
        let is_due = |row: &MirroredTemplate| row.dirty_at.is_some_and(|dirty_at| dirty_at <= now);
        let row = rows.into_iter().find(MirroredTemplate::is_present).filter(is_due);
        let Some(row) = row else { return Ok(()) };
        match self.while_leased(self.upstream.read(&row.id)).await? {
            Ok(template) => {
                self.unknown_reads.store(0, Ordering::Relaxed);
                self.record_read(template, row.dirty_at).await
            }
            // The provider may show a new template a moment later.
            Err(CallFailure::Gone(_)) => {
                self.postpone_read(&row.id, row.dirty_at, VISIBLE_WITHIN).await
            }
            Err(failure) => {
                let is_other = matches!(failure, CallFailure::OtherTemplate);
                self.assess_read(&row.id, failure).await?;
                if is_other {
                    // The next read would show it, too.
                    self.postpone_read(&row.id, row.dirty_at, PROBE_INTERVAL).await?;
                }
                Ok(())
            }
        }
    }

    /// Ends the work if a read has failed because of the connection.
    async fn assess_read(&self, id: &RemoteId, failure: CallFailure) -> Result<(), SyncError> {
        let failure = self.attributed_read(failure).await?;
        let unknown_reads = match failure {
            CallFailure::Unknown(_) => self.unknown_reads.fetch_add(1, Ordering::Relaxed) + 1,
            _ => self.unknown_reads.swap(0, Ordering::Relaxed),
        };
        if self.budget.is_lost() || FailedRead::new(&failure, unknown_reads) == FailedRead::Ends {
            return Err(self.failed(failure).await?);
        }
        let account = self.connection.account;
        tracing::warn!(%account, template = id.as_str(), %failure, "a template could not be read at the provider");
        Ok(())
    }

    async fn postpone_read(
        &self,
        id: &RemoteId,
        dirty_at: Option<Timestamp>,
        pause: SignedDuration,
    ) -> Result<(), SyncError> {
        let until = self.now().checked_add(pause).unwrap_or(Timestamp::MAX);
        let store = &self.context.store;
        kept(store.postpone_read(self.fence, id.clone(), dirty_at, until).await?)
    }

    /// Reads a template for the reason that was known, and records what the provider shows.
    pub(super) async fn read_template(
        &self,
        id: &RemoteId,
        dirty_at: Option<Timestamp>,
    ) -> Result<Result<(), CallFailure>, SyncError> {
        let store = &self.context.store;
        match self.while_leased(self.upstream.read(id)).await? {
            Ok(template) => {
                self.record_read(template, dirty_at).await?;
            }
            Err(CallFailure::Gone(_)) => {
                // The token may not see the account any more: then nothing is known.
                if let Err(failure) = self.while_leased(self.upstream.check()).await? {
                    return Ok(Err(failure));
                }
                let absent = store.record_absent(self.fence, id.clone(), dirty_at, self.now());
                kept(absent.await?)?;
            }
            Err(failure) => return Ok(Err(failure)),
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::upstream::ProviderError;

    use super::*;

    #[test]
    fn only_failures_that_are_about_the_connection_end_the_reads() {
        let error = || ProviderError {
            code: 1,
            subcode: None,
            title: None,
            message: "An unknown error has occurred.".to_owned(),
        };
        for failure in [
            CallFailure::Throttled { rest: SignedDuration::from_secs(1) },
            CallFailure::NotSent("refused".to_owned()),
            CallFailure::Credentials(error()),
            CallFailure::Restricted(error()),
            CallFailure::Gone(error()),
        ] {
            assert_eq!(FailedRead::new(&failure, 0), FailedRead::Ends, "{failure}");
        }
        for failure in [
            CallFailure::Refused(error()),
            CallFailure::TooMuchData(error()),
            CallFailure::CursorExpired(error()),
        ] {
            assert_eq!(FailedRead::new(&failure, 9), FailedRead::IsPostponed, "{failure}");
        }
        let unknown = CallFailure::Unknown("closed".to_owned());
        let is_end = |reads| FailedRead::new(&unknown, reads) == FailedRead::Ends;
        assert!(!is_end(MAX_UNKNOWN_CALLS - 1) && is_end(MAX_UNKNOWN_CALLS));
    }
}
