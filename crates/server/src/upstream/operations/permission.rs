//! Whether a failure because of permissions is one of the account, or of a single call: a token may read
//! the account and, for example, not upload with the app of the connection.

use std::sync::PoisonError;

use galley_domain::upstream::{CallFailure, OperationKind, ProviderError};
use galley_store::DegradedReason;
use galley_upstream::{PageQuery, Upstream as _};
use jiff::SignedDuration;

use super::call::{not_looked_up, not_made};
use crate::upstream::session::{Session, SyncError};

/// How long it counts that the account could be read.
const MAX_ANSWER_AGE: SignedDuration = SignedDuration::from_mins(1);

impl Session {
    /// Asks for the account first if the provider did not accept the token the last time: one call, until
    /// it does.
    pub(in crate::upstream) async fn ask_after_rejection(&self) -> Result<(), SyncError> {
        let degraded = self.connection.degraded.as_ref();
        if degraded.is_none_or(|it| it.reason != DegradedReason::Credentials) {
            return Ok(());
        }
        match self.ask_account().await? {
            Ok(()) => self.recovered().await,
            Err(failure) => Err(self.failed(failure).await?),
        }
    }

    /// The failure of a call, or of what comes before it. If the account can be read, a lack of
    /// permissions is about this call only.
    pub(in crate::upstream) async fn attributed(
        &self,
        kind: OperationKind,
        failure: CallFailure,
    ) -> Result<CallFailure, SyncError> {
        match failure {
            // A create is refused as unknown if the token cannot see the account.
            CallFailure::Gone(error) if kind == OperationKind::Create => {
                self.attribute(error, CallFailure::Forbidden).await
            }
            // So is a call about the archive, or the provider does not offer it.
            CallFailure::Gone(error) if kind.is_archiving() => {
                self.attribute(error, CallFailure::Gone).await
            }
            failure => self.attributed_read(failure).await,
        }
    }

    /// The failure of a read. If the account can be read, a lack of permissions is about the template.
    pub(in crate::upstream) async fn attributed_read(
        &self,
        failure: CallFailure,
    ) -> Result<CallFailure, SyncError> {
        match failure {
            CallFailure::Credentials(error) => self.attribute(error, CallFailure::Forbidden).await,
            failure => Ok(failure),
        }
    }

    /// The failure `of_call` if the account can be read; otherwise that of the account.
    async fn attribute(
        &self,
        error: ProviderError,
        of_call: fn(ProviderError) -> CallFailure,
    ) -> Result<CallFailure, SyncError> {
        // The failure is that of the former token.
        if self.is_token_replaced().await? {
            return Ok(CallFailure::Credentials(error));
        }
        match (error.is_about_token(), self.was_readable()) {
            (false, true) => return Ok(of_call(error)),
            // Without a valid token, no answer is to be expected. If the account can be read all the
            // same, the next session learns it.
            (true, false) => return Ok(CallFailure::Credentials(error)),
            // The token may have become invalid just now.
            (true, true) | (false, false) => {}
        }
        Ok(match self.ask_account().await?.map_err(not_looked_up) {
            Ok(()) => of_call(error),
            Err(CallFailure::Credentials(_)) => CallFailure::Credentials(error),
            Err(failure) => not_made(failure),
        })
    }

    /// Whether the account could be read just now.
    fn was_readable(&self) -> bool {
        let readable_at = *self.readable_at.lock().unwrap_or_else(PoisonError::into_inner);
        readable_at.is_some_and(|at| self.now().duration_since(at) < MAX_ANSWER_AGE)
    }

    /// Reads the shortest page of the list: one call.
    async fn ask_account(&self) -> Result<Result<(), CallFailure>, SyncError> {
        let query = PageQuery { after: None, limit: 1, with_components: false };
        let asked = self.while_leased(self.upstream.page(query)).await?.map(drop);
        if asked.is_ok() {
            let now = Some(self.now());
            *self.readable_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
        Ok(asked)
    }
}
