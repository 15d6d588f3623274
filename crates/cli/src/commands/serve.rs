//! `galley serve`: opens the store, listens, serves requests, and shuts down gracefully.

use std::{io::Write as _, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_server::{
    AccessLog, App, Clock as _, Galley, LogFormat, Stop, workers::run_delivery_scheduler,
};
use galley_store::sqlite::{Acknowledge, SqliteOptions};
use tokio::{
    net::{TcpListener, TcpSocket},
    signal::unix::{SignalKind, signal},
};

use super::first_run;
use crate::{
    clock::SystemClock,
    secrets,
    settings::{RawSettings, Settings},
};

/// Time for deliveries in progress to finish after all requests are done.
const DELIVERY_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn serve(settings: &Settings, raw: &RawSettings) -> anyhow::Result<ExitCode> {
    start_diagnostics(settings);
    let stop = stop_signal()?;
    let listener = listen(&settings.listen, "--listen HOST:PORT").await?;
    let health = match &settings.health_listen {
        Some(address) => Some(listen(address, "--set health_listen=HOST:PORT").await?),
        None => None,
    };
    let address = listener.local_addr()?;
    let schema_policy = SqliteOptions::default().schema_policy;
    let store =
        super::open(settings, settings.write_queue, acknowledge(raw), schema_policy).await?;
    let clock = Arc::new(SystemClock::new());
    let welcome = first_run::prepare(&*store, settings.bootstrap.as_ref(), clock.now()).await?;

    let access = if settings.access_log {
        AccessLog::new(settings.log_format, Box::new(std::io::stderr()))
    } else {
        AccessLog::off()
    };
    let limits = settings.limits.clone();
    let webhooks = settings.webhooks.context();
    let public_url = match &*settings.public_url {
        "" => {
            if address.ip().is_unspecified() {
                tracing::warn!(
                    "links in responses will use http://{address}, which clients cannot reach: \
                     set `public_url` to the public address of the service"
                );
            }
            format!("http://{address}")
        }
        url => url.to_owned(),
    };
    let instance = secrets::instance()?;
    let app = App::new(store, clock, limits, access, webhooks, instance, &public_url);
    // The workers hold the store open until the runtime shuts down.
    tokio::spawn(galley_server::workers::run_record_retention(app.clone()));
    tokio::spawn(galley_server::workers::run_search_indexer(app.clone()));
    tokio::spawn(galley_server::workers::run_event_poller(app.clone()));
    let kept = settings.webhooks.events_kept;
    tokio::spawn(galley_server::workers::run_event_retention(app.clone(), kept));
    let delivering =
        settings.webhooks.deliver.then(|| tokio::spawn(run_delivery_scheduler(app.clone())));
    tracing::info!(
        "listening on http://{address} with the store {}; the API is described at http://{address}/docs",
        settings.store
    );
    if let Some(health) = &health {
        let address = health.local_addr()?;
        tracing::info!("serving /healthz, /readyz and /metrics on http://{address}");
    }
    if let Some(welcome) = welcome {
        let shown = write!(std::io::stdout(), "{}", welcome.text(&address.to_string()));
        if shown.and_then(|()| std::io::stdout().flush()).is_err() {
            tracing::warn!(
                "the first key and token could not be shown: create new ones with `galley key create \
                 default` and `galley token create default`"
            );
        }
    }
    galley_server::serve(Galley::new(app), listener, health, stop).await?;
    if let Some(delivering) = delivering {
        // Deliveries that are still unconfirmed are repeated after the next start.
        let _ = tokio::time::timeout(DELIVERY_DRAIN_TIMEOUT, delivering).await;
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn start_diagnostics(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_max_level(settings.log_level)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Human => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
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
    socket.listen(1_024)
}

/// Completes with the first signal: SIGTERM drains, SIGINT stops sooner. A second signal ends the
/// process immediately.
fn stop_signal() -> anyhow::Result<impl Future<Output = Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let stop = tokio::select! {
            _ = terminate.recv() => Stop::Drain,
            _ = interrupt.recv() => Stop::Now,
        };
        tracing::info!("stopping: waiting for running requests");
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
