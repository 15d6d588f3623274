//! `load`: sends requests to one server for some seconds and says how fast they were answered.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use load::arguments::Arguments;
use load::request::Plan;
use load::summary::{Summary, Tally, cpu_seconds};
use load::worker::{self, Task};

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether every answer was the wanted one.
fn run(arguments: Arguments) -> Result<bool, String> {
    let plan = Plan::new(&arguments)?;
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
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let from = started + Duration::from_secs_f64(arguments.warmup);
    let task = Task {
        address,
        plan: &plan,
        expected: arguments.expected(),
        keep_ids: arguments.ids_out.is_some(),
        from,
        until: from + Duration::from_secs_f64(arguments.seconds),
    };
    let mut tally = run_loops(task, streams, arguments.loops())?;
    let load_cores = (cpu_seconds() - cpu) / started.elapsed().as_secs_f64();

    if let Some(file) = &arguments.ids_out {
        fs::write(file, &tally.ids).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let summary = Summary::new(arguments.label, arguments.seconds, load_cores, &mut tally);
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
