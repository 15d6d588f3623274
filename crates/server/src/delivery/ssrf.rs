//! Which addresses may be called. Whoever registers a webhook chooses where this service connects
//! to, and must not be able to reach with it what only this service can reach.
//!
//! A URL is judged by what the `url` crate makes of it, because that is what is called in the end.
//! A name is resolved here, once, and the connection goes to the addresses that were checked: a
//! second lookup could give others.

mod ranges;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use url::{Host, Url};

use super::resolve::Resolve;
use ranges::is_link_local;

pub use ranges::is_public;

/// A URL may have as many characters.
const MOST_CHARACTERS: usize = 2_000;

/// A name that has not been resolved after this long counts as unresolved.
const RESOLVE: Duration = Duration::from_secs(5);

/// Below this, ports other than 443 belong to services that are not receivers of webhooks.
const FIRST_FREE_PORT: u16 = 1_024;

/// What the operator decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Also http, addresses of any network, names of the local network, and every port.
    pub allow_private: bool,
}

/// Why an address is not called.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Longer than any receiver needs.
    #[error("The URL has more than {MOST_CHARACTERS} characters. Use a shorter one.")]
    TooLong,
    /// Readers of URLs disagree about these characters, or leave them out.
    #[error(
        "The URL contains white space, a control character or a backslash. Remove it or \
         percent-encode it."
    )]
    Characters,
    /// Cannot be read at all.
    #[error("This is not a URL: {0}. Use one like https://example.com/webhooks.")]
    NotAUrl(#[from] url::ParseError),
    /// Neither https nor, where that is allowed, http.
    #[error(
        "The URL must begin with https://. (For http://, the operator of this service can set \
         GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    Scheme,
    /// Something stands before an `@`.
    #[error(
        "The URL contains user information (before an @). Remove it; a receiver knows us by the \
         signature."
    )]
    UserInfo,
    /// Something stands after a `#`.
    #[error("The URL contains a fragment (after a #), which is never sent. Remove it.")]
    Fragment,
    /// No host at all.
    #[error("The URL has no host. Use one like https://example.com/webhooks.")]
    NoHost,
    /// An IP address in the place of a name, in whatever spelling.
    #[error(
        "The host is an IP address. Use a name. (For receivers without one, the operator of this \
         service can set GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    Literal,
    /// An address that means something on one wire only, where the machines of clouds also tell
    /// their secrets. No receiver has one, and nobody can allow it.
    #[error("The host has a link-local address. Use a receiver that is reached in another way.")]
    LinkLocal,
    /// A name that no name server can have.
    #[error(
        "The host is not a domain name: it needs labels of 1 to 63 letters, digits, hyphens and \
         underscores, 253 characters in all."
    )]
    NotAName,
    /// A name that means something only on the local network.
    #[error(
        "The host is a name of the local network. Use a public name such as hooks.example.com. \
         (For receivers nearby, the operator of this service can set \
         GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    LocalName,
    /// Port 0.
    #[error("Port 0 cannot be called. Leave the port out, or use the one the receiver listens on.")]
    PortZero,
    /// A port of some other service.
    #[error(
        "Port {0} is not allowed: use 443, or one from {FIRST_FREE_PORT} on. (For every port, the \
         operator of this service can set GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    Port(u16),
    /// The name has no address, or nobody said so in time.
    #[error("The name {0} could not be resolved. Check its spelling and its DNS records.")]
    Unresolved(String),
    /// An address of the name is not public. It is not told which: that is not for everybody.
    #[error(
        "The name {0} has an address that is not public. Let all its DNS records point to public \
         addresses. (For receivers nearby, the operator of this service can set \
         GALLEY_WEBHOOKS_ALLOW_PRIVATE=true.)"
    )]
    PrivateAddress(String),
}

/// A URL that may be called, and the only addresses to call it at.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// What was asked for.
    pub url: Url,
    /// Where its host is; never empty.
    pub addresses: Vec<SocketAddr>,
}

/// Decides at registration and again before each new connection: names move.
#[derive(Clone)]
pub struct Guard {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
}

impl Guard {
    /// A guard that asks `resolver` for addresses.
    pub fn new(rules: Rules, resolver: Arc<dyn Resolve>) -> Self {
        Self { rules, resolver }
    }

    /// What the operator has decided.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Checks the URL without resolving its name.
    ///
    /// This is what registration asks for where private receivers are allowed: every address would
    /// be good, and a receiver nearby may be started after it was registered. Elsewhere
    /// registration asks for [`Guard::admit`], so that a bad address is told to the person who
    /// enters it.
    pub fn check_form(&self, url: &str) -> Result<Url, Refused> {
        let parsed = read(url)?;
        check_scheme_and_port(&parsed, self.rules)?;
        match parsed.host() {
            None => return Err(Refused::NoHost),
            Some(Host::Domain(name)) => check_name(name, self.rules)?,
            Some(Host::Ipv4(ip)) => self.check_literal(ip.into())?,
            Some(Host::Ipv6(ip)) => self.check_literal(ip.into())?,
        }
        Ok(parsed)
    }

    /// Checks the URL, resolves its host, and checks every address found: with a single bad one
    /// the whole name is refused. Connect to nothing but the addresses given back.
    pub async fn admit(&self, url: &str) -> Result<Admitted, Refused> {
        let url = self.check_form(url)?;
        let port = url.port_or_known_default().ok_or(Refused::PortZero)?;
        let addresses = match url.host() {
            None => return Err(Refused::NoHost),
            Some(Host::Ipv4(ip)) => vec![SocketAddr::new(IpAddr::V4(ip), port)],
            Some(Host::Ipv6(ip)) => vec![SocketAddr::new(IpAddr::V6(ip), port)],
            Some(Host::Domain(name)) => self.addresses(name, port).await?,
        };
        Ok(Admitted { url, addresses })
    }

    fn check_literal(&self, ip: IpAddr) -> Result<(), Refused> {
        match ip {
            ip if is_link_local(ip) => Err(Refused::LinkLocal),
            _ if self.rules.allow_private => Ok(()),
            _ => Err(Refused::Literal),
        }
    }

    async fn addresses(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, Refused> {
        let unresolved = || Refused::Unresolved(name.to_owned());
        let lookup = tokio::time::timeout(RESOLVE, self.resolver.resolve(name, port)).await;
        let mut found = lookup.map_err(|_| unresolved())?.map_err(|_| unresolved())?;
        if found.is_empty() {
            return Err(unresolved());
        }
        if !self.rules.allow_private && found.iter().any(|it| !is_public(it.ip())) {
            return Err(Refused::PrivateAddress(name.to_owned()));
        }
        if found.iter().any(|it| is_link_local(it.ip())) {
            return Err(Refused::LinkLocal);
        }
        for address in &mut found {
            address.set_port(port);
        }
        Ok(found)
    }
}

/// The URL, if nothing in its text could be read in two ways.
fn read(text: &str) -> Result<Url, Refused> {
    if text.chars().count() > MOST_CHARACTERS {
        return Err(Refused::TooLong);
    }
    // Looked for before parsing, which leaves tabs and line ends out and turns backslashes round.
    if text.contains(|it: char| it.is_whitespace() || it.is_control() || it == '\\') {
        return Err(Refused::Characters);
    }
    let url = Url::parse(text)?;
    if has_user_info(text, &url) {
        return Err(Refused::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(Refused::Fragment);
    }
    Ok(url)
}

/// Parsing forgets an empty user, so the text is asked as well.
fn has_user_info(text: &str, url: &Url) -> bool {
    let authority = text.split_once("//").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || !url.username().is_empty() || url.password().is_some()
}

fn check_scheme_and_port(url: &Url, rules: Rules) -> Result<(), Refused> {
    match url.scheme() {
        "https" => {}
        "http" if rules.allow_private => {}
        _ => return Err(Refused::Scheme),
    }
    match url.port_or_known_default() {
        None | Some(0) => Err(Refused::PortZero),
        Some(port) if rules.allow_private || port == 443 || port >= FIRST_FREE_PORT => Ok(()),
        Some(port) => Err(Refused::Port(port)),
    }
}

/// A name comes lower-case and in ASCII from the parser; one dot at its end means the same name.
fn check_name(name: &str, rules: Rules) -> Result<(), Refused> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    let label = |it: &str| (1..=63).contains(&it.len()) && it.bytes().all(plain);
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(Refused::NotAName);
    }
    let local = match name.rsplit_once('.') {
        None => true,
        Some((_, last)) => matches!(last, "localhost" | "local" | "internal"),
    };
    if local && !rules.allow_private {
        return Err(Refused::LocalName);
    }
    Ok(())
}
