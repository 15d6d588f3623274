//! The command line of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Sends one kind of request over keep-alive connections, as fast as the server responds or at a
/// fixed rate.
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub struct Arguments {
    /// Address of the server, as HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    pub url: String,
    /// Path of every request. `{id}` in it is replaced by an id; without `{id}`, the id is appended.
    #[arg(long)]
    pub path: String,
    /// Kind of request to send.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Number of connections, each with one request in flight.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Measured seconds (default 8); with --requests, the time limit for all of them (default 600).
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Send this number of requests and measure all of them, instead of sending for a fixed time.
    #[arg(long, value_name = "COUNT")]
    pub requests: Option<u64>,
    /// Send this number of requests per second, whatever the server does, instead of one on each
    /// connection as soon as the response before has arrived. A latency then begins at the time at
    /// which the request was due, even if no connection was free.
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "requests")]
    pub rate: Option<f64>,
    /// Warm-up seconds before the measurement; ignored with --requests.
    #[arg(long, default_value_t = 1.0)]
    pub warmup: f64,
    /// Number of event loops; by default one per two cores, which leaves the rest to the server.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Bearer token.
    #[arg(long)]
    pub token: Option<String>,
    /// JSON document to send; create modes give it a new name in each request.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// In create mode: use a random language, category and words in each request.
    #[arg(long)]
    pub vary: bool,
    /// File with ids for the path, one per line; chosen at random, or in order with --requests.
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// Write the ids of created templates to this file, one per line.
    #[arg(long, value_name = "FILE")]
    pub ids_out: Option<PathBuf>,
    /// Write the names of created templates to this file, one per line.
    #[arg(long, value_name = "FILE")]
    pub names_out: Option<PathBuf>,
    /// Expected status of every response (default: 201 in create modes, otherwise 200).
    #[arg(long, value_name = "STATUS")]
    pub expect: Option<u16>,
    /// Process id of the server, to report its CPU time per request.
    #[arg(long, value_name = "PID")]
    pub server: Option<u32>,
    /// Label of this measurement in the result.
    #[arg(long, default_value = "load")]
    pub label: String,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// Kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// POST the document under a new random name.
    Create,
    /// Like `create`, with a new random Idempotency-Key.
    CreateIdempotent,
    /// POST the document unchanged.
    Post,
    /// GET the path.
    Get,
}

impl Arguments {
    /// Expected status of every response.
    pub fn expected_status(&self) -> u16 {
        self.expect.unwrap_or(match self.mode {
            Mode::Create | Mode::CreateIdempotent => 201,
            Mode::Post | Mode::Get => 200,
        })
    }

    /// Duration of the measurement, without the warm-up.
    pub fn duration(&self) -> Duration {
        let default = if self.requests.is_some() { 600.0 } else { 8.0 };
        Duration::from_secs_f64(self.seconds.unwrap_or(default))
    }

    /// Duration of the warm-up. There is none when the number of requests is fixed.
    pub fn warmup(&self) -> Duration {
        if self.requests.is_some() { Duration::ZERO } else { Duration::from_secs_f64(self.warmup) }
    }

    /// Number of event loops, at most one per connection.
    pub fn loop_count(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores / 2).clamp(1, self.connections.max(1))
    }

    /// Requests per second of each event loop, if the rate is fixed.
    pub fn rate_per_loop(&self) -> Option<f64> {
        let loops = u32::try_from(self.loop_count()).unwrap_or(u32::MAX);
        self.rate.map(|rate| rate / f64::from(loops))
    }
}
