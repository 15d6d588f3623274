//! The command line: commands, flags and their help.

mod accounts;
mod audit;
mod files;
mod webhooks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use galley_domain::{rulebook::Category, template::Status};

pub(crate) use accounts::{
    AccountChange, AccountCommand, AccountLimitChoice, AccountSecrets, CredentialChoice,
    CredentialCommand, PhoneCommand,
};
pub(crate) use audit::AuditOptions;
pub(crate) use files::{ConvertOptions, LintOptions};
pub(crate) use webhooks::{
    Endpoint, EndpointChange, EndpointSecrets, EventsOptions, ListenOptions, ReplayChoice,
    WebhookCommand,
};

/// A self-hosted message template service.
#[derive(Debug, Parser)]
#[command(name = "galley", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Settings file (default: galley.toml in the working directory, if it exists).
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The database: sqlite:PATH or `postgres://USER@HOST/DATABASE`. Set a URL with a password in
    /// `GALLEY_STORE`: other users can see arguments in the process list.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Override any setting; may be repeated.
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service.
    Serve {
        /// Address to listen on.
        #[arg(long, value_name = "HOST:PORT")]
        listen: Option<String>,
        /// Format of log lines: human or json.
        #[arg(long, value_name = "FORMAT")]
        log_format: Option<String>,
        /// Create an empty store even if an earlier one has left its search index behind.
        #[arg(long)]
        new_store: bool,
    },
    /// Manage accounts.
    #[command(subcommand)]
    Account(AccountCommand),
    /// Manage the phone numbers of accounts.
    #[command(subcommand)]
    Phone(PhoneCommand),
    /// Manage API keys, the credential in the path.
    #[command(subcommand)]
    Key(CredentialCommand),
    /// Manage access tokens, the credential in the Authorization header.
    #[command(subcommand)]
    Token(CredentialCommand),
    /// List and show templates.
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Review templates.
    #[command(subcommand)]
    Review(ReviewCommand),
    /// Show the events of an account.
    Events(EventsOptions),
    /// Show who changed accounts, credentials, phone numbers, webhooks and the store.
    Audit(AuditOptions),
    /// Manage webhook endpoints.
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Check template files offline and show every error and warning at its line.
    Lint(LintOptions),
    /// Convert template files from one rulebook to the other and report the differences.
    Convert(ConvertOptions),
    /// Show the effective settings and the source of each.
    Config,
    /// Check the store: schema version, settings, integrity, permissions, clock.
    Doctor {
        /// Confirm the present time after the clock has jumped ahead, so that retention continues.
        #[arg(long)]
        accept_clock: bool,
        /// Count the bytes that the templates of all accounts take, and correct wrong totals.
        #[arg(long)]
        count_bytes: bool,
    },
    /// Write a consistent copy of the store to a new file, also while the service runs.
    Backup {
        /// The file to create.
        path: PathBuf,
        /// Keep the copy even if some of its rows do not match their checksums.
        #[arg(long)]
        allow_damaged: bool,
    },
    /// Create a store from a backup.
    Restore(RestoreOptions),
    /// Copy a SQLite store into an empty PostgreSQL database.
    Migrate(MigrateOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// List the templates of an account, newest first.
    List {
        /// The account's name or id.
        account: String,
        #[command(flatten)]
        filter: TemplateFilter,
    },
    /// Show one template.
    Show {
        /// Its id.
        id: String,
        /// One of its versions (default: the newest).
        #[arg(long, value_name = "NUMBER")]
        version: Option<u64>,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct TemplateFilter {
    /// Only the template with this name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only templates with this status.
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Only templates of this category.
    #[arg(long, value_parser = category)]
    pub(crate) category: Option<Category>,
    /// Only templates in this language.
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// Maximum number of templates (default: 1000).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
}

fn status(value: &str) -> Result<Status, String> {
    Status::parse(value).ok_or_else(|| format!("expected one of {}", Status::VALUES.join(", ")))
}

fn category(value: &str) -> Result<Category, String> {
    Category::parse(value).ok_or_else(|| format!("expected one of {}", Category::VALUES.join(", ")))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List the templates that are waiting for a decision.
    List {
        /// Only this account, by name or id.
        account: Option<String>,
    },
    /// Approve the newest version.
    Approve(ReviewArguments),
    /// Reject the newest version; the version that was approved before stays live.
    Reject(ReviewArguments),
    /// Take a template out of use temporarily.
    Pause(ReviewArguments),
    /// End a pause.
    Resume(ReviewArguments),
    /// Take a template out of use permanently.
    Disable(ReviewArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArguments {
    /// The template's id.
    pub(crate) id: String,
    /// Only if this is its newest version.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u64>,
    /// The reason, for the author of the template.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The backup is checked first. An existing store is never overwritten, and leftover files of another
store beside it are refused: the message says how to move them away.

The store is then as it was when the backup was made; later writes are missing. Credentials that were
revoked later are valid again: revoke them once more. Pending deliveries are sent again.

Example:
  galley restore /backup/galley-2026-11-15.db --store sqlite:/var/lib/galley/galley.db

For PostgreSQL: restore its own backups with pg_restore. Move a backup of a SQLite store with
  galley migrate --from sqlite:/backup/galley-2026-11-15.db --to postgres://galley@db/galley")]
pub(crate) struct RestoreOptions {
    /// The backup.
    #[arg(required_unless_present = "from")]
    path: Option<PathBuf>,
    /// The backup, as a flag.
    #[arg(long, value_name = "PATH", conflicts_with = "path")]
    from: Option<PathBuf>,
    /// Restore the backup even if it is damaged.
    #[arg(long)]
    pub(crate) allow_damaged: bool,
}

impl RestoreOptions {
    /// The path of the backup.
    pub(crate) fn backup(&self) -> PathBuf {
        self.path.clone().or_else(|| self.from.clone()).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Stop the service first and start it with the new store afterwards: writes to the old store during the
copy would be missing. A file that is in use is refused, and it stays locked until the command ends.

If the command is interrupted, run it again: it continues where it stopped. Galley does not open the
target until all rows are copied and compared. A file written by `galley backup` works as well.

Use the same GALLEY_SECRET_KEY with the new store. The service rebuilds the search index when it starts.

Examples:
  galley migrate --from sqlite:/var/lib/galley/galley.db --to postgres://galley@db/galley
  GALLEY_STORE=postgres://galley:PASSWORD@db/galley galley migrate --from sqlite:galley.db

Exit code: 0 if everything is copied and equal, 1 otherwise.")]
pub(crate) struct MigrateOptions {
    /// The store to copy: sqlite:PATH.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The target: `postgres://USER@HOST/DATABASE` (default: the setting `store`, so that a password
    /// need not be typed).
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
}
