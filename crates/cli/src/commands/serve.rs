//! `galley serve`: opens the store, listens, serves requests, and shuts down gracefully.

use std::{net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_server::{
    AccessLog, App, Clock as _, ConsoleAddress, Galley, Instance, LogWriter, Stop,
    workers::{self, WorkerOptions},
};
use galley_store::{
    Store,
    sqlite::{Acknowledge, SqliteOptions},
};
use tokio::{
    net::{TcpListener, TcpSocket},
    signal::unix::{SignalKind, signal},
};

use super::{first_run, plain_secrets};
use crate::{
    clock::SystemClock,
    secrets,
    settings::{RawSettings, Settings},
};

/// Time for workers to finish what is in progress after all requests are done.
const WORKER_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time to record the last use of credentials before the process ends.
const USE_RECORD_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn serve(
    settings: &Settings,
    raw: &RawSettings,
    new_store: bool,
    log: LogWriter,
) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    let service = OpenService::open(settings, raw, new_store).await?;
    let (address, now) = (service.address.to_string(), SystemClock::new().now());
    first_run::prepare(&service.store, settings, &address, now).await?;
    service.run(settings, log, stop).await
}

/// A service that listens and has opened its store, but does not process requests yet.
pub(super) struct OpenService {
    listener: TcpListener,
    health: Option<TcpListener>,
    pub(super) address: SocketAddr,
    pub(super) store: Arc<Store>,
}

impl OpenService {
    pub(super) async fn open(
        settings: &Settings,
        raw: &RawSettings,
        new_store: bool,
    ) -> anyhow::Result<Self> {
        let listener = listen(&settings.listen, "--listen HOST:PORT").await?;
        let health = match &settings.health_listen {
            Some(address) => Some(listen(address, "--set health_listen=HOST:PORT").await?),
            None => None,
        };
        let address = listener.local_addr()?;
        let options = SqliteOptions {
            queue_capacity: settings.write_queue,
            acknowledge: acknowledge(raw),
            new_store,
            keeps_disk_reserve: true,
            ..SqliteOptions::default()
        };
        let created = super::file_to_create(settings);
        let store = super::open(settings, options).await?;
        if let Some(file) = created {
            tracing::info!("created the store {}", file.display());
        }
        for exposed in super::exposed_files(settings) {
            tracing::warn!("{exposed}");
        }
        Ok(Self { listener, health, address, store })
    }

    /// Processes requests until `stop` completes.
    pub(super) async fn run(
        self,
        settings: &Settings,
        log: LogWriter,
        stop: impl Future<Output = Stop> + Send + 'static,
    ) -> anyhow::Result<ExitCode> {
        let Self { listener, health, address, store } = self;
        tokio::spawn(plain_secrets::log(Arc::clone(&store), settings.webhooks.keyring.clone()));
        let access = AccessLog::new(log, settings.access_log);
        let limits = settings.limits.clone();
        let webhooks = settings.webhooks.context();
        let public_url = public_url(settings, address);
        let instance =
            Instance { id: secrets::instance()?, public_url, emulator: settings.emulator };
        let clock = Arc::new(SystemClock::new());
        let app_store = Arc::clone(&store);
        let keyring = settings.webhooks.keyring.clone();
        let upstream = settings.upstream.context(store, Arc::<SystemClock>::clone(&clock), keyring);
        let app = App::new(app_store, clock, limits, access, webhooks, instance);
        let options = WorkerOptions {
            events_kept: settings.webhooks.events_kept,
            deliver: settings.webhooks.deliver,
            emulator: settings.emulator,
            upstream: settings.upstream.sync.then_some(upstream),
        };
        let draining = workers::start(&app, options);
        tracing::info!(
            "listening on http://{address} with the store {}; the API is described at http://{address}/docs",
            settings.store
        );
        if let Some(health) = &health {
            let address = health.local_addr()?;
            tracing::info!("serving /healthz, /readyz and /metrics on http://{address}");
        }
        let console = match (settings.console, &*settings.public_url) {
            (false, _) => ConsoleAddress::None,
            (true, "") => ConsoleAddress::AnyHost,
            (true, _) => ConsoleAddress::PublicUrl,
        };
        let galley =
            Galley::new(app.clone()).with_console(console).with_cors(settings.cors_origins.clone());
        galley_server::serve(galley, listener, health, Box::pin(stop)).await?;
        // Deliveries that are still unconfirmed are repeated after the next start.
        let drained = async {
            for worker in draining {
                let _ = worker.await;
            }
        };
        let _ = tokio::time::timeout(WORKER_DRAIN_TIMEOUT, drained).await;
        // Otherwise the last minute before a stop would not count as a use.
        let record = workers::record_credential_use(&app);
        let _ = tokio::time::timeout(USE_RECORD_TIMEOUT, record).await;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// The public base URL: the setting, or the address of the listener.
fn public_url(settings: &Settings, address: SocketAddr) -> String {
    if !settings.public_url.is_empty() {
        return settings.public_url.clone();
    }
    if address.ip().is_unspecified() {
        tracing::warn!(
            "links in responses will use http://{address}, which clients cannot reach: \
             set `public_url` to the public address of the service"
        );
    }
    format!("http://{address}")
}

/// Binds a listener, or explains why it cannot. `flag` sets the address.
pub(super) async fn listen(wanted: &str, flag: &str) -> anyhow::Result<TcpListener> {
    let mut addresses = tokio::net::lookup_host(wanted)
        .await
        .with_context(|| format!("{wanted} cannot be resolved; set the address with {flag}"))?;
    let Some(address) = addresses.next() else {
        bail!("{wanted} has no address; set the address with {flag}")
    };
    bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{wanted} is already in use: choose another address with {flag}")
        }
        _ => anyhow::Error::from(error)
            .context(format!("cannot listen on {wanted}: choose another address with {flag}")),
    })
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // The kernel drops further connections, whose clients try again only after a second.
    socket.listen(4_096)
}

/// Completes with the first signal: SIGTERM and SIGHUP drain, SIGINT stops sooner. A second SIGTERM
/// or SIGINT ends the process immediately. A second SIGHUP does not: a closed terminal sends two.
pub(super) fn stop_signal() -> anyhow::Result<impl Future<Output = Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // `nohup` ignores the signal, and handling it would undo that.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut hangup =
        if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => {
                    let _ = hangup.recv().await;
                }
                None => std::future::pending().await,
            }
        };
        let (stop, signal) = tokio::select! {
            _ = terminate.recv() => (Stop::Drain, "SIGTERM"),
            () = hung_up => (Stop::Drain, "SIGHUP, which does not reload settings"),
            _ = interrupt.recv() => (Stop::Now, "SIGINT"),
        };
        tracing::info!("stopping after {signal}: waiting for running requests");
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(1);
        });
        stop
    })
}

/// Whether this process was started with SIGHUP ignored, according to Linux's status of a process.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// Release builds respond only after the commit. Tests can make debug builds respond before it, to
/// show that the kill harness detects the loss.
#[cfg(debug_assertions)]
fn acknowledge(raw: &RawSettings) -> Acknowledge {
    match raw.variable("GALLEY_TEST_ACKNOWLEDGE") {
        Some("before-commit") => Acknowledge::BeforeCommit,
        _ => Acknowledge::AfterCommit,
    }
}

#[cfg(not(debug_assertions))]
fn acknowledge(_: &RawSettings) -> Acknowledge {
    Acknowledge::AfterCommit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_the_lowest_bit_of_the_mask() {
        assert!(ignores_hangup("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        for other in ["SigIgn:\t0000000000001000\n", "SigBlk:\t0000000000000001\n", ""] {
            assert!(!ignores_hangup(other), "{other:?}");
        }
    }
}
