//! What can be typed.

mod webhooks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use galley_domain::rulebook::Rulebook;
use galley_domain::{rulebook::Category, template::Status};

pub(crate) use webhooks::{
    Endpoint, EndpointChange, EventsOptions, ListenOptions, ReplayChoice, WebhookCommand,
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

/// Flags that every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Settings file (default: galley.toml in the working directory, if it is there).
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where everything is kept: sqlite:PATH or `postgres://USER@HOST/DATABASE`.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Any setting of the settings file.
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service.
    Serve {
        /// Where to listen.
        #[arg(long, value_name = "HOST:PORT")]
        listen: Option<String>,
        /// How log lines are written: human or json.
        #[arg(long, value_name = "FORMAT")]
        log_format: Option<String>,
    },
    /// Make and look after accounts.
    #[command(subcommand)]
    Account(AccountCommand),
    /// Give phone numbers to accounts.
    #[command(subcommand)]
    Phone(PhoneCommand),
    /// API keys: the credential in the path.
    #[command(subcommand)]
    Key(CredentialCommand),
    /// Access tokens: the credential in the Authorization header.
    #[command(subcommand)]
    Token(CredentialCommand),
    /// Look at templates.
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Decide on templates.
    #[command(subcommand)]
    Review(ReviewCommand),
    /// Show what happened in an account, and what happens.
    Events(EventsOptions),
    /// Addresses that events are delivered to.
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Check template files without a service, and show every fault and warning in its line.
    Lint(LintOptions),
    /// Write template files of one rulebook as files of the other, and tell what that costs.
    Convert(ConvertOptions),
    /// Show the settings that count, and where each comes from.
    Config,
    /// Check the store: version, settings, integrity.
    Doctor,
    /// Write a consistent copy of the store to a new file; the service may go on.
    Backup {
        /// The file to make.
        path: PathBuf,
    },
    /// Make a store from a copy that `backup` has written.
    Restore(RestoreOptions),
    /// Copy a whole store from a SQLite file into an empty PostgreSQL database.
    Migrate(MigrateOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Make an account with its first key and token.
    Create {
        /// What to call it.
        name: String,
        /// A phone number id it owns (may be repeated); without one it takes any.
        #[arg(long = "phone", value_name = "ID")]
        phones: Vec<String>,
        /// The rules its documents are read by.
        #[arg(long, default_value = "v1")]
        rulebook: String,
        /// How its templates get approved: auto or manual.
        #[arg(long, default_value = "auto")]
        review: String,
        /// Take this API key instead of a random one.
        #[arg(long)]
        key: Option<String>,
        /// Take this access token instead of a random one.
        #[arg(long)]
        token: Option<String>,
    },
    /// List all accounts.
    List,
    /// Show one account with its phone numbers and credentials.
    Show {
        /// Its name or id.
        account: String,
    },
    /// Hold an account to the limits that WhatsApp sets, or to none: 100 creations an hour, so many
    /// templates, and of an approved one 1 edit a day and 10 in 30 days.
    Limit {
        /// Its name or id.
        account: String,
        /// How many templates it may have: 250, or 6000 as a verified business; `none` for no
        /// limits at all.
        #[arg(value_name = "TEMPLATES|none")]
        templates: String,
    },
    /// Shut an account out.
    Disable {
        /// Its name or id.
        account: String,
    },
    /// Let a disabled account in again.
    Enable {
        /// Its name or id.
        account: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PhoneCommand {
    /// Give a phone number id to an account.
    Add {
        /// The account's name or id.
        account: String,
        /// The phone number id, as it stands in the path.
        phone: String,
    },
    /// List the phone numbers of an account.
    List {
        /// The account's name or id.
        account: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Make one. Its secret is shown once.
    Create {
        /// The account's name or id.
        account: String,
        #[command(flatten)]
        choice: CredentialChoice,
    },
    /// List those of an account.
    List {
        /// The account's name or id.
        account: String,
    },
    /// Make a new one and let the old one run out.
    Rotate {
        /// The id of the old one.
        id: u64,
        /// How long the old one stays good.
        #[arg(long, default_value = "24h", value_name = "TIME")]
        overlap: String,
        #[command(flatten)]
        choice: CredentialChoice,
    },
    /// End one, now and for good.
    Revoke {
        /// Its id.
        id: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CredentialChoice {
    /// Take this secret instead of a random one.
    #[arg(long)]
    pub(crate) secret: Option<String>,
    /// What a token may do: read, write, review, webhooks, divided by commas (default: all; when
    /// rotating, those of the old one).
    #[arg(long, value_name = "LIST")]
    pub(crate) scopes: Option<String>,
    /// When it ends by itself: 90d, 12h (default: never).
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<String>,
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
    /// Only the one of this name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only those in this status.
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Only those of this category.
    #[arg(long, value_parser = category)]
    pub(crate) category: Option<Category>,
    /// Only those in this language.
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// So many at most (default: 1000).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
}

fn status(word: &str) -> Result<Status, String> {
    Status::parse(word).ok_or_else(|| format!("one of {}", Status::VALUES.join(", ")))
}

fn category(word: &str) -> Result<Category, String> {
    Category::parse(word).ok_or_else(|| format!("one of {}", Category::VALUES.join(", ")))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List what waits for a decision.
    List {
        /// Only of this account, by its name or id.
        account: Option<String>,
    },
    /// Let the newest version be sent.
    Approve(Verdict),
    /// Refuse the newest version; the one that was approved before stays live.
    Reject(Verdict),
    /// Take a template out of use for a while.
    Pause(Verdict),
    /// End a pause.
    Resume(Verdict),
    /// Take a template out of use for good.
    Disable(Verdict),
}

#[derive(Debug, Args)]
pub(crate) struct Verdict {
    /// The template's id.
    pub(crate) id: String,
    /// Only if this is its newest version.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u64>,
    /// Why, for whoever made the template.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The copy is checked first. A store that is there is never overwritten, and files beside it that
belonged to another one are refused: the message says how to move them away.

Everything is as it was when the copy was made. What was written later is gone. Credentials that
were revoked later are good again: revoke them once more. Deliveries that were waiting go out again.

Example:
  galley restore /backup/galley-2026-11-15.db --store sqlite:/var/lib/galley/galley.db

For PostgreSQL: its own copies go back with pg_restore, and a copy of a SQLite store is moved with
  galley migrate --from sqlite:/backup/galley-2026-11-15.db --to postgres://galley@db/galley")]
pub(crate) struct RestoreOptions {
    /// The copy.
    #[arg(required_unless_present = "from")]
    path: Option<PathBuf>,
    /// The same.
    #[arg(long, value_name = "PATH", conflicts_with = "path")]
    from: Option<PathBuf>,
}

impl RestoreOptions {
    /// The copy.
    pub(crate) fn backup(&self) -> PathBuf {
        self.path.clone().or_else(|| self.from.clone()).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Stop the service first, and start it with the new store afterwards: what it writes to the old one
meanwhile is not copied. A file that is in use is refused, and nobody can open it until this ends.

Ended at any moment, the same command goes on where it was. Until all is there and both sides were
compared, row by row, no galley opens the target. A copy made by `galley backup` is as good a source.

Give the new store the same GALLEY_SECRET_KEY. The service makes the search anew when it starts.

Examples:
  galley migrate --from sqlite:/var/lib/galley/galley.db --to postgres://galley@db/galley
  GALLEY_STORE=postgres://galley:PASSWORD@db/galley galley migrate --from sqlite:galley.db

Exit code: 0 when all is there and the same, 1 otherwise.")]
pub(crate) struct MigrateOptions {
    /// The store to copy: sqlite:PATH.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The database to fill: `postgres://USER@HOST/DATABASE` (default: the store of the settings, so
    /// that a password need not be typed).
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code: 0 without faults, 1 with faults, 2 when something cannot be read.
In a list of templates pointers begin with the place in the list: /0/name.
No two templates of one run may have the same name.")]
pub(crate) struct LintOptions {
    /// Files that hold a template document or a list of them, directories that hold such files
    /// (all *.json below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The rules to check by.
    #[arg(long, default_value = "v1", value_parser = rulebook)]
    pub(crate) rulebook: &'static Rulebook,
    /// Let warnings count as faults in the exit code.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Write annotations for GitHub Actions.
    #[arg(long, conflicts_with = "json")]
    pub(crate) github: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The document goes to standard output, the report to standard error.
Exit code: 0 when all is converted whole, 1 when something is lost or to be completed, 2 when
something is not converted: it cannot be read or written, or its own rulebook refuses it.")]
pub(crate) struct ConvertOptions {
    /// Files that hold a template document or a list of them, directories that hold such files
    /// (all *.json below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The rulebook that they are written for.
    #[arg(long, value_parser = rulebook)]
    pub(crate) from: &'static Rulebook,
    /// The rulebook to write them for.
    #[arg(long, value_parser = rulebook)]
    pub(crate) to: &'static Rulebook,
    /// Where to write the one document (default: standard output).
    #[arg(short, long, value_name = "FILE", conflicts_with = "output_dir")]
    pub(crate) output: Option<PathBuf>,
    /// The directory to write several documents to, each at the path it was named by.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) output_dir: Option<PathBuf>,
}

fn rulebook(name: &str) -> Result<&'static Rulebook, String> {
    let names = || Rulebook::ALL.iter().map(|rulebook| rulebook.name).collect::<Vec<_>>();
    Rulebook::by_name(name)
        .ok_or_else(|| format!("there are these rulebooks: {}", names().join(", ")))
}
