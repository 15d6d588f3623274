//! `load`: sends requests to one server for some seconds and says how fast they were answered.

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

/// Whether every answer was the wanted one.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let plan = Plan::new(arguments)?;
    let address = arguments
        .url
        .to_socket_addrs()
        .map_err(|e| format!("{}: {e}", arguments.url))?
        .next()
        .ok_or("the URL names no address")?;
    // Connecting is not measured: a server with a short queue of new connections can make it take
    // a second, and that second must not be taken from the warm-up.
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
        expected: arguments.expected(),
        keep_ids: arguments.ids_out.is_some(),
        keep_names: arguments.names_out.is_some(),
        requests: arguments.requests,
        sent: &AtomicU64::new(0),
        from,
        until: from + arguments.time(),
    };
    let mut tally = run_loops(task, streams, arguments.loops())?;
    let took = started.elapsed().as_secs_f64();
    let load_cores = (cpu_seconds("self") - cpu) / took;
    let server = server_seconds().zip(server).map(|(after, before)| after - before);

    for (file, lines) in [(&arguments.ids_out, &tally.ids), (&arguments.names_out, &tally.names)] {
        let Some(file) = file else { continue };
        fs::write(file, lines).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let seconds = if arguments.requests.is_some() { took } else { arguments.time().as_secs_f64() };
    tally.expect_all(arguments.requests);
    let mut summary = Summary::new(arguments.label.clone(), seconds, load_cores, &mut tally);
    if let Some(server) = server {
        summary.share_out(server);
    }
    if arguments.json {
        println!("{}", serde_json::to_string(&summary).map_err(|e| e.to_string())?);
    } else {
        println!("{summary}");
    }
    if let Some(complaint) = &tally.complaint {
        eprintln!("load: {}: {complaint}", summary.label);
    }
    Ok(summary.clean())
}

/// Shares the connections out to `loops` threads and adds up what they saw.
fn run_loops(task: Task<'_>, mut streams: Vec<TcpStream>, loops: usize) -> Result<Tally, String> {
    let share = streams.len().div_ceil(loops).max(1);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        while !streams.is_empty() {
            let rest = streams.split_off(share.min(streams.len()));
            let mine = std::mem::replace(&mut streams, rest);
            threads.push(scope.spawn(move || worker::run(task, mine)));
        }
        let mut total = Tally::default();
        for thread in threads {
            let tally = thread.join().map_err(|_| "a thread of the load generator panicked")?;
            total.merge(tally.map_err(|e| format!("{}: {e}", task.address))?);
        }
        Ok(total)
    })
}
