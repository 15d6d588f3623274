//! Accounts that are connected to a provider: the calls to it under a lease, and the mirror of what it
//! shows.

mod adopt;
mod ask;
mod budget;
mod metering;
mod operations;
mod pages;
mod preview;
mod reads;
mod refused_fields;
mod samples;
mod secrets;
mod session;
mod step;
mod sweep;
mod transport;
mod waker;

pub use ask::{Checked, Walked, check_token};
pub use galley_upstream::{CheckReport, Dialect, DialectError, TokenInfo};
pub(crate) use metering::metered;
pub use operations::SUBMISSION_WAIT;
pub use refused_fields::RefusedFields;
pub use samples::SampleSettings;
pub use secrets::{SealedSecret, SecretError, check_secrets};
pub use session::{Begun, Session, SyncError, UpstreamContext, UpstreamSettings};
pub use step::sync_connection;
pub use sweep::SweepPart;
pub use transport::{HttpTransport, Transports, name_provider_setting};
pub use waker::UpstreamWaker;
