//! Connects to the first of several hosts that is ready for statements, with a timeout for each
//! address. The driver's own timeout covers only the TCP connect, which succeeds on a frozen host.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, Error, config::Host};

use super::tls::Tls;

/// Maximum time to open a connection, over all hosts.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Tries the hosts in turn, starting with the one that last worked.
pub(super) struct FailoverConnector {
    hosts: Vec<Config>,
    pub(super) tls: Tls,
    /// Index of the host to try first.
    first: AtomicUsize,
}

impl FailoverConnector {
    pub(super) fn new(all: &Config, tls: &Tls) -> Self {
        let count = all.get_hosts().len().max(all.get_hostaddrs().len());
        let hosts = (0..count).map(|index| single_host(all, index)).collect();
        Self { hosts, tls: tls.clone(), first: AtomicUsize::new(0) }
    }

    /// Tries all hosts until one is ready or one reports an error. The caller sets the timeout.
    pub(super) async fn connect_any(&self) -> Result<(Client, JoinHandle<()>), Error> {
        loop {
            let (first, mut failed) = (self.first.load(Ordering::Relaxed), None);
            for offset in 0..self.hosts.len() {
                let index = (first + offset) % self.hosts.len();
                match self.connect_host(&self.hosts[index]).await {
                    Some(Ok(connected)) => {
                        self.first.store(index, Ordering::Relaxed);
                        return Ok(connected);
                    }
                    Some(Err(error)) => failed = Some(error),
                    None => {}
                }
                // If the caller times out now, the next attempt starts with the next host.
                self.first.store(index + 1, Ordering::Relaxed);
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    /// Tries all addresses of a host. `None` if none of them responded.
    async fn connect_host(&self, host: &Config) -> Option<Result<(Client, JoinHandle<()>), Error>> {
        let addresses = resolve(host, address_timeout(host, self.hosts.len(), 1)).await;
        let address_timeout = address_timeout(host, self.hosts.len(), addresses.len());
        let mut failed = None;
        for address in addresses {
            let mut one = host.clone();
            address.map(|address| one.hostaddr(address));
            match timeout(address_timeout, one.connect(self.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    let driver = tokio::spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "database connection closed");
                        }
                    });
                    return Some(Ok((client, driver)));
                }
                Ok(Err(error)) => failed = Some(Err(error)),
                Err(_) => {}
            }
        }
        failed
    }
}

/// Timeout for one address, short enough to try all addresses of all hosts within
/// [`CONNECT_TIMEOUT`].
fn address_timeout(host: &Config, hosts: usize, addresses: usize) -> Duration {
    let all = u32::try_from(hosts * addresses).unwrap_or(u32::MAX).max(1);
    host.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT).min(CONNECT_TIMEOUT / all)
}

/// Resolves the name of a host; `[None]` leaves it to the driver.
async fn resolve(host: &Config, limit: Duration) -> Vec<Option<IpAddr>> {
    let ([Host::Tcp(name)], []) = (host.get_hosts(), host.get_hostaddrs()) else {
        return vec![None];
    };
    match timeout(limit, tokio::net::lookup_host((name.as_str(), 0))).await {
        Ok(Ok(found)) => found.map(|it| Some(it.ip())).collect(),
        // The driver reports what is wrong with the name.
        Ok(Err(_)) | Err(_) => vec![None],
    }
}

/// The configuration for one of the hosts, copied setting by setting: the driver cannot remove
/// hosts.
fn single_host(all: &Config, index: usize) -> Config {
    let mut one = Config::new();
    let ports = all.get_ports();
    ports.get(index).or(ports.first()).map(|port| one.port(*port));
    all.get_hosts().get(index).map(|host| match host {
        Host::Tcp(name) => one.host(name),
        #[cfg(unix)]
        Host::Unix(path) => one.host_path(path),
    });
    all.get_hostaddrs().get(index).map(|address| one.hostaddr(*address));
    all.get_user().map(|user| one.user(user));
    all.get_password().map(|password| one.password(password));
    all.get_dbname().map(|name| one.dbname(name));
    all.get_options().map(|options| one.options(options));
    all.get_application_name().map(|name| one.application_name(name));
    all.get_connect_timeout().map(|time| one.connect_timeout(*time));
    all.get_tcp_user_timeout().map(|time| one.tcp_user_timeout(*time));
    all.get_keepalives_interval().map(|time| one.keepalives_interval(time));
    all.get_keepalives_retries().map(|times| one.keepalives_retries(times));
    one.keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .target_session_attrs(all.get_target_session_attrs());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_leaves_time_for_every_address_of_every_host() {
        let mut host = Config::new();
        host.connect_timeout(Duration::from_secs(1));
        assert_eq!(address_timeout(&host, 1, 1), Duration::from_secs(1));
        assert_eq!(address_timeout(&host, 5, 1), Duration::from_secs(1));
        assert_eq!(address_timeout(&host, 2, 5), CONNECT_TIMEOUT / 10);
        assert_eq!(
            address_timeout(host.connect_timeout(Duration::from_mins(1)), 2, 1),
            CONNECT_TIMEOUT / 2
        );
        assert_eq!(
            address_timeout(&host, 1, 0),
            CONNECT_TIMEOUT,
            "a name may resolve to no address"
        );
    }
}
