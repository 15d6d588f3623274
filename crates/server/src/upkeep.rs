//! What the service does by itself: forgetting idempotency records that have run out.

use std::time::Duration;

use galley_store::Sweep;

use crate::App;

/// How long to rest between two steps of a sweep.
const BETWEEN_STEPS: Duration = Duration::from_millis(200);

/// How long to rest after a whole sweep.
const BETWEEN_SWEEPS: Duration = Duration::from_mins(15);

/// Sweeps for ever, a small step at a time. A failed step is tried again with the next.
pub async fn sweep_forever(app: App) {
    let mut sweep = Sweep::default();
    loop {
        match app.store().sweep(sweep, app.clock().now()).await {
            Ok(next) => sweep = next,
            Err(error) => tracing::warn!(%error, "idempotency records could not be swept"),
        }
        tokio::time::sleep(if sweep.at.is_some() { BETWEEN_STEPS } else { BETWEEN_SWEEPS }).await;
    }
}
