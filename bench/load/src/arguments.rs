//! The command line of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Sends one kind of request over keep-alive connections as fast as they are answered.
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub struct Arguments {
    /// Where the server listens, as HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    pub url: String,
    /// Path of every request. `{id}` in it stands for one of the ids, which is otherwise appended.
    #[arg(long)]
    pub path: String,
    /// What is sent.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Measured seconds (8); with --requests, the most that all of them may take (600).
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Send so many requests, all of them measured, instead of sending for some seconds.
    #[arg(long, value_name = "COUNT")]
    pub requests: Option<u64>,
    /// Seconds before the measurement begins; none with --requests.
    #[arg(long, default_value_t = 1.0)]
    pub warmup: f64,
    /// Event loops; by default one for every two cores, which leaves the server the rest.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Bearer token.
    #[arg(long)]
    pub token: Option<String>,
    /// JSON document to send; create modes give it a new name each time.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// In create mode: another language, another category and other words each time.
    #[arg(long)]
    pub vary: bool,
    /// Ids for the path, one a line: random ones, or with --requests one after the other.
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// Where to write the ids of what was created, one a line.
    #[arg(long, value_name = "FILE")]
    pub ids_out: Option<PathBuf>,
    /// Where to write the names of what was created, one a line.
    #[arg(long, value_name = "FILE")]
    pub names_out: Option<PathBuf>,
    /// The status that every answer has to have (201 in create modes, otherwise 200).
    #[arg(long, value_name = "STATUS")]
    pub expect: Option<u16>,
    /// Process of the server, to say how much processor time each request took it.
    #[arg(long, value_name = "PID")]
    pub server: Option<u32>,
    /// Name of this measurement in the result.
    #[arg(long, default_value = "load")]
    pub label: String,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// The kinds of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// POST the document under a new random name.
    Create,
    /// The same with a new random Idempotency-Key.
    CreateIdempotent,
    /// POST the document as it is.
    Post,
    /// GET the path.
    Get,
}

impl Arguments {
    /// The status every answer has to have.
    pub fn expected(&self) -> u16 {
        self.expect.unwrap_or(match self.mode {
            Mode::Create | Mode::CreateIdempotent => 201,
            Mode::Post | Mode::Get => 200,
        })
    }

    /// The time that the requests have, without the warm-up.
    pub fn time(&self) -> Duration {
        let usual = if self.requests.is_some() { 600.0 } else { 8.0 };
        Duration::from_secs_f64(self.seconds.unwrap_or(usual))
    }

    /// The time before that. All of a certain number of requests count.
    pub fn warmup(&self) -> Duration {
        if self.requests.is_some() { Duration::ZERO } else { Duration::from_secs_f64(self.warmup) }
    }

    /// How many event loops to run, never more than there are connections.
    pub fn loops(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores / 2).clamp(1, self.connections.max(1))
    }
}
