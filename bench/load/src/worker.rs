//! One event loop: a thread that keeps one request under way on each of its connections.
//!
//! It works on the sockets directly, without a runtime or an HTTP client, because on a machine with
//! few cores whatever the load generator uses is taken from the server that it measures.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Whether the names of what was created are kept.
    pub keep_names: bool,
    /// How many requests all loops send together, if not as many as the time allows.
    pub requests: Option<u64>,
    /// How many they have sent.
    pub sent: &'a AtomicU64,
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
        busy -= usize::from(connection.idle);
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
            if connection.idle {
                continue;
            }
            if let Err(error) = connection.advance(event, &task, &mut random, &mut tally) {
                tally.errors += 1;
                tally.complaint.get_or_insert_with(|| format!("connection: {error}"));
                let stream = connect(task.address)?;
                *connection = Connection::new(stream, &task, &poll, event.token())?;
                connection.send(&task, &mut random)?;
            }
            busy -= usize::from(connection.idle);
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

    /// Begins a new request, if there is one left to send.
    fn send(&mut self, task: &Task<'_>, random: &mut fastrand::Rng) -> io::Result<()> {
        let number = task.sent.fetch_add(1, Ordering::Relaxed);
        if task.requests.is_some_and(|requests| number >= requests) {
            self.idle = true;
            return Ok(());
        }
        self.request.renew(task.plan, number, random);
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
            record(task, &self.request, &answer, now, self.sent, tally);
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
    request: &Request,
    answer: &response::Response<'_>,
    now: Instant,
    sent: Instant,
    tally: &mut Tally,
) {
    *tally.statuses.entry(answer.status).or_default() += 1;
    if answer.status == task.expected {
        if task.keep_ids
            && let Some(id) = response::id(answer.body)
        {
            tally.ids.extend_from_slice(id);
            tally.ids.push(b'\n');
        }
        if task.keep_names {
            tally.names.extend_from_slice(request.name());
            tally.names.push(b'\n');
        }
    } else {
        tally.unexpected += 1;
        tally.complaint.get_or_insert_with(|| {
            let body = &answer.body[..answer.body.len().min(1000)];
            format!("status {}: {}", answer.status, String::from_utf8_lossy(body))
        });
    }
    if now >= task.from && now < task.until {
        tally.latencies.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use clap::Parser;

    use super::*;
    use crate::arguments::Arguments;

    /// Answers every request on each of so many connections until it is closed; says how many.
    fn server(connections: usize) -> (SocketAddr, thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer_all = |mut stream: net::TcpStream| {
            let (mut answered, mut input) = (0, [0; 4096]);
            // A short request comes in one piece.
            while stream.read(&mut input).is_ok_and(|count| count > 0) {
                answered += 1;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{{\"id\":\"{answered}\"}}",
                    9 + answered.to_string().len()
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
            answered
        };
        let accept = move || {
            let threads: Vec<_> = (0..connections)
                .map(|_| listener.accept().unwrap().0)
                .map(|stream| thread::spawn(move || answer_all(stream)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        };
        (address, thread::spawn(accept))
    }

    #[test]
    fn a_counted_run_sends_exactly_so_many_requests_also_fewer_than_it_has_connections() {
        for requests in [1, 3, 1_000] {
            let (address, server) = server(8);
            let line = ["load", "--url", "h:1", "--path", "/p", "--mode", "get"];
            let plan = Plan::new(&Arguments::parse_from(line)).unwrap();
            let now = Instant::now();
            let task = Task {
                address,
                plan: &plan,
                expected: 200,
                keep_ids: true,
                keep_names: false,
                requests: Some(requests),
                sent: &AtomicU64::new(0),
                from: now,
                until: now + Duration::from_mins(1),
            };
            let streams = (0..8).map(|_| connect(address).unwrap()).collect();
            let tally = run(task, streams).unwrap();
            assert_eq!((tally.errors, tally.complaint), (0, None));
            assert_eq!(tally.statuses.get(&200), Some(&requests));
            assert_eq!(tally.latencies.len() as u64, requests);
            assert_eq!(tally.ids.split(|&byte| byte == b'\n').count() as u64, requests + 1);
            assert_eq!(server.join().unwrap() as u64, requests);
        }
    }
}
