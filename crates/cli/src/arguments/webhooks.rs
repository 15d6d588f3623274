//! The command line of events and webhooks.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use galley_domain::{
    document::MAX_SAFE_INTEGER,
    template::lifecycle::EventType,
    webhook::{Format, delivery::DeliveryStatus},
};

use super::one_of;

#[derive(Debug, Args)]
#[command(after_help = "\
With --json, each event is one line: the same object as in the API and in webhooks.
--follow runs until Ctrl-C.")]
pub(crate) struct EventsOptions {
    /// The account's name or id.
    pub(crate) account: String,
    /// Events after this number (default: the newest events; 0 for the first ones).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MAX_SAFE_INTEGER))]
    pub(crate) after: Option<u64>,
    /// Maximum number of events; with --follow: how many of the newest to show first (default: 25).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,
    /// Keep showing new events.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Register an endpoint that events are delivered to. Its secret is shown once.
    Add {
        /// The account's name or id.
        account: String,
        /// The URL that events are sent to.
        url: String,
        /// Only events of this type; may be repeated (default: all types).
        #[arg(long = "event", value_name = "TYPE", ignore_case = true, value_parser = one_of(EventType::VALUES, EventType::parse))]
        events: Vec<EventType>,
        /// Payload format: galley, as in the event feed; or whatsapp, as in Meta's webhooks.
        #[arg(long, default_value = Format::Galley.as_str(),
            ignore_case = true, value_parser = one_of(Format::VALUES, Format::parse))]
        format: Format,
        #[command(flatten)]
        secrets: EndpointSecrets,
    },
    /// List the endpoints of an account.
    List {
        /// The account's name or id.
        account: String,
    },
    /// Show one endpoint.
    Show(Endpoint),
    /// Change the URL or the event types of an endpoint.
    #[command(override_usage = "galley webhook change [OPTIONS] <ACCOUNT> <ID>")]
    Change {
        #[command(flatten)]
        endpoint: Endpoint,
        #[command(flatten)]
        what: EndpointChange,
    },
    /// Enable a disabled endpoint; delivery continues where it stopped.
    Enable(Endpoint),
    /// Disable an endpoint: no events are sent to it.
    Disable(Endpoint),
    /// Delete an endpoint and its deliveries.
    Remove(Endpoint),
    /// Replace the secret; the new one is shown once. For 24 hours, deliveries are signed with both
    /// secrets; with the format whatsapp, only with the new one.
    Rotate {
        #[command(flatten)]
        endpoint: Endpoint,
        /// Rotate again within 24 hours; the oldest secret ends immediately.
        #[arg(long)]
        force: bool,
    },
    /// List the deliveries of an endpoint, newest first.
    Deliveries {
        #[command(flatten)]
        endpoint: Endpoint,
        /// Only deliveries with this status.
        #[arg(long, ignore_case = true, value_parser = one_of(DeliveryStatus::VALUES, DeliveryStatus::parse))]
        status: Option<DeliveryStatus>,
        /// Only deliveries of events before this number.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MAX_SAFE_INTEGER))]
        before: Option<u64>,
        /// Maximum number of deliveries.
        #[arg(long, value_name = "NUMBER", default_value_t = 25)]
        limit: usize,
    },
    /// Deliver events again.
    #[command(
        override_usage = "galley webhook replay <ACCOUNT> <ID> <--event <NUMBER>|--since <WHEN>>"
    )]
    Replay {
        #[command(flatten)]
        endpoint: Endpoint,
        #[command(flatten)]
        what: ReplayChoice,
    },
    /// Send a signed test event to an endpoint, now, and show its response. Changes nothing.
    #[command(after_help = "\
The test takes the path of a delivery: the same checks of the address, signature, headers and time \
limit. It is sent once, to a disabled endpoint, too, and leaves no trace in the event feed, the \
deliveries or the state of the endpoint.

The settings webhooks_allow_private and webhooks_timeout and GALLEY_SECRET_KEY have to be those of the \
service.

Exit code: 0 if the endpoint accepted the event with a status of 200 to 299, 1 otherwise.")]
    Test(Endpoint),
    /// Receive and show deliveries, to develop a receiver.
    Listen(ListenOptions),
}

#[derive(Debug, Args)]
pub(crate) struct Endpoint {
    /// The account's name or id.
    pub(crate) account: String,
    /// The webhook's id.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct EndpointSecrets {
    /// With the format whatsapp: the receiver's verify token. Galley verifies the URL with it
    /// before it stores the endpoint. Other users can see it in the process list.
    #[arg(long, value_name = "TOKEN", conflicts_with = "verify_token_file")]
    pub(crate) verify_token: Option<String>,
    /// The file with the verify token; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) verify_token_file: Option<PathBuf>,
    /// With the format whatsapp: the app secret that the receiver already has. Other users can see
    /// it in the process list.
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) secret: Option<String>,
    /// The file with the app secret; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct EndpointChange {
    /// The new URL.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// With the format whatsapp: the receiver's verify token. Galley verifies the URL with it
    /// before it stores the change. Other users can see it in the process list.
    #[arg(long, value_name = "TOKEN", conflicts_with = "verify_token_file")]
    pub(crate) verify_token: Option<String>,
    /// The file with the verify token; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) verify_token_file: Option<PathBuf>,
    /// Only events of this type; may be repeated. Replaces the previous types.
    #[arg(long = "event", value_name = "TYPE", ignore_case = true, value_parser = one_of(EventType::VALUES, EventType::parse))]
    pub(crate) events: Vec<EventType>,
    /// Events of all types.
    #[arg(long, conflicts_with = "events")]
    pub(crate) all_events: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ReplayChoice {
    /// The event of this number.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MAX_SAFE_INTEGER))]
    pub(crate) event: Option<u64>,
    /// Every event since this time, such as 2026-11-15T09:30:00Z, or this long ago, such as 2h.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListenOptions {
    /// Address to listen on.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,
    #[arg(
        long,
        conflicts_with = "secret_file",
        help = "\
        The webhook's secret, to verify signatures. Other users can see it in the process list \
        [env: GALLEY_WEBHOOK_SECRET]"
    )]
    pub(crate) secret: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "\
        The file with the webhook's secret; `-` for standard input [env: GALLEY_WEBHOOK_SECRET_FILE]"
    )]
    pub(crate) secret_file: Option<PathBuf>,
    /// The verify token of an endpoint with the format whatsapp: a verification request with this
    /// token gets its challenge back. Other users can see it in the process list.
    #[arg(long, value_name = "TOKEN", conflicts_with = "verify_token_file")]
    pub(crate) verify_token: Option<String>,
    /// The file with the verify token; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) verify_token_file: Option<PathBuf>,
    /// The status to respond with to verified deliveries; others get 401.
    #[arg(long, value_name = "STATUS", default_value_t = 200,
        value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) answer: u16,
}
