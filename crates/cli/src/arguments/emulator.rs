//! The commands on emulator accounts.

use std::path::PathBuf;

use clap::Args;

/// Where `galley emulator` listens by default.
const LISTEN: &str = "127.0.0.1:8090";

#[derive(Debug, Args)]
pub(crate) struct EmulatorOptions {
    /// Address to listen on; port 0 chooses a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = LISTEN)]
    pub(crate) listen: String,
    /// Also do what Meta does and Galley deliberately does not, with Meta's limits.
    #[arg(long)]
    pub(crate) faithful: bool,
    /// Leave out Meta's limits of templates, creates and edits, for load tests.
    #[arg(long, requires = "faithful")]
    pub(crate) no_limits: bool,
    /// Create the templates in the *.json files of this directory, in the order of their names.
    #[arg(long, value_name = "DIR")]
    pub(crate) seed: Option<PathBuf>,
    /// Send webhooks to this URL once it has answered the verification request.
    #[arg(long, value_name = "URL", requires = "verify_token")]
    pub(crate) callback: Option<String>,
    /// The token that the receiver at the URL expects as `hub.verify_token`.
    #[arg(long, value_name = "TOKEN", requires = "callback")]
    pub(crate) verify_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClockOptions {
    /// The account's name or id.
    pub(crate) account: String,
    #[command(flatten)]
    pub(crate) change: ClockChangeOptions,
}

#[derive(Debug, Args)]
#[group(required = false, multiple = false)]
pub(crate) struct ClockChangeOptions {
    /// Move the clock forward by a duration such as 24h or 1h30m, and let it stand.
    #[arg(long, value_name = "DURATION")]
    pub(crate) advance: Option<String>,
    /// Move the clock forward to a time such as 2026-11-18T09:00:00Z, and let it stand.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Let the clock run on from where it stands.
    #[arg(long)]
    pub(crate) follow: bool,
}
