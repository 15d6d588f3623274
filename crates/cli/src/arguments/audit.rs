//! The command that shows the audit feed.

use clap::Args;
use galley_domain::document::MAX_SAFE_INTEGER;

#[derive(Debug, Args)]
#[command(after_help = "\
With --json, each entry is one line: the same object as in the API, with the account's id.

Entries are kept forever. They contain no secrets.

Example:
  galley audit shop --limit 10")]
pub(crate) struct AuditOptions {
    /// Only this account, by name or id (default: all, and migrations of the store).
    pub(crate) account: Option<String>,
    /// Entries after this number, oldest first (default: 0, from the beginning).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MAX_SAFE_INTEGER))]
    pub(crate) after: Option<u64>,
    /// Maximum number of entries (default: all).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,
}
