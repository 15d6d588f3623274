//! What can be typed about events and webhooks.

use clap::{Args, Subcommand};
use galley_domain::{
    document::MAX_SAFE_INTEGER,
    template::lifecycle::EventType,
    webhook::{Format, delivery::DeliveryStatus},
};

#[derive(Debug, Args)]
#[command(after_help = "\
With --json each event is a line of its own: the object that the API and webhooks have, too.
--follow goes on until Ctrl-C.")]
pub(crate) struct EventsOptions {
    /// The account's name or id.
    pub(crate) account: String,
    /// Those behind the event of this number (default: the newest ones; with 0 the first ones).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MAX_SAFE_INTEGER))]
    pub(crate) after: Option<u64>,
    /// So many at most; with --follow: so many of the newest to begin with (default: 25).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,
    /// Go on with those that come.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Register an address that events are delivered to. Its secret is shown once.
    Add {
        /// The account's name or id.
        account: String,
        /// Where events are sent.
        url: String,
        /// Only this type of event (may be repeated); without it all.
        #[arg(long = "event", value_name = "TYPE", value_parser = event)]
        events: Vec<EventType>,
        /// How: galley, as the feed has them; or whatsapp, as Meta sends changes of templates.
        #[arg(long, default_value = Format::Galley.as_str(), value_parser = format)]
        format: Format,
        /// With the format whatsapp: what the receiver knows. The address is asked with it now.
        #[arg(long, value_name = "TOKEN")]
        verify_token: Option<String>,
        /// With the format whatsapp: the app secret that the receiver knows already.
        #[arg(long)]
        secret: Option<String>,
    },
    /// List those of an account.
    List {
        /// The account's name or id.
        account: String,
    },
    /// Show one.
    Show(Endpoint),
    /// Change its address or its types of event.
    Change {
        #[command(flatten)]
        endpoint: Endpoint,
        #[command(flatten)]
        what: EndpointChange,
    },
    /// Let a disabled one get events again, from where it was.
    Enable(Endpoint),
    /// Send it nothing for now.
    Disable(Endpoint),
    /// Take it away, with the list of its deliveries.
    Remove(Endpoint),
    /// Give it another secret, which is shown once. For 24 hours deliveries are signed with the
    /// former one, too; with the format whatsapp the new one counts alone, at once.
    Rotate {
        #[command(flatten)]
        endpoint: Endpoint,
        /// Also within 24 hours of the last time: the oldest secret ends at once.
        #[arg(long)]
        force: bool,
    },
    /// List what became of the events that were to be delivered, newest first.
    Deliveries {
        #[command(flatten)]
        endpoint: Endpoint,
        /// Only these: waiting, delivered or failed.
        #[arg(long, value_parser = delivery_status)]
        status: Option<DeliveryStatus>,
        /// Only those of events before this number.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MAX_SAFE_INTEGER))]
        before: Option<u64>,
        /// So many at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 25)]
        limit: usize,
    },
    /// Deliver events once more.
    Replay {
        #[command(flatten)]
        endpoint: Endpoint,
        #[command(flatten)]
        what: ReplayChoice,
    },
    /// Receive deliveries here and show them, for those who develop a receiver.
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
#[group(required = true, multiple = true)]
pub(crate) struct EndpointChange {
    /// Another address.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// With the format whatsapp: what the receiver knows. The address is asked with it now.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) verify_token: Option<String>,
    /// Only this type of event (may be repeated), in the place of those before.
    #[arg(long = "event", value_name = "TYPE", value_parser = event)]
    pub(crate) events: Vec<EventType>,
    /// All types of event.
    #[arg(long, conflicts_with = "events")]
    pub(crate) all_events: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ReplayChoice {
    /// The event of this number.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MAX_SAFE_INTEGER))]
    pub(crate) event: Option<u64>,
    /// Every event since then: a moment like 2026-11-15T09:30:00Z, or how long ago, like 2h.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListenOptions {
    /// Where to listen.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,
    /// The webhook's secret, to check signatures with (default: what the variable
    /// `GALLEY_WEBHOOK_SECRET` says).
    #[arg(long)]
    pub(crate) secret: Option<String>,
    /// What to know when asked, as endpoints with the format whatsapp are: who asks with this
    /// token gets the challenge back.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) verify_token: Option<String>,
    /// The status to answer with.
    #[arg(long, value_name = "STATUS", default_value_t = 200,
        value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) answer: u16,
}

fn event(word: &str) -> Result<EventType, String> {
    EventType::parse(word).ok_or_else(|| format!("one of {}", EventType::VALUES.join(", ")))
}

fn format(word: &str) -> Result<Format, String> {
    Format::parse(word).ok_or_else(|| format!("one of {}", Format::VALUES.join(", ")))
}

fn delivery_status(word: &str) -> Result<DeliveryStatus, String> {
    DeliveryStatus::parse(word)
        .ok_or_else(|| format!("one of {}", DeliveryStatus::VALUES.join(", ")))
}
