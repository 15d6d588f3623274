//! Parses `postgres://` addresses, including the TLS settings that the driver does not support.

use std::{path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs},
};

/// The port of an address that names none.
const DEFAULT_PORT: &str = "5432";

/// Connect timeout for one host.
const HOST_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Statement timeout. The server enforces it; the client gives up slightly later.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Statement timeout of lists and searches.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long creates wait for an account or a name that another transaction has locked.
const CREATE_LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// Which server connections with TLS accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// Any: the server is not authenticated.
    None,
    /// One with a certificate for its host name, issued by an authority that the system trusts or by
    /// the one in this file.
    Full(Option<PathBuf>),
}

/// The address of a PostgreSQL database, with its connection settings.
#[derive(Clone, Debug)]
pub struct PostgresAddress {
    /// Settings for work without a deadline.
    pub(super) config: Config,
    pub(super) verification: Verification,
}

/// Why an address is invalid.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The scheme is not PostgreSQL's.
    #[error("a PostgreSQL address starts with postgres:// or postgresql://")]
    Scheme,
    /// `sslmode` has an unknown value.
    #[error("sslmode must be disable, prefer, require or verify-full, not {0:?}")]
    SslMode(String),
    /// `sslrootcert` is given with an `sslmode` that ignores it.
    #[error("sslrootcert requires sslmode=verify-full")]
    RootCertificate,
    /// The end of the password is ambiguous.
    #[error(
        "the address has an @ that does not end the password: in a name or a password, write %40 for @ and %3F for ?"
    )]
    At,
    /// The host is missing.
    #[error(
        "the address has no host; for a Unix socket use postgres:///DATABASE?host=/run/postgresql"
    )]
    NoHost,
    /// The driver refused the address.
    #[error("{0}")]
    Other(String),
}

impl From<tokio_postgres::Error> for AddressError {
    /// Uses the cause: the driver's own message does not say what is wrong.
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Self::Other(cause.unwrap_or_else(|| error.to_string()))
    }
}

impl FromStr for PostgresAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(AddressError::Scheme);
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        // The driver would take the text after the first @ for a host, and hosts are shown in logs.
        if base.matches('@').count() > 1 || query.contains('@') {
            return Err(AddressError::At);
        }
        let (mut mode, mut root, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root = Some(PathBuf::from(percent_decode(value))),
                _ => rest.push(pair),
            }
        }
        let (ssl_mode, verification) = match mode.unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Verification::None),
            "prefer" => (SslMode::Prefer, Verification::None),
            "require" => (SslMode::Require, Verification::None),
            "verify-full" => (SslMode::Require, Verification::Full(root.take())),
            other => return Err(AddressError::SslMode(other.to_owned())),
        };
        if root.is_some() {
            return Err(AddressError::RootCertificate);
        }
        let mut config: Config = format!("{base}?{}", rest.join("&")).parse()?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(AddressError::NoHost);
        }
        config.ssl_mode(ssl_mode);
        if config.get_application_name().is_none() {
            config.application_name("galley");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(HOST_CONNECT_TIMEOUT);
        }
        // Connect only to a primary: of several hosts, the one that accepts writes; for a single
        // name that follows failovers, never the standby that it briefly resolves to.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        // Detect hosts that vanish without closing the connection, unless the address overrides it.
        let is_unset = |name: &str| !rest.iter().any(|pair| pair.starts_with(name));
        if is_unset("keepalives") {
            config.keepalives_idle(Duration::from_secs(5));
            config.keepalives_interval(Duration::from_secs(2));
            config.keepalives_retries(3);
        }
        if is_unset("tcp_user_timeout") {
            config.tcp_user_timeout(Duration::from_secs(10));
        }
        config.load_balance_hosts(LoadBalanceHosts::Disable);
        Ok(Self { config, verification })
    }
}

/// Decodes percent escapes; leaves invalid ones as they are.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, following)) = rest.split_first() {
        let hex = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let byte = following.get(..2).filter(|_| *first == b'%').and_then(hex);
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { following.get(2..).unwrap_or_default() } else { following };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl PostgresAddress {
    /// Settings for statements with a deadline, which the server enforces, too.
    ///
    /// Every statement has an index. Sequential scans are disabled, because a plan from when a
    /// table was small would keep scanning it until the next ANALYZE. Where a sequential scan is
    /// the only plan, its cost looks high, so JIT compilation is disabled, too. Every search reads
    /// the pending list of the GIN index, so that list is kept short.
    pub(super) fn with_deadline(&self, deadline: Duration) -> Config {
        let millis = deadline.as_millis();
        let options = format!(
            "-c enable_seqscan=off -c jit=off -c gin_pending_list_limit=256kB \
             -c statement_timeout={millis} -c idle_in_transaction_session_timeout={millis}"
        );
        self.with_options(|given| format!("{given} {options}")).config
    }

    /// Settings for large statements whose best plan does not depend on their parameters: lists,
    /// searches and creates. Each connection plans them once.
    pub(super) fn generic_plan(&self, deadline: Duration) -> Config {
        let options = |given: &str| format!("{given} -c plan_cache_mode=force_generic_plan");
        self.with_options(options).with_deadline(deadline)
    }

    /// Settings for batches of creates. A short lock timeout keeps one create from delaying its
    /// whole batch. A `lock_timeout` in the address takes precedence.
    pub(super) fn for_creates(&self) -> Config {
        let millis = CREATE_LOCK_TIMEOUT.as_millis();
        let options = |given: &str| format!("-c lock_timeout={millis} {given}");
        self.with_options(options).generic_plan(STATEMENT_TIMEOUT)
    }

    /// Pins `synchronous_commit` for all connections. A later change of the database's setting, or
    /// a failover to a server with another one, does not weaken commits.
    pub(super) fn with_synchronous_commit(&self, synchronous_commit: &str) -> Self {
        self.with_options(|given| format!("{given} -c synchronous_commit={synchronous_commit}"))
    }

    /// The address with these options, made of those that it has.
    fn with_options(&self, options: impl FnOnce(&str) -> String) -> Self {
        let mut config = self.config.clone();
        let options = options(config.get_options().unwrap_or_default());
        config.options(options.trim());
        Self { config, verification: self.verification.clone() }
    }

    /// The address for display: user, hosts, ports and database, never the password.
    pub fn shown(&self) -> String {
        let config = &self.config;
        let user = config.get_user().map(|user| escaped(user) + "@").unwrap_or_default();
        let name = escaped(config.get_dbname().or(config.get_user()).unwrap_or_default());
        let ports: Vec<String> = config.get_ports().iter().map(ToString::to_string).collect();
        let mut has_sockets = false;
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => {
                has_sockets = true;
                path.display().to_string()
            }
        });
        let mut hosts: Vec<String> = hosts.collect();
        if has_sockets {
            let port =
                if ports.is_empty() { String::new() } else { format!("&port={}", ports.join(",")) };
            return format!("postgres://{user}/{name}?host={}{port}", hosts.join(","));
        }
        if hosts.is_empty() {
            hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        for (index, host) in hosts.iter_mut().enumerate() {
            // One port applies to all hosts.
            let port = ports.get(index).or(ports.first()).map_or(DEFAULT_PORT, String::as_str);
            *host = if host.contains(':') {
                format!("[{host}]:{port}")
            } else {
                format!("{host}:{port}")
            };
        }
        format!("postgres://{user}{}/{name}", hosts.join(","))
    }
}

/// Encodes the characters that separate the parts of an address.
fn escaped(text: &str) -> String {
    let escape = |it: char| match it {
        '%' | '/' | ':' | '?' | '@' | '#' | ' ' => format!("%{:02X}", u32::from(it)),
        it if it.is_control() => " ".to_owned(),
        it => it.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PostgresAddress, String> {
        text.parse().map_err(|error: AddressError| error.to_string())
    }

    #[test]
    fn every_tls_mode_is_parsed() {
        let root = Verification::Full(Some(PathBuf::from("/etc/my ca.pem")));
        for (query, verification, mode) in [
            ("", Verification::None, SslMode::Prefer),
            ("?sslmode=disable", Verification::None, SslMode::Disable),
            ("?sslmode=require&application_name=x", Verification::None, SslMode::Require),
            ("?sslmode=verify-full", Verification::Full(None), SslMode::Require),
            ("?sslrootcert=/etc/my%20ca.pem&sslmode=verify-full", root, SslMode::Require),
        ] {
            let address = parse(&format!("postgres://u:p@a.example/db{query}")).unwrap();
            assert_eq!(address.verification, verification, "{query}");
            assert_eq!(address.config.get_ssl_mode(), mode, "{query}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_hint() {
        for (text, hint) in [
            ("mysql://a/db", "postgres://"),
            ("postgres://a/db?sslmode=verify-ca", "verify-full"),
            ("postgres://a/db?sslmode=require&sslrootcert=x", "requires sslmode=verify-full"),
            ("postgres://a/db?odd=1", "odd"),
            ("postgres:///db", "?host=/"),
            ("postgres://u@/db?port=5433", "?host=/"),
        ] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains(hint), "{text}: {refusal}");
        }
        for host in ["host=/run/postgresql", "host=a", "hostaddr=127.0.0.1"] {
            parse(&format!("postgres://u@/db?{host}")).unwrap();
        }
    }

    #[test]
    fn no_part_of_a_password_is_taken_for_another_part_of_the_address() {
        for text in [
            "postgres://u:hush@hush@a/db",
            "postgres://u:x@hush/hush@a/db",
            "postgres://u:1?hush=hush@a/db",
            "postgres://a/db?user=u&password=hush@hush",
            "postgres://a?user=u@hush",
        ] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains("%40") && !refusal.contains("hush"), "{text}: {refusal}");
        }
        let address = parse("postgres://u%40a:p%40%3F/,@b:1,c:2/d%40e?password=p%40").unwrap();
        assert_eq!(address.shown(), "postgres://u%40a@b:1,c:2/d%40e");
    }

    #[test]
    fn a_connection_requires_the_host_that_accepts_writes() {
        let address = parse("postgres://u:secret@a:1,b:2,c:3/db").unwrap();
        let required = address.config.get_target_session_attrs();
        assert_eq!(required, TargetSessionAttrs::ReadWrite);
        assert_eq!(address.config.get_ports(), [1, 2, 3]);
    }

    #[test]
    fn an_address_is_shown_with_user_and_port_and_without_password() {
        for (text, shown) in [
            ("postgres://u:hush@a/db", "postgres://u@a:5432/db"),
            ("postgres://u:hush@a:1,b:2,c:3/db", "postgres://u@a:1,b:2,c:3/db"),
            ("postgres:///db?host=a&user=u&password=hush&port=6432", "postgres://u@a:6432/db"),
            ("postgres://u:hush@a:6000", "postgres://u@a:6000/u"),
            ("postgres://a/db", "postgres://a:5432/db"),
            ("postgres:///db?host=/run/pg&user=u&password=hush", "postgres://u@/db?host=/run/pg"),
            ("postgres://u@/db?host=/run/pg&port=5433", "postgres://u@/db?host=/run/pg&port=5433"),
            ("postgres://u@/db?hostaddr=::1", "postgres://u@[::1]:5432/db"),
            ("postgres://a%3Ab%2F:hush@h/d%3Fe", "postgres://a%3Ab%2F@h:5432/d%3Fe"),
        ] {
            let address = parse(text).unwrap();
            assert_eq!(address.shown(), shown);
            assert_eq!(parse(shown).unwrap().shown(), shown, "what is shown is an address again");
        }
    }

    #[test]
    fn a_deadline_is_added_to_the_options_of_the_address() {
        let address = parse("postgres://a/db?options=-c%20work_mem%3D8MB").unwrap();
        let config = address.with_deadline(Duration::from_secs(5));
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c work_mem=8MB -c "), "{options}");
        assert!(options.contains("-c statement_timeout=5000"), "{options}");
        assert_eq!(address.config.get_options(), Some("-c work_mem=8MB"));
        let pinned =
            address.with_synchronous_commit("remote_apply").with_deadline(STATEMENT_TIMEOUT);
        let options = pinned.get_options().unwrap();
        for option in ["work_mem=8MB", "synchronous_commit=remote_apply", "statement_timeout=5000"]
        {
            assert!(options.contains(&format!("-c {option}")), "{options}");
        }
    }
}
