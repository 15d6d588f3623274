//! Connecting to one of several hosts. Each is asked for a limited time until it is ready for
//! statements: the driver limits only how long it takes until somebody listens, and a host that
//! stands still still listens.

use std::{
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use deadpool_postgres::Connect;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, Error, config::Host};

use super::tls::Tls;

/// How long a host may take when the address does not say.
const CONNECT: Duration = Duration::from_secs(1);

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
        let hosts = all.get_hosts().iter().enumerate();
        let hosts = hosts.map(|(place, host)| alone(all, host, place, port(place))).collect();
        Self { hosts, tls: tls.clone(), good: AtomicUsize::new(0) }
    }

    async fn any(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (first, mut failed) = (self.good.load(Ordering::Relaxed), None);
        for turn in 0..self.hosts.len() {
            let place = (first + turn) % self.hosts.len();
            let host = &self.hosts[place];
            let patience = host.get_connect_timeout().copied().unwrap_or(CONNECT);
            match timeout(patience, host.connect(self.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    self.good.store(place, Ordering::Relaxed);
                    let driven = tokio::spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "a connection to the database has ended");
                        }
                    });
                    return Ok((client, driven));
                }
                Ok(Err(error)) => failed = Some(error),
                Err(_) => {}
            }
        }
        match failed {
            Some(error) => Err(error),
            // Nobody has said anything, and so there is nothing to tell: the pool gives up.
            None => std::future::pending().await,
        }
    }
}

impl Connect for HostByHost {
    fn connect(&self, _: &Config) -> Pin<Box<Connecting<'_>>> {
        Box::pin(self.any())
    }
}

type Connecting<'a> = dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a;

/// The same with one of the hosts only. The driver cannot take a host away.
fn alone(all: &Config, host: &Host, place: usize, port: u16) -> Config {
    let mut one = Config::new();
    match host {
        Host::Tcp(name) => one.host(name),
        #[cfg(unix)]
        Host::Unix(path) => one.host_path(path),
    };
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
