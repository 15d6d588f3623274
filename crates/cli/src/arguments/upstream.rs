//! The command line of connections to providers.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamCommand {
    /// Connect an account to a provider: Meta, or a service with the same API.
    #[command(
        override_usage = "galley upstream connect [OPTIONS] --base-url <URL> --waba <ID>\n       \
                          --token-file <FILE> <ACCOUNT>",
        after_help = "\
Prints the path for the provider's webhooks, once. Makes no call: `galley upstream check` does. While \
the account has approved templates that an import may end, the service waits for `galley upstream \
import`. If it has none, the service imports by itself, by default within 15 minutes \
(`upstream_sweep_interval`).

The token and the app secret are stored encrypted, so GALLEY_SECRET_KEY has to be set, for the \
service as well."
    )]
    Connect(ConnectOptions),
    /// Ask the provider for the account, and show what it says.
    Check(Connected),
    /// Read all templates at the provider with their content, and create those that the account lacks.
    #[command(after_help = "\
A template of the account loses its live version if the provider does not have it, or shows another \
content, status or category. If there are such templates, the import lists them and asks first, or \
needs --yes; otherwise it records nothing and exits with 1. With --dry-run, nothing is recorded, and \
the output also lists the errors that Galley's rules find.

With --yes, an import that was interrupted continues where it was.")]
    Import {
        #[command(flatten)]
        connected: Connected,
        /// Only show what an import would do.
        #[arg(long)]
        dry_run: bool,
        /// Import without asking, although approvals end.
        #[arg(long, conflicts_with = "dry_run")]
        yes: bool,
    },
    /// Make one sweep: look at all templates at the provider, and read those that have changed.
    Sync(Connected),
    /// Show the connection, its last sweeps, and how many templates differ.
    Status(Connected),
    /// List the templates at the provider, as the last sweeps showed them, with their source.
    Templates {
        #[command(flatten)]
        connected: Connected,
        /// Only those with this source, such as `AUTO_GENERATED`.
        #[arg(long, value_name = "WORD")]
        source: Option<String>,
    },
    /// Compare the account's templates with those at the provider, now. Records nothing.
    #[command(after_help = "\
States:
  same      content and category are equal
  drifted   content or category differ
  missing   only the account has the template
  unknown   only the provider has it

Templates that the provider generated are counted, not compared.

Exit code: 0 if all are the same, 1 if some differ, 2 if the provider could not be asked.")]
    Plan(Connected),
    /// Make the content that the provider has a new version of a drifted template.
    Accept(ConnectedTemplate),
    /// Queue the submission of a template that the provider does not have, or of all of them.
    #[command(
        override_usage = "galley upstream submit [OPTIONS] <ACCOUNT> <NAME> <LANGUAGE>\n       \
                          galley upstream submit [OPTIONS] --all <ACCOUNT>",
        after_help = "\
With --all, templates that wait for a reviewer are skipped, and so are those whose submission has \
failed: see `galley upstream status`."
    )]
    Submit {
        #[command(flatten)]
        connected: Connected,
        /// The name of the template.
        #[arg(required_unless_present = "all", requires = "language")]
        name: Option<String>,
        /// Its language, such as `en_US`.
        language: Option<String>,
        /// Submit all templates that were never submitted.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Queue the newest version of a template that is drifted or missing at the provider.
    Push(ConnectedTemplate),
    /// Take over the template that the provider has under this name, instead of an operation that is
    /// in conflict with it.
    #[command(after_help = "\
Reads the template at the provider now, and ends the operations of the template that were not made. \
The contents stay as they are: if they differ, the template is drifted, and `galley upstream accept` \
or `push` decides.")]
    Adopt(ConnectedTemplate),
    /// Stop all calls to the provider.
    Pause(Connected),
    /// End a pause, or the suspicion after a sweep that did not see many templates.
    #[command(override_usage = "galley upstream resume [OPTIONS] <ACCOUNT>")]
    Resume {
        #[command(flatten)]
        connected: Connected,
        /// The templates that the last sweep did not see may be gone: look at each of them.
        #[arg(long)]
        accept_missing: bool,
    },
    /// Replace the token, after a check that the provider accepts the new one.
    #[command(override_usage = "galley upstream token --token-file <FILE> <ACCOUNT>")]
    Token {
        #[command(flatten)]
        connected: Connected,
        /// The file with the new token; `-` for standard input.
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
    },
    /// Replace the app secret, with which calls are proved and webhooks are verified.
    #[command(override_usage = "galley upstream app-secret --app-secret-file <FILE> <ACCOUNT>")]
    AppSecret {
        #[command(flatten)]
        connected: Connected,
        /// The file with the app secret; `-` for standard input.
        #[arg(long, value_name = "FILE")]
        app_secret_file: PathBuf,
    },
    /// Create another path for the provider's webhooks. The old one no longer works.
    Hook(Connected),
    /// Delete the connection and what is known of the provider. The templates stay.
    Disconnect {
        #[command(flatten)]
        connected: Connected,
        /// Disconnect it without asking.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Connected {
    /// The account's name or id.
    pub(crate) account: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectedTemplate {
    #[command(flatten)]
    pub(crate) connected: Connected,
    /// The name of the template.
    pub(crate) name: String,
    /// Its language, such as `en_US`.
    pub(crate) language: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectOptions {
    /// The account's name or id. Its rulebook has to be whatsapp.
    pub(crate) account: String,
    /// The provider's API with its version, such as
    /// `https://graph.facebook.com/v23.0`.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: String,
    /// The id of the WhatsApp Business Account at the provider.
    #[arg(long, value_name = "ID")]
    pub(crate) waba: String,
    /// The file with the access token; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// The file with the app secret, which proves calls and verifies webhooks; `-` for standard
    /// input.
    #[arg(long, value_name = "FILE")]
    pub(crate) app_secret_file: Option<PathBuf>,
    /// The id of the app at the provider.
    #[arg(long, value_name = "ID")]
    pub(crate) app_id: Option<String>,
}
