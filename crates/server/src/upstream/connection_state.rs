//! The state of a connection in one word.

use galley_store::UpstreamConnection;

/// The state of a connection: `paused`, `suspicious`, `degraded` or `connected`. A pause hides the
/// others, because no call is made.
pub fn connection_state(connection: &UpstreamConnection) -> &'static str {
    if connection.paused_at.is_some() {
        "paused"
    } else if connection.suspicious_at.is_some() {
        "suspicious"
    } else if connection.degraded.is_some() {
        "degraded"
    } else {
        "connected"
    }
}
