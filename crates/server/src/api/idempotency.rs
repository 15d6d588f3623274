//! The `Idempotency-Key` header, which makes a create safe to repeat.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use galley_domain::id::AccountId;
use galley_store::{CreateOutcome, Idempotency};
use sha2::{Digest, Sha256};

use super::problem::{Problem, ProblemKind};
use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Marks the stored response of an earlier request.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The values of the header. [`IdempotencyKey::for_request`] validates them, after the checks that
/// take precedence.
pub(crate) struct IdempotencyKey(Vec<Vec<u8>>);

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(header(&parts.headers)))
    }
}

fn header(headers: &HeaderMap) -> Vec<Vec<u8>> {
    headers.get_all(HEADER).into_iter().map(|key| key.as_bytes().to_vec()).collect()
}

impl IdempotencyKey {
    /// The key with a hash of its request. `operation` is the method and the path without the API
    /// key, so that a retry works across a rotation of the API key.
    pub(crate) fn for_request(
        self,
        operation: &[&str],
        body: &[u8],
    ) -> Result<Option<Idempotency>, Problem> {
        let [key] = &self.0[..] else {
            let detail = "The request has more than one Idempotency-Key header. Send only one.";
            let repeated = || Problem::of(ProblemKind::BadRequest).detail(detail);
            return if self.0.is_empty() { Ok(None) } else { Err(repeated()) };
        };
        if !(1..=255).contains(&key.len()) {
            let detail = "The Idempotency-Key must have 1 to 255 characters.";
            return Err(Problem::of(ProblemKind::BadRequest).detail(detail));
        }
        let mut payload = Sha256::new();
        for part in operation {
            payload.update(part.as_bytes());
            payload.update([0]);
        }
        payload.update(body);
        Ok(Some(Idempotency {
            key: truncate(Sha256::digest(key).into()),
            payload: truncate(payload.finalize().into()),
        }))
    }
}

/// The outcome of the earlier request with the same `Idempotency-Key`; otherwise rejects the
/// document. For valid documents the store checks the key when it creates the template.
pub(crate) async fn replay_or_reject(
    app: &App,
    account: AccountId,
    idempotency: Option<Idempotency>,
    rejection: Problem,
) -> Result<CreateOutcome, Problem> {
    let Some(Idempotency { key, payload }) = idempotency else { return Err(rejection) };
    let record = app.store().idempotency_record(account, key, app.clock().now()).await?;
    record.map(|record| record.outcome_for(payload)).ok_or(rejection)
}

/// The first bytes of a hash. They suffice to distinguish requests, and save space in the store.
fn truncate<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    *hash.first_chunk().expect("N is at most the length of the hash")
}
