//! One event loop: a thread that keeps one request under way on each of its connections.
//!
//! It works on the sockets directly, without a runtime or an HTTP client, because on a machine with
//! few cores whatever the load generator uses is taken from the server that it measures.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::request::{Plan, Request};
use crate::response;
use crate::summary::Tally;

/// How long to wait for requests that are under way when the time is up.
const GRACE: Duration = Duration::from_secs(10);

/// Failures after which a loop gives up instead of reconnecting for ever.
const MOST_ERRORS: u64 = 100;

/// What a loop has to do.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Where the server is.
    pub address: SocketAddr,
    /// What to send.
    pub plan: &'a Plan,
    /// The status that every answer has to have.
    pub expected: u16,
    /// Whether the ids of the answers are kept.
    pub keep_ids: bool,
    /// When the measured time begins.
    pub from: Instant,
    /// When the measured time ends.
    pub until: Instant,
}

struct Connection {
    stream: TcpStream,
    request: Request,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    sent: Instant,
    idle: bool,
}

/// A connection to the server.
pub fn connect(address: SocketAddr) -> io::Result<net::TcpStream> {
    let stream = net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Sends requests on the given connections until the time is up.
pub fn run(task: Task<'_>, streams: Vec<net::TcpStream>) -> io::Result<Tally> {
    let mut poll = Poll::new()?;
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::new();
    let mut busy = streams.len();
    let mut events = Events::with_capacity(busy.max(16));
    let mut open = Vec::with_capacity(busy);
    for (index, stream) in streams.into_iter().enumerate() {
        open.push(Connection::new(stream, &task, &poll, Token(index))?);
    }
    for connection in &mut open {
        connection.send(&task, &mut random)?;
    }
    while busy > 0 && tally.errors < MOST_ERRORS {
        let left = (task.until + GRACE).saturating_duration_since(Instant::now());
        if left.is_zero() {
            tally.errors += busy as u64;
            tally.complaint.get_or_insert_with(|| format!("{busy} requests were never answered"));
            break;
        }
        match poll.poll(&mut events, Some(left)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            let connection = &mut open[event.token().0];
            if let Err(error) = connection.advance(event, &task, &mut random, &mut tally) {
                tally.errors += 1;
                tally.complaint.get_or_insert_with(|| format!("connection: {error}"));
                let stream = connect(task.address)?;
                *connection = Connection::new(stream, &task, &poll, event.token())?;
                connection.send(&task, &mut random)?;
            }
            if connection.idle {
                connection.idle = false;
                busy -= 1;
            }
        }
    }
    Ok(tally)
}

impl Connection {
    fn new(stream: net::TcpStream, task: &Task<'_>, poll: &Poll, token: Token) -> io::Result<Self> {
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            request: task.plan.request(),
            written: 0,
            input: vec![0; 8192],
            filled: 0,
            sent: Instant::now(),
            idle: false,
        })
    }

    /// Begins a new request.
    fn send(&mut self, task: &Task<'_>, random: &mut fastrand::Rng) -> io::Result<()> {
        self.request.renew(task.plan, random);
        self.written = 0;
        self.filled = 0;
        self.sent = Instant::now();
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while let rest @ [_, ..] = &self.request.bytes()[self.written..] {
            match self.stream.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(
        &mut self,
        event: &Event,
        task: &Task<'_>,
        random: &mut fastrand::Rng,
        tally: &mut Tally,
    ) -> io::Result<()> {
        if event.is_writable() {
            self.flush()?;
        }
        if !event.is_readable() {
            return Ok(());
        }
        // One read takes a whole answer as a rule. Reading on until the socket is empty would cost
        // a second system call for each request and is not needed: after a complete answer nothing
        // more is due before the next request, and new bytes make a new event.
        loop {
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let Some(answer) =
                response::parse(&self.input[..self.filled]).map_err(io::Error::other)?
            else {
                if self.filled == self.input.len() {
                    self.input.resize(self.filled * 2, 0);
                }
                continue;
            };
            if answer.length != self.filled {
                return Err(io::Error::other("bytes after the end of an answer"));
            }
            let now = Instant::now();
            record(task, &answer, now, self.sent, tally);
            if now < task.until {
                return self.send(task, random);
            }
            self.idle = true;
            return Ok(());
        }
    }
}

fn record(
    task: &Task<'_>,
    answer: &response::Response<'_>,
    now: Instant,
    sent: Instant,
    tally: &mut Tally,
) {
    *tally.statuses.entry(answer.status).or_default() += 1;
    if answer.status != task.expected {
        tally.unexpected += 1;
        tally.complaint.get_or_insert_with(|| {
            let body = &answer.body[..answer.body.len().min(1000)];
            format!("status {}: {}", answer.status, String::from_utf8_lossy(body))
        });
    } else if task.keep_ids
        && let Some(id) = response::id(answer.body)
    {
        tally.ids.extend_from_slice(id);
        tally.ids.push(b'\n');
    }
    if now >= task.from && now < task.until {
        tally.latencies.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
    }
}
