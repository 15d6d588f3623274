//! The event loop: a thread that keeps one request in flight on each of its connections, or sends
//! requests at a fixed rate on those that are free.
//!
//! It uses sockets directly, without a runtime or an HTTP client: on a machine with few cores, the
//! load generator takes its CPU time from the server under test.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::request::{Plan, Request};
use crate::response::{self, Response};
use crate::schedule::Schedule;
use crate::summary::Tally;

/// How long to wait for responses in flight after the measured time.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of errors after which a loop stops reconnecting.
const MAX_ERRORS: u64 = 100;

/// The work of an event loop.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// The requests to send.
    pub plan: &'a Plan,
    /// Expected status of every response.
    pub expected_status: u16,
    /// Whether to record the ids in the responses.
    pub record_ids: bool,
    /// Whether to record the names of created templates.
    pub record_names: bool,
    /// Total number of requests of all loops; `None` for as many as the time allows.
    pub requests: Option<u64>,
    /// Number of requests that all loops have sent.
    pub sent: &'a AtomicU64,
    /// Requests per second of this loop; `None` for as many as the server allows.
    pub rate: Option<f64>,
    /// Start of the measured time.
    pub from: Instant,
    /// End of the measured time.
    pub until: Instant,
}

struct Connection {
    stream: TcpStream,
    request: Request,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    /// When the request was sent, or was due.
    sent: Instant,
    idle: bool,
}

/// Connects to the server.
pub fn connect(address: SocketAddr) -> io::Result<net::TcpStream> {
    let stream = net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Sends requests on the given connections until the measured time ends.
pub fn run(task: Task<'_>, streams: Vec<net::TcpStream>) -> io::Result<Tally> {
    let mut poll = Poll::new()?;
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::new();
    let mut events = Events::with_capacity(streams.len().max(16));
    let mut open = Vec::with_capacity(streams.len());
    for (index, stream) in streams.into_iter().enumerate() {
        open.push(Connection::new(stream, &task, &poll, Token(index))?);
    }
    let mut schedule = task.rate.map(|rate| Schedule::new(rate, Instant::now(), task.until));
    let mut idle: Vec<usize> = (0..open.len()).collect();
    if schedule.is_none() {
        idle.clear();
        for (index, connection) in open.iter_mut().enumerate() {
            connection.send(&task, Instant::now(), &mut random)?;
            idle.extend(connection.idle.then_some(index));
        }
    }
    while tally.errors < MAX_ERRORS {
        let now = Instant::now();
        if let Some(schedule) = &mut schedule {
            while let Some(&index) = idle.last()
                && let Some(due) = schedule.take_due(now)
            {
                idle.pop();
                open[index].send(&task, due, &mut random)?;
            }
        }
        let busy = open.len() - idle.len();
        let next = schedule.as_ref().and_then(|schedule| schedule.wait(now));
        if busy == 0 && next.is_none() {
            break;
        }
        let left = (task.until + DRAIN_TIMEOUT).saturating_duration_since(now);
        if left.is_zero() {
            tally.errors += busy as u64;
            tally.first_error.get_or_insert_with(|| format!("{busy} requests got no response"));
            break;
        }
        // Without an idle connection, the next event is a response.
        let next = next.filter(|_| !idle.is_empty());
        match poll.poll(&mut events, Some(next.map_or(left, |next| next.min(left)))) {
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
                tally.first_error.get_or_insert_with(|| format!("connection: {error}"));
                let stream = connect(task.address)?;
                *connection = Connection::new(stream, &task, &poll, event.token())?;
                connection.send(&task, Instant::now(), &mut random)?;
            }
            idle.extend(connection.idle.then_some(event.token().0));
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
            idle: true,
        })
    }

    /// Sends the next request, if any is left.
    fn send(&mut self, task: &Task<'_>, at: Instant, random: &mut fastrand::Rng) -> io::Result<()> {
        let number = task.sent.fetch_add(1, Ordering::Relaxed);
        self.idle = task.requests.is_some_and(|requests| number >= requests);
        if self.idle {
            return Ok(());
        }
        self.request.prepare(task.plan, number, random);
        self.written = 0;
        self.filled = 0;
        self.sent = at;
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
        // One read usually returns a whole response. Reading until the socket is empty would cost a
        // second system call per request and is unnecessary: after a complete response nothing more
        // arrives before the next request, and new bytes trigger a new event.
        loop {
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let Some(response) =
                response::parse(&self.input[..self.filled]).map_err(io::Error::other)?
            else {
                if self.filled == self.input.len() {
                    self.input.resize(self.filled * 2, 0);
                }
                continue;
            };
            if response.length != self.filled {
                return Err(io::Error::other("bytes after the end of a response"));
            }
            let now = Instant::now();
            record(task, &self.request, &response, now, self.sent, tally);
            if now < task.until && task.rate.is_none() {
                return self.send(task, now, random);
            }
            self.idle = true;
            return Ok(());
        }
    }
}

fn record(
    task: &Task<'_>,
    request: &Request,
    response: &Response<'_>,
    now: Instant,
    sent: Instant,
    tally: &mut Tally,
) {
    *tally.statuses.entry(response.status).or_default() += 1;
    if response.status == task.expected_status {
        if task.record_ids
            && let Some(id) = response::id(response.body)
        {
            tally.ids.extend_from_slice(id);
            tally.ids.push(b'\n');
        }
        if task.record_names {
            tally.names.extend_from_slice(request.name());
            tally.names.push(b'\n');
        }
    } else {
        tally.unexpected += 1;
        tally.first_error.get_or_insert_with(|| {
            let body = &response.body[..response.body.len().min(1000)];
            format!("status {}: {}", response.status, String::from_utf8_lossy(body))
        });
    }
    // At a fixed rate, a late response counts: to leave it out would hide the worst latencies.
    let is_measured = match task.rate {
        Some(_) => sent >= task.from,
        None => now >= task.from && now < task.until,
    };
    if is_measured {
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

    /// Accepts this number of connections and responds to every request; returns the total.
    fn start_server(connections: usize) -> (SocketAddr, thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let respond_all = |mut stream: net::TcpStream| {
            let (mut count, mut input) = (0, [0; 4096]);
            // A short request arrives in one read.
            while stream.read(&mut input).is_ok_and(|bytes| bytes > 0) {
                count += 1;
                let response = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{{\"id\":\"{count}\"}}",
                    9 + count.to_string().len()
                );
                stream.write_all(response.as_bytes()).unwrap();
            }
            count
        };
        let accept = move || {
            let threads: Vec<_> = (0..connections)
                .map(|_| listener.accept().unwrap().0)
                .map(|stream| thread::spawn(move || respond_all(stream)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        };
        (address, thread::spawn(accept))
    }

    fn task<'a>(address: SocketAddr, plan: &'a Plan, sent: &'a AtomicU64) -> Task<'a> {
        let now = Instant::now();
        Task {
            address,
            plan,
            expected_status: 200,
            record_ids: true,
            record_names: false,
            requests: None,
            sent,
            rate: None,
            from: now,
            until: now + Duration::from_mins(1),
        }
    }

    fn plan() -> Plan {
        let line = ["load", "--url", "h:1", "--path", "/p", "--mode", "get"];
        Plan::new(&Arguments::parse_from(line)).unwrap()
    }

    fn connect_all(address: SocketAddr, count: usize) -> Vec<net::TcpStream> {
        (0..count).map(|_| connect(address).unwrap()).collect()
    }

    #[test]
    fn a_counted_run_sends_exactly_the_given_number_of_requests() {
        for requests in [1, 3, 1_000] {
            let (address, server) = start_server(8);
            let (plan, sent) = (plan(), AtomicU64::new(0));
            let task = Task { requests: Some(requests), ..task(address, &plan, &sent) };
            let tally = run(task, connect_all(address, 8)).unwrap();
            assert_eq!((tally.errors, tally.first_error), (0, None));
            assert_eq!(tally.statuses.get(&200), Some(&requests));
            assert_eq!(tally.latencies.len() as u64, requests);
            assert_eq!(tally.ids.split(|&byte| byte == b'\n').count() as u64, requests + 1);
            assert_eq!(server.join().unwrap() as u64, requests);
        }
    }

    #[test]
    fn a_paced_run_sends_what_its_schedule_says_with_latencies_from_the_due_times() {
        let (address, server) = start_server(1);
        let (plan, sent) = (plan(), AtomicU64::new(0));
        // One connection cannot serve a million requests per second: later ones have waited longer.
        let task = Task { rate: Some(1e6), ..task(address, &plan, &sent) };
        let until = Instant::now() + Duration::from_millis(5);
        let tally = run(Task { until, ..task }, connect_all(address, 1)).unwrap();
        let responses = tally.statuses[&200];
        assert!((4_000..=5_000).contains(&responses), "{responses}");
        assert_eq!(server.join().unwrap() as u64, responses);
        assert_eq!(tally.latencies.len() as u64, responses);
        // A response takes longer than the 2 µs that would keep the last one below this.
        assert!(tally.latencies.last() > Some(&5_000), "{:?}", tally.latencies.last());
    }
}
