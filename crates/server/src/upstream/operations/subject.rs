//! What an operation is about: the template at the version of the operation, and what the mirror
//! shows of it.

use galley_domain::upstream::{
    CallFailure, CallKind, Operation, OperationState, RemoteTemplate,
    content::{ContentMatch, VersionContent},
};
use galley_store::{MirroredTemplate, StoredOperation, StoredTemplate};
use galley_upstream::Upstream as _;
use jiff::{SignedDuration, Timestamp};

use super::media::upload_calls;
use crate::upstream::session::{Session, SyncError};

/// How many versions are compared with a template at the provider to learn whether Galley has made it.
const MAX_COMPARED_VERSIONS: u64 = 20;

/// How many operations before a delete are searched for the create.
const MAX_EARLIER_OPERATIONS: usize = 1_000;

/// How old the last look at a template may be before an edit replaces its content.
const MAX_ROW_AGE: SignedDuration = SignedDuration::from_mins(1);

/// The name and the language of a template.
pub(super) type Identity = (String, String);

/// What an operation is about.
pub(super) struct Subject {
    /// The template with the content of the operation's version; `None` if that is no longer stored.
    pub(super) template: Option<StoredTemplate>,
    /// Its name and language.
    pub(super) identity: Option<Identity>,
    /// Whether the account has deleted it.
    pub(super) is_deleted: bool,
    /// The template at the provider, as far as the mirror knows.
    pub(super) row: Option<MirroredTemplate>,
}

impl Session {
    pub(super) async fn subject(&self, operation: &StoredOperation) -> Result<Subject, SyncError> {
        let (store, account) = (&self.context.store, self.connection.account);
        let StoredOperation { template: id, version, .. } = *operation;
        let template = store.operation_template(account, id, version).await?;
        let is_deleted = store.template(account, id).await?.is_none();
        let rows = store.mirror_of(account, vec![id]).await?;
        let row = rows.into_iter().find(MirroredTemplate::is_present);
        let identity = match (&template, &row) {
            (Some(stored), _) => {
                Some((stored.template.name().to_owned(), stored.template.language().to_owned()))
            }
            (None, Some(row)) => Some((row.name.clone(), row.language.clone())),
            (None, None) => None,
        };
        Ok(Subject { template, identity, is_deleted, row })
    }

    /// The row of the subject after a read, if something may have changed at the provider since it was
    /// seen; `None` if the provider does not have the template any more. The read is made only if the
    /// budget has room for the edit to the template, too.
    pub(super) async fn current_row(
        &self,
        row: MirroredTemplate,
        template: &StoredTemplate,
    ) -> Result<Result<Option<MirroredTemplate>, CallFailure>, SyncError> {
        let now = self.now();
        let is_dirty = row.may_have_changed(now);
        if !is_dirty && is_recent(row.observed_at, now) {
            return Ok(Ok(Some(row)));
        }
        let calls = 1 + upload_calls(template.template.content()) + 1;
        match self.room_for(CallKind::Edit, calls).await? {
            Ok(()) => self.read_again(row).await,
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// The row of a template after a read; `None` if the provider does not have it any more.
    pub(super) async fn read_again(
        &self,
        row: MirroredTemplate,
    ) -> Result<Result<Option<MirroredTemplate>, CallFailure>, SyncError> {
        // A reason that is postponed stays, so that the template is read once more at its time.
        let dirty_at = row.dirty_at.filter(|dirty_at| *dirty_at <= self.now());
        if let Err(failure) = self.read_template(&row.id, dirty_at).await? {
            return Ok(Err(failure));
        }
        let row = self.context.store.mirrored_template(self.connection.account, &row.id).await?;
        Ok(Ok(row.filter(MirroredTemplate::is_present)))
    }

    /// Whether a template that was found by its name is the one of the operation: no other template of
    /// the account has it, and it shows all of one of the versions, or what a create may have made.
    pub(super) async fn is_own(
        &self,
        operation: &StoredOperation,
        found: &RemoteTemplate,
    ) -> Result<bool, SyncError> {
        let (store, account) = (&self.context.store, self.connection.account);
        if found.is_generated() {
            return Ok(false);
        }
        let row = store.mirrored_template(account, &found.id).await?;
        if let Some(owner) = row.and_then(|row| row.template) {
            return Ok(owner == operation.template);
        }
        let Some(document) = &found.document else { return Ok(false) };
        let may_be_made = self.may_be_created(operation).await?;
        let oldest = operation.version.saturating_sub(MAX_COMPARED_VERSIONS).max(1);
        for version in (oldest..=operation.version).rev() {
            let stored = store.operation_template(account, operation.template, version).await?;
            let stored = stored.filter(|it| it.state.version == version);
            let own = stored.as_ref().map(|it| VersionContent::of(&it.template));
            match own.map(|own| own.compare(document)) {
                Some(ContentMatch::Equal) => return Ok(true),
                Some(ContentMatch::Alike) if may_be_made => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Whether an earlier operation of the template may have created one that was never seen.
    async fn may_be_created(&self, operation: &StoredOperation) -> Result<bool, SyncError> {
        let (store, account) = (&self.context.store, self.connection.account);
        if !store.mirror_of(account, vec![operation.template]).await?.is_empty() {
            return Ok(false);
        }
        let earlier = store.operations(account, Some(operation.id), MAX_EARLIER_OPERATIONS).await?;
        let has_made = |it: &StoredOperation| {
            let Operation { kind, state, unknown_calls, .. } = it.operation;
            kind.is_submission() && (state == OperationState::Done || unknown_calls > 0)
        };
        Ok(earlier.iter().any(|it| it.template == operation.template && has_made(it)))
    }

    /// Finds the template of a deleted one at the provider, which the mirror does not have.
    pub(super) async fn find_own(
        &self,
        operation: &StoredOperation,
        subject: &Subject,
    ) -> Result<Result<Option<RemoteTemplate>, CallFailure>, SyncError> {
        let Some((name, language)) = &subject.identity else { return Ok(Ok(None)) };
        let found = match self.while_leased(self.upstream.find(name, language)).await? {
            Ok(found) => found.filter(|it| !it.status.is_deleted()),
            Err(failure) => return Ok(Err(failure)),
        };
        let Some(found) = found else { return Ok(Ok(None)) };
        Ok(Ok(self.is_own(operation, &found).await?.then_some(found)))
    }
}

/// Whether a look is recent enough to rely on. One of the future is not: the clock was set back.
fn is_recent(observed_at: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..MAX_ROW_AGE).contains(&now.duration_since(observed_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_counts_for_a_minute_and_not_if_it_is_of_the_future() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let is_recent = |age: i64| super::is_recent(now - SignedDuration::from_millis(age), now);
        for (age, expected) in [(-1, false), (0, true), (59_999, true), (60_000, false)] {
            assert_eq!(is_recent(age), expected, "{age} ms");
        }
    }
}
