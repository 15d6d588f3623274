//! The commands on accounts, phone numbers and credentials.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use galley_domain::{rulebook::Rulebook, template::Review};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account with its first key and token.
    Create {
        /// Its name.
        name: String,
        /// A phone number id that it owns; may be repeated. Without one, it accepts any unclaimed id.
        #[arg(long = "phone", value_name = "ID")]
        phones: Vec<String>,
        /// The rulebook of its templates.
        #[arg(long, default_value = "v1",
            value_parser = PossibleValuesParser::new(Rulebook::ALL.iter().map(|it| it.name)))]
        rulebook: String,
        /// How its templates are reviewed.
        #[arg(long, default_value = "auto",
            ignore_case = true, value_parser = PossibleValuesParser::new(Review::CHOICES.iter().copied()))]
        review: String,
        #[command(flatten)]
        kind: EmulatorChoice,
        #[command(flatten)]
        secrets: AccountSecrets,
    },
    /// List all accounts.
    List,
    /// Show one account with its phone numbers and credentials.
    Show {
        /// Its name or id.
        account: String,
    },
    /// Set the limits of an account. Limits that are not named stay as they are.
    #[command(override_usage = "galley account limit [OPTIONS] <ACCOUNT> [TEMPLATES|none]")]
    Limit {
        /// Its name or id.
        account: String,
        #[command(flatten)]
        choice: AccountLimitChoice,
    },
    /// Give an account another name. Its id, credentials and templates stay.
    Rename {
        /// Its name or id.
        account: String,
        /// The new name.
        name: String,
    },
    /// Change the settings of an account.
    #[command(override_usage = "galley account change [OPTIONS] <ACCOUNT>")]
    Change {
        /// Its name or id.
        account: String,
        #[command(flatten)]
        change: AccountChange,
    },
    /// Delete a disabled account with its templates, credentials, webhooks and phone numbers.
    Delete {
        /// Its name or id.
        account: String,
        /// Delete it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Disable an account: its requests are refused.
    Disable {
        /// Its name or id.
        account: String,
    },
    /// Enable a disabled account.
    Enable {
        /// Its name or id.
        account: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct EmulatorChoice {
    /// Make it an emulator, which stands in for WhatsApp in tests, for ever: a script reviews its
    /// templates on a clock of its own. Needs --rulebook whatsapp.
    #[arg(long, conflicts_with = "review")]
    pub(crate) emulator: bool,
    /// Let the emulator also do what Meta does and Galley deliberately does not, with Meta's limits of
    /// a verified business (`galley account limit` changes them).
    #[arg(long, requires = "emulator")]
    pub(crate) faithful: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct AccountChange {
    /// How its templates are reviewed from now on: auto or manual. Pending versions stay pending.
    #[arg(long, value_name = "MODE")]
    pub(crate) review: Option<String>,
    /// Whether a token that has written none of the text which becomes live has to approve it. While
    /// it is on, only the operator creates tokens.
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    pub(crate) four_eyes: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct AccountLimitChoice {
    /// Maximum number of templates, with WhatsApp's other limits: 100 creates per hour, and 1 edit
    /// per day and 10 in 30 days of an approved template. WhatsApp's maximum is 250, or 6000 for a
    /// verified business. `none` removes all of them.
    #[arg(value_name = "TEMPLATES|none")]
    pub(crate) templates: Option<String>,
    /// Maximum number of requests per second, or `none`.
    #[arg(long, value_name = "N|none")]
    pub(crate) requests_per_second: Option<String>,
    /// Maximum number of bytes that all versions of its templates take, such as 20GiB; `none`, or
    /// `default` for 32GiB.
    #[arg(long, value_name = "SIZE|none|default")]
    pub(crate) stored_bytes: Option<String>,
    /// Maximum number of phone numbers that it claims; `none`, or `default` for 1000.
    #[arg(long, value_name = "N|none|default")]
    pub(crate) phone_numbers: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AccountSecrets {
    /// Use this API key instead of a random one. Other users can see it in the process list.
    #[arg(long, conflicts_with = "key_file")]
    pub(crate) key: Option<String>,
    /// Use the API key in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Use this access token instead of a random one. Other users can see it in the process list.
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) token: Option<String>,
    /// Use the access token in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PhoneCommand {
    /// Assign a phone number id to an account.
    Add {
        /// The account's name or id.
        account: String,
        /// The phone number id, as in the path.
        phone: String,
    },
    /// Take a phone number id from an account. Its templates stay; another account can claim the id.
    Remove {
        /// The account's name or id.
        account: String,
        /// The phone number id, as in the path.
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
    /// Create one. The secret is shown once.
    Create {
        /// The account's name or id.
        account: String,
        #[command(flatten)]
        choice: CredentialChoice,
    },
    /// List all of an account.
    List {
        /// The account's name or id.
        account: String,
    },
    /// Create a replacement and let the old one expire. The replacement expires when the old one
    /// would have expired.
    Rotate {
        /// The id of the old one.
        id: u64,
        /// How long the old one stays valid.
        #[arg(long, default_value = "24h", value_name = "TIME")]
        overlap: String,
        #[command(flatten)]
        choice: CredentialChoice,
    },
    /// Revoke one, immediately and permanently.
    Revoke {
        /// Its id.
        id: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CredentialChoice {
    /// What it is for, such as "nightly import"; lists, events and the audit feed show it (default:
    /// none; when rotating, that of the old one).
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Use this secret instead of a random one. Other users can see it in the process list.
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) secret: Option<String>,
    /// Use the secret in this file; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Scopes of a token, separated by commas: read, write, review, webhooks, credentials, audit,
    /// emulator, upstream (default: the first four; when rotating, those of the old one).
    #[arg(long, value_name = "LIST")]
    pub(crate) scopes: Option<String>,
    /// Lifetime, such as 90d or 12h (default: unlimited; when rotating, that of the old one).
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<String>,
}
