//! SSRF protection. A client that registers a webhook chooses where Galley connects to, and must not
//! reach services that only Galley can reach.
//!
//! The checks apply to the URL as parsed by the `url` crate, because Galley connects to the parsed
//! URL. A name is resolved once, and the connection uses the checked addresses: a second lookup
//! could return others (DNS rebinding).

mod ranges;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use galley_domain::id::AccountId;
use galley_store::{FairSlot, FairSlots, KeyShare};
use thiserror::Error;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use super::resolve::Resolve;
use ranges::is_metadata;

pub use ranges::is_public;

/// Maximum length of a URL in characters.
const MAX_URL_CHARS: usize = 2_000;

/// Time limit of a lookup.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of waiting for the slot of a lookup.
pub(crate) const MAX_SLOT_WAIT: Duration = Duration::from_secs(5);

/// Maximum concurrent lookups of a guard; the accounts share them. Each uses up to eight sockets per
/// name server while no response arrives.
const MAX_LOOKUPS: usize = 32;

/// Maximum addresses of each family to connect to. All addresses of a name are checked.
const MAX_ADDRESSES_PER_FAMILY: usize = 8;

/// Lowest allowed port besides 443. Lower ports belong to services that are not webhook receivers.
const MIN_PORT: u16 = 1_024;

/// The policy set by the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsrfPolicy {
    /// Also allows http, private addresses, local names and all ports. Does not allow the addresses
    /// of cloud metadata services.
    pub allow_private: bool,
}

/// Why Galley does not connect to a URL.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// The URL is too long.
    #[error("The URL has more than {MAX_URL_CHARS} characters. Use a shorter one.")]
    TooLong,
    /// URL parsers disagree about these characters, or drop them.
    #[error(
        "The URL contains whitespace, a control character or a backslash. Remove it or \
         percent-encode it."
    )]
    Characters,
    /// The text cannot be parsed.
    #[error("This is not a URL: {0}. Use one like https://example.com/webhooks.")]
    Unparsable(#[from] url::ParseError),
    /// The scheme is neither https nor, where allowed, http.
    #[error(
        "The URL must begin with https://. (For http://, the operator of this service can set \
         GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    Scheme,
    /// The URL contains user information before an `@`.
    #[error(
        "The URL contains user information (before an @). Remove it; receivers authenticate \
         Galley by the signature."
    )]
    UserInfo,
    /// The URL contains a fragment after a `#`.
    #[error("The URL contains a fragment (after a #), which is never sent. Remove it.")]
    Fragment,
    /// The URL has no host.
    #[error("The URL has no host. Use one like https://example.com/webhooks.")]
    NoHost,
    /// The host is an IP address, in any spelling.
    #[error(
        "The host is an IP address. Use a name. (For servers without one, the operator of this \
         service can set GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    IpAddress,
    /// The host is a link-local address or that of a cloud metadata service, in any spelling. The
    /// operator cannot allow them: receivers do not use them, and they reveal credentials.
    #[error(
        "The host is a link-local address or an address of a cloud metadata service. Use a \
         server with another address."
    )]
    MetadataAddress,
    /// The host is not a valid domain name.
    #[error(
        "The host is not a domain name: use labels of 1 to 63 letters, digits, hyphens and \
         underscores, with at most 253 characters in total."
    )]
    InvalidName,
    /// The name is only valid on the local network.
    #[error(
        "The host is a name of the local network. Use a public name such as hooks.example.com. \
         (For local servers, the operator of this service can set \
         GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    LocalName,
    /// The port is 0.
    #[error("Port 0 cannot be used. Omit the port, or use the one the server listens on.")]
    PortZero,
    /// The port is reserved for other services.
    #[error(
        "Port {0} is not allowed: use 443, or {MIN_PORT} and above. (For other ports, the \
         operator of this service can set GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    Port(u16),
    /// The name cannot be used. The message is the same for every cause, so that a client cannot
    /// find out which names exist in networks that only this service can query.
    #[error(
        "The name {name} could not be resolved to allowed addresses. Check its spelling and its DNS \
         records: all of them must point to public addresses. (For local servers, the operator of \
         this service can set GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    UnusableName {
        /// The name.
        name: String,
        /// The exact reason, which only the operator may learn.
        cause: NameCause,
    },
    /// No lookup was started, because others of the account take too long. The name has no fault.
    #[error(
        "The name was not resolved, because too many other names of this account are being resolved. \
         Try again in a few seconds."
    )]
    NoLookupSlot,
}

/// Why a name cannot be used, for the operator.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NameCause {
    /// The lookup failed or returned no address.
    #[error("the name could not be resolved")]
    Unresolved,
    /// The lookup took too long.
    #[error("the name could not be resolved within {RESOLVE_TIMEOUT:?}")]
    LookupTimeout,
    /// An address is not public.
    #[error("the name has an address that is not public")]
    PrivateAddress,
    /// An address is link-local or belongs to a cloud metadata service.
    #[error("the name has a link-local address or an address of a cloud metadata service")]
    MetadataAddress,
}

impl UrlError {
    /// What the message does not tell the client.
    pub fn hidden_cause(&self) -> Option<NameCause> {
        match self {
            Self::UnusableName { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}

/// A checked URL, and the only addresses to connect to.
#[derive(Clone, Debug)]
pub struct ResolvedTarget {
    /// The parsed URL.
    pub url: Url,
    /// The checked addresses of its host; never empty.
    pub addresses: Vec<SocketAddr>,
}

/// A slot for one lookup. A URL without a name needs none.
pub(super) struct LookupSlot(
    #[expect(dead_code, reason = "held until the lookup ends")] Option<FairSlot<AccountId>>,
);

/// Checks URLs at registration and again before each new connection, because names can move.
#[derive(Clone)]
pub struct SsrfGuard {
    policy: SsrfPolicy,
    resolver: Arc<dyn Resolve>,
    lookups: FairSlots<AccountId>,
}

impl SsrfGuard {
    /// Creates a guard that resolves names with `resolver`. Each guard has its own lookup slots.
    pub fn new(policy: SsrfPolicy, resolver: Arc<dyn Resolve>) -> Self {
        Self { policy, resolver, lookups: FairSlots::new(MAX_LOOKUPS, KeyShare::HalfOfFree) }
    }

    /// The policy set by the operator.
    pub fn policy(&self) -> SsrfPolicy {
        self.policy
    }

    /// Checks the URL without resolving its name.
    ///
    /// Registration uses this check if private receivers are allowed: nearly every address is allowed
    /// then, and a local receiver may start after its registration. Otherwise registration uses
    /// [`SsrfGuard::resolve`], so that the client learns of a bad address immediately.
    pub fn check_url(&self, url: &str) -> Result<Url, UrlError> {
        let parsed = parse_strict(url)?;
        check_scheme_and_port(&parsed, self.policy)?;
        match parsed.host() {
            None => return Err(UrlError::NoHost),
            Some(Host::Domain(name)) => check_name(name, self.policy)?,
            Some(Host::Ipv4(ip)) => self.check_literal(ip.into())?,
            Some(Host::Ipv6(ip)) => self.check_literal(ip.into())?,
        }
        Ok(parsed)
    }

    /// Checks the URL, resolves its host and checks every address. A single bad address rejects the
    /// whole name. Connect only to the returned addresses. `account` owns the URL: accounts share the
    /// lookup slots.
    pub async fn resolve(&self, account: AccountId, url: &str) -> Result<ResolvedTarget, UrlError> {
        let url = self.check_url(url)?;
        let slot = self.lookup_slot(account, &url).await?;
        self.resolve_in(slot, url, Instant::now() + RESOLVE_TIMEOUT).await
    }

    /// Waits for the slot of a lookup, for a limited time.
    pub(super) async fn lookup_slot(
        &self,
        account: AccountId,
        url: &Url,
    ) -> Result<LookupSlot, UrlError> {
        let Some(Host::Domain(_)) = url.host() else { return Ok(LookupSlot(None)) };
        let slot = timeout(MAX_SLOT_WAIT, self.lookups.acquire(account)).await;
        slot.map(|slot| LookupSlot(Some(slot))).map_err(|_| UrlError::NoLookupSlot)
    }

    /// Resolves the host of a checked URL and checks every address, by `deadline`.
    pub(super) async fn resolve_in(
        &self,
        _slot: LookupSlot,
        url: Url,
        deadline: Instant,
    ) -> Result<ResolvedTarget, UrlError> {
        let port = url.port_or_known_default().ok_or(UrlError::PortZero)?;
        let addresses = match url.host() {
            None => return Err(UrlError::NoHost),
            Some(Host::Ipv4(ip)) => vec![SocketAddr::new(IpAddr::V4(ip), port)],
            Some(Host::Ipv6(ip)) => vec![SocketAddr::new(IpAddr::V6(ip), port)],
            Some(Host::Domain(name)) => self.resolve_name(name, port, deadline).await?,
        };
        Ok(ResolvedTarget { url, addresses })
    }

    fn check_literal(&self, ip: IpAddr) -> Result<(), UrlError> {
        match ip {
            ip if is_metadata(ip) => Err(UrlError::MetadataAddress),
            _ if self.policy.allow_private => Ok(()),
            _ => Err(UrlError::IpAddress),
        }
    }

    async fn resolve_name(
        &self,
        name: &str,
        port: u16,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, UrlError> {
        let unusable = |cause| UrlError::UnusableName { name: name.to_owned(), cause };
        let deadline = deadline.min(Instant::now() + RESOLVE_TIMEOUT);
        let absolute;
        let host = if self.policy.allow_private || name.ends_with('.') {
            name
        } else {
            // A public name is complete. Search domains are for names of the local network.
            absolute = format!("{name}.");
            &absolute
        };
        let lookup = timeout_at(deadline, self.resolver.resolve(host, port)).await;
        let lookup = lookup.map_err(|_| unusable(NameCause::LookupTimeout))?;
        let mut found = lookup.map_err(|_| unusable(NameCause::Unresolved))?;
        if let Some(cause) = refusal(&found, self.policy) {
            return Err(unusable(cause));
        }
        let mut room = [MAX_ADDRESSES_PER_FAMILY; 2];
        found.retain_mut(|address| {
            address.set_port(port);
            let room = &mut room[usize::from(address.is_ipv6())];
            let has_room = *room > 0;
            *room = room.saturating_sub(1);
            has_room
        });
        Ok(found)
    }
}

/// Why the addresses of a name are refused, if they are. One bad address is enough.
fn refusal(addresses: &[SocketAddr], policy: SsrfPolicy) -> Option<NameCause> {
    if addresses.is_empty() {
        Some(NameCause::Unresolved)
    } else if addresses.iter().any(|it| is_metadata(it.ip())) {
        Some(NameCause::MetadataAddress)
    } else if !policy.allow_private && addresses.iter().any(|it| !is_public(it.ip())) {
        Some(NameCause::PrivateAddress)
    } else {
        None
    }
}

/// Parses a URL and rejects texts that parsers could interpret differently.
fn parse_strict(text: &str) -> Result<Url, UrlError> {
    if text.chars().count() > MAX_URL_CHARS {
        return Err(UrlError::TooLong);
    }
    // Check before parsing: the parser drops tabs and newlines and converts backslashes.
    if text.contains(|it: char| it.is_whitespace() || it.is_control() || it == '\\') {
        return Err(UrlError::Characters);
    }
    let url = Url::parse(text)?;
    if has_user_info(text, &url) {
        return Err(UrlError::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    Ok(url)
}

/// Also checks the text, because the parser drops empty user information.
fn has_user_info(text: &str, url: &Url) -> bool {
    let authority = text.split_once("//").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || !url.username().is_empty() || url.password().is_some()
}

fn check_scheme_and_port(url: &Url, policy: SsrfPolicy) -> Result<(), UrlError> {
    match url.scheme() {
        "https" => {}
        "http" if policy.allow_private => {}
        _ => return Err(UrlError::Scheme),
    }
    match url.port_or_known_default() {
        None | Some(0) => Err(UrlError::PortZero),
        Some(port) if policy.allow_private || port == 443 || port >= MIN_PORT => Ok(()),
        Some(port) => Err(UrlError::Port(port)),
    }
}

/// Checks a name. The parser has converted it to lower-case ASCII; one trailing dot is allowed.
fn check_name(name: &str, policy: SsrfPolicy) -> Result<(), UrlError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    let label = |it: &str| (1..=63).contains(&it.len()) && it.bytes().all(plain);
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(UrlError::InvalidName);
    }
    let local = match name.rsplit_once('.') {
        None => true,
        Some((_, last)) => matches!(last, "localhost" | "local" | "internal"),
    };
    if local && !policy.allow_private {
        return Err(UrlError::LocalName);
    }
    Ok(())
}
