//! The Idempotency-Key: the same request twice makes one thing.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};
use galley_store::Idempotency;
use sha2::{Digest, Sha256};

use super::problem::{Kind, Problem};
use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Says that an answer is that of an earlier request.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What the header says, if it is there. Judged by [`IdempotencyKey::with`], behind the checks
/// that come first.
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
    /// The key and the request it stands for. `operation` is the method and the path without
    /// its key, so that a rotated key does not make another request of it.
    pub(crate) fn with(
        self,
        operation: &[&str],
        body: &[u8],
    ) -> Result<Option<Idempotency>, Problem> {
        let [key] = &self.0[..] else {
            let detail = "There is more than one Idempotency-Key.";
            let many = || Problem::of(Kind::BadRequest).detail(detail);
            return if self.0.is_empty() { Ok(None) } else { Err(many()) };
        };
        if !(1..=255).contains(&key.len()) {
            let detail = "An Idempotency-Key has 1 to 255 characters.";
            return Err(Problem::of(Kind::BadRequest).detail(detail));
        }
        let mut payload = Sha256::new();
        for part in operation {
            payload.update(part.as_bytes());
            payload.update([0]);
        }
        payload.update(body);
        Ok(Some(Idempotency {
            key: head(Sha256::digest(key).into()),
            payload: head(payload.finalize().into()),
        }))
    }
}

/// As much of a hash as tells things apart, and no more: it is kept for every request.
fn head<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    *hash.first_chunk().expect("shorter than the hash")
}
