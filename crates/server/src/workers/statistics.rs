//! Reads the totals of the database that the metrics report, so that a scrape never does.

use std::time::Duration;

use crate::app::App;

/// Pause between two readings.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(15);

/// Reads the totals again and again.
pub(super) async fn run_metrics_sampler(app: App) {
    loop {
        sample_statistics(&app).await;
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}

/// Reads the totals once. After a failure, the metrics keep those of the last reading and its time.
pub async fn sample_statistics(app: &App) {
    match app.store().statistics().await {
        Ok(statistics) => app.metrics().record_statistics(app.clock().now(), statistics),
        Err(error) => tracing::warn!(
            %error,
            "the metrics about the store could not be read and are those of the last reading"
        ),
    }
}
