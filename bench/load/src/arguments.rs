//! The command line of the load generator.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Sends one kind of request over keep-alive connections as fast as they are answered.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// Where the server listens, as HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    pub url: String,
    /// Path of every request; in get mode an id is appended to it.
    #[arg(long)]
    pub path: String,
    /// What is sent.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Measured seconds.
    #[arg(long, default_value_t = 8.0)]
    pub seconds: f64,
    /// Seconds before the measurement begins.
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
    /// Ids for get mode, one a line.
    #[arg(long, value_name = "FILE")]
    pub ids: Option<PathBuf>,
    /// Where to write the ids of what was created, one a line.
    #[arg(long, value_name = "FILE")]
    pub ids_out: Option<PathBuf>,
    /// The status that every answer has to have (201 in create modes, otherwise 200).
    #[arg(long, value_name = "STATUS")]
    pub expect: Option<u16>,
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
    /// GET the path, with a random one of the ids appended when there are any.
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

    /// How many event loops to run, never more than there are connections.
    pub fn loops(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores / 2).clamp(1, self.connections.max(1))
    }
}
