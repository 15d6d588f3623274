//! Where the database is: a `postgres://` address, with the settings of TLS that the driver does
//! not read itself.

use std::{path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use tokio_postgres::{
    Config,
    config::{LoadBalanceHosts, SslMode, TargetSessionAttrs},
};

use crate::StoreError;

/// How long one host may take to answer when a connection is made.
const CONNECT: Duration = Duration::from_secs(1);

/// How long a statement may take; the server ends it then, and the driver gives up a bit later.
pub(super) const STATEMENT: Duration = Duration::from_secs(5);

/// And how long a list or a search may.
pub(super) const LIST: Duration = Duration::from_secs(10);

/// How long creations wait for an account or a name that somebody else has locked.
const LOCKED: Duration = Duration::from_millis(500);

/// How a connection is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// It is not.
    Plain,
    /// Encrypted if the server can, whoever it is.
    Prefer,
    /// Encrypted, whoever it is.
    Require,
    /// Encrypted, and the server shows a certificate for the name it was called by, from
    /// whom the system trusts or from the authority in this file.
    VerifyFull(Option<PathBuf>),
}

/// Where the database is and how it is reached.
#[derive(Clone, Debug)]
pub struct PostgresAddress {
    config: Config,
    protection: Protection,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is no address of PostgreSQL.
    #[error("an address of PostgreSQL begins with postgres:// or postgresql://")]
    Scheme,
    /// `sslmode` has another word.
    #[error("sslmode is disable, prefer, require or verify-full, not {0:?}")]
    SslMode(String),
    /// `sslrootcert` stands beside an `sslmode` that does not look at it.
    #[error("sslrootcert counts with sslmode=verify-full only")]
    RootCertificate,
    /// It cannot be told where the password ends.
    #[error(
        "the address has an @ that does not end the password: an @ in a name or a password is written %40, and a ? is written %3F"
    )]
    At,
    /// It says nowhere where the database is.
    #[error("the address names no host; for a socket: postgres:///DATABASE?host=/run/postgresql")]
    NoHost,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<tokio_postgres::Error> for AddressError {
    /// The driver says what is wrong only in the cause.
    fn from(error: tokio_postgres::Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Self::Other(cause.unwrap_or_else(|| error.to_string()))
    }
}

impl From<AddressError> for StoreError {
    fn from(error: AddressError) -> Self {
        Self::Failed(Arc::new(error))
    }
}

impl FromStr for PostgresAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(AddressError::Scheme);
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        // The driver takes what is behind the first one for a host, and hosts are shown.
        if base.matches('@').count() > 1 || query.contains('@') {
            return Err(AddressError::At);
        }
        let (mut mode, mut root, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root = Some(PathBuf::from(decoded(value))),
                _ => rest.push(pair),
            }
        }
        let protection = match mode.unwrap_or("prefer") {
            "disable" => Protection::Plain,
            "prefer" => Protection::Prefer,
            "require" => Protection::Require,
            "verify-full" => Protection::VerifyFull(root.take()),
            other => return Err(AddressError::SslMode(other.to_owned())),
        };
        if root.is_some() {
            return Err(AddressError::RootCertificate);
        }
        let mut config: Config = format!("{base}?{}", rest.join("&")).parse()?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(AddressError::NoHost);
        }
        config.ssl_mode(match protection {
            Protection::Plain => SslMode::Disable,
            Protection::Prefer => SslMode::Prefer,
            Protection::Require | Protection::VerifyFull(_) => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("galley");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // Of several hosts the one that takes writes is meant; and of one, which may be a name that
        // follows a failover, not the moment in which it leads to a standby.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        // A host that vanishes without a word is noticed, unless the address says otherwise.
        let is_silent_about = |name: &str| !rest.iter().any(|pair| pair.starts_with(name));
        if is_silent_about("keepalives") {
            config.keepalives_idle(Duration::from_secs(5));
            config.keepalives_interval(Duration::from_secs(2));
            config.keepalives_retries(3);
        }
        if is_silent_about("tcp_user_timeout") {
            config.tcp_user_timeout(Duration::from_secs(10));
        }
        config.load_balance_hosts(LoadBalanceHosts::Disable);
        Ok(Self { config, protection })
    }
}

/// Takes percent signs back; what cannot be taken back stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let byte = others.get(..2).filter(|_| *first == b'%').and_then(hex);
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { others.get(2..).unwrap_or_default() } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl PostgresAddress {
    pub(super) fn protection(&self) -> &Protection {
        &self.protection
    }

    /// For statements that have a deadline; the server ends those that go on, too.
    ///
    /// Every statement has its index. A plan that was made while a table was small would walk it
    /// whole when it is not, until the table is next analysed: such plans are not made. Where there
    /// is no other, the server takes it for a costly one, and would compile the statement first.
    /// What waits to be put in order in the index of words is gone through by every search: that is
    /// not to be much.
    pub(super) fn hurried(&self, deadline: Duration) -> Config {
        let millis = deadline.as_millis();
        let hurried = self.with_options(&format!(
            "-c enable_seqscan=off -c jit=off -c gin_pending_list_limit=256kB \
             -c statement_timeout={millis} -c idle_in_transaction_session_timeout={millis}"
        ));
        hurried.config
    }

    /// For statements that are large, and best done the same way whatever their values are: lists,
    /// searches and creations. They are planned once on each connection.
    pub(super) fn planned_once(&self, deadline: Duration) -> Config {
        self.with_options("-c plan_cache_mode=force_generic_plan").hurried(deadline)
    }

    /// Creations go together: what one of them waits for the others wait for, too. Whoever wants them
    /// to wait longer says so in the address, and that counts.
    pub(super) fn for_creations(&self) -> Config {
        let mut config = self.config.clone();
        let given = config.get_options().unwrap_or_default();
        let options = format!("-c lock_timeout={} {given}", LOCKED.as_millis());
        config.options(options.trim());
        Self { config, protection: self.protection.clone() }.planned_once(STATEMENT)
    }

    /// The same, with commits that wait for what they wait for now, whatever becomes of the settings
    /// of the database, or of another that takes its place: what a connection asks for outranks them.
    pub(super) fn committing_as(&self, synchronous_commit: &str) -> Self {
        self.with_options(&format!("-c synchronous_commit={synchronous_commit}"))
    }

    fn with_options(&self, more: &str) -> Self {
        let mut config = self.config.clone();
        let given = config.get_options().unwrap_or_default();
        let options = format!("{given} {more}");
        config.options(options.trim());
        Self { config, protection: self.protection.clone() }
    }

    /// For work that takes as long as it takes.
    pub(super) fn patient(&self) -> Config {
        self.config.clone()
    }

    /// Where it is, without anything secret, for people.
    pub fn shown(&self) -> String {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host).collect();
        let name = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("postgres://{}/{name}", hosts.join(","))
    }
}

fn host(host: &tokio_postgres::config::Host) -> String {
    match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PostgresAddress, String> {
        text.parse().map_err(|error: AddressError| error.to_string())
    }

    #[test]
    fn every_way_to_protect_a_connection_is_read() {
        let root = Protection::VerifyFull(Some(PathBuf::from("/etc/my ca.pem")));
        for (query, protection, mode) in [
            ("", Protection::Prefer, SslMode::Prefer),
            ("?sslmode=disable", Protection::Plain, SslMode::Disable),
            ("?sslmode=require&application_name=x", Protection::Require, SslMode::Require),
            ("?sslmode=verify-full", Protection::VerifyFull(None), SslMode::Require),
            ("?sslrootcert=/etc/my%20ca.pem&sslmode=verify-full", root, SslMode::Require),
        ] {
            let address = read(&format!("postgres://u:p@a.example/db{query}")).unwrap();
            assert_eq!(address.protection, protection, "{query}");
            assert_eq!(address.config.get_ssl_mode(), mode, "{query}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (text, told) in [
            ("mysql://a/db", "postgres://"),
            ("postgres://a/db?sslmode=verify-ca", "verify-full"),
            ("postgres://a/db?sslmode=require&sslrootcert=x", "verify-full only"),
            ("postgres://a/db?odd=1", "odd"),
            ("postgres:///db", "?host=/"),
            ("postgres://u@/db?port=5433", "?host=/"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(told), "{text}: {refusal}");
        }
        for host in ["host=/run/postgresql", "host=a", "hostaddr=127.0.0.1"] {
            read(&format!("postgres://u@/db?{host}")).unwrap();
        }
    }

    #[test]
    fn no_part_of_a_password_is_taken_for_something_else() {
        for text in [
            "postgres://u:hush@hush@a/db",
            "postgres://u:x@hush/hush@a/db",
            "postgres://u:1?hush=hush@a/db",
            "postgres://a/db?user=u&password=hush@hush",
            "postgres://a?user=u@hush",
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains("%40") && !refusal.contains("hush"), "{text}: {refusal}");
        }
        let address = read("postgres://u%40a:p%40%3F/,@b:1,c:2/d%40e?password=p%40").unwrap();
        assert_eq!(address.shown(), "postgres://b,c/d@e");
    }

    #[test]
    fn of_several_hosts_the_one_that_takes_writes_is_meant() {
        let address = read("postgres://u:secret@a:1,b:2,c:3/db").unwrap();
        let wanted = address.config.get_target_session_attrs();
        assert_eq!(wanted, TargetSessionAttrs::ReadWrite);
        assert_eq!(address.config.get_ports(), [1, 2, 3]);
        assert_eq!(address.shown(), "postgres://a,b,c/db", "without the password");
    }

    #[test]
    fn a_deadline_is_added_to_the_options_that_are_given() {
        let address = read("postgres://a/db?options=-c%20work_mem%3D8MB").unwrap();
        let config = address.hurried(Duration::from_secs(5));
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c work_mem=8MB -c "), "{options}");
        assert!(options.contains("-c statement_timeout=5000"), "{options}");
        assert_eq!(address.patient().get_options(), Some("-c work_mem=8MB"));
        let kept = address.committing_as("remote_apply").hurried(STATEMENT);
        let options = kept.get_options().unwrap();
        for option in ["work_mem=8MB", "synchronous_commit=remote_apply", "statement_timeout=5000"]
        {
            assert!(options.contains(&format!("-c {option}")), "{options}");
        }
    }
}
