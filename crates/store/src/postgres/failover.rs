//! Connecting to one of several hosts. Each of their addresses is asked for a limited time until it is
//! ready for statements: the driver limits only how long it takes until somebody listens, and a host
//! that stands still still listens.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use deadpool_postgres::Connect;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, Error, config::Host};

use super::tls::Tls;

/// How long making a connection may take: there may be several hosts to ask.
pub(super) const CREATE: Duration = Duration::from_secs(5);

const PORT: u16 = 5432;

/// Asks the hosts one after the other, beginning with the one that was good the last time.
pub(super) struct HostByHost {
    hosts: Vec<Config>,
    tls: Tls,
    good: AtomicUsize,
}

impl HostByHost {
    pub(super) fn of(all: &Config, tls: &Tls) -> Self {
        let ports = all.get_ports();
        let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(PORT);
        let count = all.get_hosts().len().max(all.get_hostaddrs().len());
        let hosts = (0..count).map(|place| alone(all, place, port(place))).collect();
        Self { hosts, tls: tls.clone(), good: AtomicUsize::new(0) }
    }

    /// Goes on until a host is ready or one has said why it is not; whoever waits says for how long.
    pub(super) async fn any(&self) -> Result<(Client, JoinHandle<()>), Error> {
        loop {
            let (first, mut failed) = (self.good.load(Ordering::Relaxed), None);
            for turn in 0..self.hosts.len() {
                let place = (first + turn) % self.hosts.len();
                match self.ask(&self.hosts[place]).await {
                    Some(Ok(connected)) => {
                        self.good.store(place, Ordering::Relaxed);
                        return Ok(connected);
                    }
                    Some(Err(error)) => failed = Some(error),
                    None => {}
                }
                // Should we be given up meanwhile, the next to try begins with the next host.
                self.good.store(place + 1, Ordering::Relaxed);
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    /// Asks all addresses of a host. None if it has said nothing.
    async fn ask(&self, host: &Config) -> Option<Result<(Client, JoinHandle<()>), Error>> {
        let addresses = addresses(host, patience(host, self.hosts.len(), 1)).await;
        let patience = patience(host, self.hosts.len(), addresses.len());
        let mut failed = None;
        for address in addresses {
            let mut one = host.clone();
            address.map(|address| one.hostaddr(address));
            match timeout(patience, one.connect(self.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    let driven = tokio::spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "a connection to the database has ended");
                        }
                    });
                    return Some(Ok((client, driven)));
                }
                Ok(Err(error)) => failed = Some(Err(error)),
                Err(_) => {}
            }
        }
        failed
    }
}

/// How long one of so many addresses of one of so many hosts may take: so long that there is time
/// for all.
fn patience(host: &Config, hosts: usize, addresses: usize) -> Duration {
    let all = u32::try_from(hosts * addresses).unwrap_or(u32::MAX).max(1);
    host.get_connect_timeout().copied().unwrap_or(CREATE).min(CREATE / all)
}

/// The addresses that the name of a host stands for; none where the driver has to find out.
async fn addresses(host: &Config, patience: Duration) -> Vec<Option<IpAddr>> {
    let ([Host::Tcp(name)], []) = (host.get_hosts(), host.get_hostaddrs()) else {
        return vec![None];
    };
    match timeout(patience, tokio::net::lookup_host((name.as_str(), PORT))).await {
        Ok(Ok(found)) => found.map(|it| Some(it.ip())).collect(),
        // The driver says what is wrong with the name.
        Ok(Err(_)) | Err(_) => vec![None],
    }
}

impl Connect for HostByHost {
    fn connect(&self, _: &Config) -> Pin<Box<Connecting<'_>>> {
        Box::pin(self.any())
    }
}

type Connecting<'a> = dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a;

/// The same with one of the hosts only. The driver cannot take a host away.
fn alone(all: &Config, place: usize, port: u16) -> Config {
    let mut one = Config::new();
    all.get_hosts().get(place).map(|host| match host {
        Host::Tcp(name) => one.host(name),
        #[cfg(unix)]
        Host::Unix(path) => one.host_path(path),
    });
    all.get_hostaddrs().get(place).map(|address| one.hostaddr(*address));
    all.get_user().map(|user| one.user(user));
    all.get_password().map(|password| one.password(password));
    all.get_dbname().map(|name| one.dbname(name));
    all.get_options().map(|options| one.options(options));
    all.get_application_name().map(|name| one.application_name(name));
    all.get_connect_timeout().map(|time| one.connect_timeout(*time));
    all.get_tcp_user_timeout().map(|time| one.tcp_user_timeout(*time));
    all.get_keepalives_interval().map(|time| one.keepalives_interval(time));
    all.get_keepalives_retries().map(|times| one.keepalives_retries(times));
    one.port(port)
        .keepalives(all.get_keepalives())
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
    fn there_is_time_for_every_address_of_every_host() {
        let mut host = Config::new();
        host.connect_timeout(Duration::from_secs(1));
        assert_eq!(patience(&host, 1, 1), Duration::from_secs(1));
        assert_eq!(patience(&host, 5, 1), Duration::from_secs(1));
        assert_eq!(patience(&host, 2, 5), CREATE / 10);
        assert_eq!(patience(host.connect_timeout(Duration::from_mins(1)), 2, 1), CREATE / 2);
        assert_eq!(patience(&host, 1, 0), CREATE, "a name may stand for nothing");
    }
}
