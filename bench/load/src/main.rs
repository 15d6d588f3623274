//! `load`: sends requests to one server and reports throughput and latency.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Instant;

use clap::Parser;
use load::arguments::Arguments;
use load::request::Plan;
use load::summary::{Summary, Tally, cpu_seconds};
use load::worker::{self, Task};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the load; returns whether every response had the expected status.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let plan = Plan::new(arguments)?;
    let address = arguments
        .url
        .to_socket_addrs()
        .map_err(|e| format!("{}: {e}", arguments.url))?
        .next()
        .ok_or("the URL resolves to no address")?;
    // Connecting is not measured: with a short accept queue it can take a second, which must not
    // count as warm-up.
    let streams: Vec<_> = (0..arguments.connections)
        .map(|_| worker::connect(address))
        .collect::<Result<_, _>>()
        .map_err(|e| format!("{address}: {e}"))?;
    let server_seconds = || arguments.server.map(|pid| cpu_seconds(&pid.to_string()));
    let (started, cpu, server) = (Instant::now(), cpu_seconds("self"), server_seconds());
    let from = started + arguments.warmup();
    let task = Task {
        address,
        plan: &plan,
        expected_status: arguments.expected_status(),
        record_ids: arguments.ids_out.is_some(),
        record_names: arguments.names_out.is_some(),
        requests: arguments.requests,
        sent: &AtomicU64::new(0),
        rate: arguments.rate_per_loop(),
        from,
        until: from + arguments.duration(),
    };
    let mut tally = run_loops(task, streams, arguments.loop_count())?;
    let elapsed = started.elapsed().as_secs_f64();
    let load_cores = (cpu_seconds("self") - cpu) / elapsed;
    let server = server_seconds().zip(server).map(|(after, before)| after - before);

    for (file, lines) in [(&arguments.ids_out, &tally.ids), (&arguments.names_out, &tally.names)] {
        let Some(file) = file else { continue };
        fs::write(file, lines).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let seconds =
        if arguments.requests.is_some() { elapsed } else { arguments.duration().as_secs_f64() };
    tally.count_missing(arguments.requests);
    let mut summary = Summary::new(arguments.label.clone(), seconds, load_cores, &mut tally);
    if let Some(server) = server {
        summary.set_server_time(server);
    }
    if arguments.json {
        println!("{}", serde_json::to_string(&summary).map_err(|e| e.to_string())?);
    } else {
        println!("{summary}");
    }
    if let Some(error) = &tally.first_error {
        eprintln!("load: {}: {error}", summary.label);
    }
    Ok(summary.is_clean())
}

/// Distributes the connections over `loops` threads and merges their tallies.
fn run_loops(task: Task<'_>, mut streams: Vec<TcpStream>, loops: usize) -> Result<Tally, String> {
    let share = streams.len().div_ceil(loops).max(1);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        while !streams.is_empty() {
            let rest = streams.split_off(share.min(streams.len()));
            let chunk = std::mem::replace(&mut streams, rest);
            threads.push(scope.spawn(move || worker::run(task, chunk)));
        }
        let mut total = Tally::default();
        for thread in threads {
            let tally = thread.join().map_err(|_| "a load generator thread panicked")?;
            total.merge(tally.map_err(|e| format!("{}: {e}", task.address))?);
        }
        Ok(total)
    })
}
