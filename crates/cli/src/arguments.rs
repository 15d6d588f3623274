//! The command line: commands, flags and their help.

mod accounts;
mod audit;
mod emulator;
mod files;
mod store_copies;
mod upstream;
mod webhooks;

use std::path::PathBuf;

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;
use galley_domain::{rulebook::Category, template::Status};
use galley_store::CONSOLE_LINK_TOKEN_NAME;

pub(crate) use accounts::{
    AccountChange, AccountCommand, AccountLimitChoice, AccountSecrets, CredentialChoice,
    CredentialCommand, EmulatorChoice, PhoneCommand,
};
pub(crate) use audit::AuditOptions;
pub(crate) use emulator::{ClockOptions, EmulatorOptions};
pub(crate) use files::{ConvertOptions, LintOptions};
pub(crate) use store_copies::{BackupOptions, MigrateOptions, RestoreOptions};
pub(crate) use upstream::{ConnectOptions, Connected, ConnectedTemplate, UpstreamCommand};
pub(crate) use webhooks::{
    Endpoint, EndpointChange, EndpointSecrets, EventsOptions, ListenOptions, ReplayChoice,
    WebhookCommand,
};

use crate::terminal;

/// A self-hosted message template service.
#[derive(Debug, Parser)]
#[command(
    name = "galley",
    version,
    about,
    max_term_width = 100,
    styles = terminal::HELP,
    after_help = "\
First steps:
  galley serve                  start with a new store in this directory
  galley account create shop    create an account on the same store
  galley config --default       print the settings file with all defaults

Environment: GALLEY_ and the name of any setting in upper case, such as GALLEY_LISTEN. NO_COLOR turns \
colours off."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The section of the help with the flags of every command.
const GLOBAL: &str = "Global options";

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL,
        help = "Settings file (default: galley.toml in the working directory, if it exists) \
                [env: GALLEY_CONFIG]")]
    pub(crate) config: Option<PathBuf>,
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL,
        help = "The database: sqlite:PATH or postgres://USER@HOST/DATABASE. Set a URL with a \
                password in the environment: other users can see arguments [env: GALLEY_STORE]")]
    pub(crate) store: Option<String>,
    #[arg(long = "set", global = true, value_name = "NAME=VALUE", help_heading = GLOBAL,
        help = "Override any setting; may be repeated. In the environment: GALLEY_NAME")]
    pub(crate) set: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service.
    #[command(after_help = "\
Environment: any setting, such as GALLEY_LISTEN, and these secrets. Each can also come from a file: \
append _FILE to the name and set it to the path.
  GALLEY_SECRET_KEY       encrypts the signing secrets of webhooks and the
                          tokens of providers at rest
  GALLEY_BOOTSTRAP_KEY    with GALLEY_BOOTSTRAP_TOKEN: the credentials of the
                          first account of an empty store

SIGTERM and SIGHUP drain and stop the service, SIGINT (Ctrl-C) stops it sooner. A restart applies new \
settings.")]
    Serve {
        #[arg(long, value_name = "HOST:PORT", help = "Address to listen on [env: GALLEY_LISTEN]")]
        listen: Option<String>,
        #[arg(long, value_name = "FORMAT", value_parser = ["human", "json"],
            help = "Format of log lines [env: GALLEY_LOG_FORMAT]")]
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
    /// Create a link that signs in to the console once, within 60 seconds.
    Console {
        /// The account's name or id.
        account: String,
        /// What the session permits: a list of scopes (default: read,write,review; for an emulator
        /// account also emulator, which the page Emulator needs).
        #[arg(long)]
        scopes: Option<String>,
        /// The name of the session's token, which versions, events and lists show.
        #[arg(long, default_value = CONSOLE_LINK_TOKEN_NAME)]
        name: String,
    },
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
    /// Connect accounts to a provider, such as Meta, and mirror its templates.
    #[command(subcommand)]
    Upstream(UpstreamCommand),
    /// Start a throw-away service that stands in for WhatsApp in tests.
    #[command(after_help = "\
Prints the address and the credentials when it is ready, as NAME=VALUE lines, or with --json as one \
line of JSON. The store is a temporary file, which is deleted at the end: SIGINT (Ctrl-C) or SIGTERM.

Environment: these variables choose what is random without them.
  GALLEY_EMULATOR_KEY              the API key
  GALLEY_EMULATOR_TOKEN            the access token
  GALLEY_EMULATOR_PHONE_NUMBER_ID  the phone number id
  GALLEY_EMULATOR_WABA_ID          the id of the WhatsApp Business Account
  GALLEY_EMULATOR_APP_SECRET       the secret that signs webhooks
Settings such as GALLEY_PUBLIC_URL apply, too; a settings file only with --config.

Webhooks may go to private addresses here, because the receiver is usually on this machine.")]
    Emulator(EmulatorOptions),
    /// Show or move the clock of an emulator account.
    Clock(ClockOptions),
    /// Check template files offline and show every error and warning at its line.
    Lint(LintOptions),
    /// Convert template files from one rulebook to the other and report the differences.
    Convert(ConvertOptions),
    /// Show the effective settings and the source of each.
    Config {
        /// Print the commented settings file with all defaults instead, as a start for a galley.toml.
        #[arg(long, conflicts_with = "json")]
        default: bool,
    },
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
    Backup(BackupOptions),
    /// Create a store from a backup.
    Restore(RestoreOptions),
    /// Copy a SQLite store into an empty PostgreSQL database.
    Migrate(MigrateOptions),
    /// Print a script that completes commands and flags in a shell.
    #[command(after_help = "\
Examples:
  galley completions bash > /etc/bash_completion.d/galley
  galley completions zsh > ~/.zfunc/_galley      (with ~/.zfunc in fpath)
  galley completions fish > ~/.config/fish/completions/galley.fish

Write the script again after an upgrade.")]
    Completions {
        /// The shell.
        shell: Shell,
    },
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
    #[arg(long, ignore_case = true, value_parser = one_of(Status::VALUES, Status::parse))]
    pub(crate) status: Option<Status>,
    /// Only templates of this category.
    #[arg(long, ignore_case = true, value_parser = one_of(Category::VALUES, Category::parse))]
    pub(crate) category: Option<Category>,
    /// Only templates in this language.
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// Maximum number of templates (default: 1000).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
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

/// Accepts one of these words. Help, errors and completions list them.
fn one_of<T: Clone + Send + Sync + 'static>(
    words: &[&'static str],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> + use<T> {
    PossibleValuesParser::new(words.iter().copied())
        .try_map(move |word| parse(&word).ok_or("there is no such value"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Arg, Command, CommandFactory as _};

    use super::*;

    #[test]
    fn the_usage_of_every_command_names_its_arguments() {
        let mut galley = Arguments::command();
        galley.build();
        check(&galley, "galley");
    }

    /// Some usages are written by hand, because the generated ones are hard to read.
    fn check(command: &Command, path: &str) {
        let usage = command.clone().render_usage().to_string();
        assert!(usage.starts_with(&format!("Usage: {path}")), "{usage}");
        let is_named = |name: &str| usage.contains(name);
        let value_names = |arg: &Arg| {
            let names = arg.get_value_names().unwrap_or_default();
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut known: BTreeSet<String> = ["OPTIONS", "COMMAND"].map(str::to_owned).into();
        for arg in command.get_arguments() {
            let names = value_names(arg);
            if arg.is_positional() {
                assert!(names.iter().all(|name| is_named(name)), "{usage}: {names:?}");
            }
            let long = arg.get_long().map(|long| format!("--{long}"));
            if let Some(long) = long.as_ref().filter(|_| arg.is_required_set()) {
                assert!(is_named(long), "{usage}: {long}");
            }
            known.extend(long);
            known.extend(names.iter().flat_map(|name| name.split('|')).map(str::to_owned));
        }
        let words = usage.trim_start_matches(&format!("Usage: {path}"));
        for word in words.split([' ', '<', '>', '[', ']', '|', '.', '\n']) {
            let is_name = word.starts_with("--") || word.starts_with(|it: char| it.is_uppercase());
            assert!(!is_name || known.contains(word), "{usage}: no argument is named {word}");
        }
        for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
            check(child, &format!("{path} {}", child.get_name()));
        }
    }
}
