//! An unreliable webhook receiver: it accepts most requests, refuses some, and sometimes does not
//! respond or resets the connection. It outlives the killed services and records every request.

use std::{
    collections::HashSet,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc::channel},
    time::Duration,
};

use galley_server::delivery::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use jiff::{SignedDuration, Timestamp};
use socket2::SockRef;

use super::rng::Rng;
use crate::http::{TIMEOUT, find};

/// The receiver does not accept events whose number is a multiple of this, until
/// [`Receiver::accept_everything`].
const REFUSED_EVENT_INTERVAL: u64 = 97;

/// Interval at which the receiver checks its clock.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A longer time between two clock checks is a stall.
const STALL_THRESHOLD: SignedDuration = SignedDuration::from_millis(250);

/// Size limit of a request head.
const MAX_HEAD_BYTES: usize = 16 * 1_024;

/// One received request.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    /// Number of services killed before the one that sent it.
    pub(super) generation: u32,
    pub(super) at: Timestamp,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
    pub(super) reaction: Reaction,
}

/// A period in which this process, and perhaps the whole machine, did not run. The service may have
/// timed out although the response had been sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// 200, completely written.
    Accepted,
    /// 500, completely written.
    Refused,
    /// The connection was reset.
    Reset,
    /// No response until the sender timed out.
    Silent,
    /// The sender had closed the connection before the response. It may have sent other requests
    /// before the receiver read this one.
    SenderGone,
}

impl Reaction {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Accepted => "200",
            Self::Refused => "500",
            Self::Reset => "reset",
            Self::Silent => "no response",
            Self::SenderGone => "sender gone",
        }
    }

    fn random(rng: &mut Rng) -> Self {
        match rng.below(100) {
            0..70 => Self::Accepted,
            70..84 => Self::Refused,
            84..98 => Self::Reset,
            _ => Self::Silent,
        }
    }

    fn response(self) -> &'static [u8] {
        if self == Self::Accepted {
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        } else {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nno!\n"
        }
    }
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<ReceiverState>,
    changed: Condvar,
}

struct ReceiverState {
    rng: Rng,
    accepts_everything: bool,
    generation: u32,
    /// The peer addresses of the open connections.
    open: HashSet<SocketAddr>,
    requests: Vec<ReceivedRequest>,
    stalls: Vec<Stall>,
}

impl Receiver {
    /// Starts a receiver that runs until the test process ends.
    pub(super) fn start(rng: Rng) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = ReceiverState {
            rng,
            accepts_everything: false,
            generation: 0,
            open: HashSet::new(),
            requests: Vec::new(),
            stalls: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let acceptor = Arc::clone(&shared);
        std::thread::spawn(move || {
            while let Ok((stream, from)) = listener.accept() {
                acceptor.update(|state| state.open.insert(from));
                let shared = Arc::clone(&acceptor);
                std::thread::spawn(move || {
                    // Broken connections are expected: the kills cause them.
                    let _ = shared.serve(stream);
                    shared.update(|state| state.open.remove(&from));
                });
            }
        });
        let stall_monitor = Arc::clone(&shared);
        std::thread::spawn(move || stall_monitor.record_stalls());
        Self { address, shared }
    }

    /// Call it after a kill: later requests belong to the next service.
    pub(super) fn service_killed(&self) {
        // Connections are accepted in order: all connections of the service come before this one.
        let last = TcpStream::connect(self.address).unwrap();
        let from = last.local_addr().unwrap();
        drop(self.shared.wait_while(|state| !state.open.contains(&from)));
        drop(last);
        self.shared.wait_while(|state| !state.open.is_empty()).generation += 1;
    }

    /// Accepts all further requests. Call it before waiting for the remaining deliveries: the service
    /// probes an endpoint only once a minute after ten failures in a row, which happens if few events
    /// are left and the receiver refuses many of them.
    pub(super) fn accept_everything(&self) {
        self.shared.update(|state| state.accepts_everything = true);
    }

    /// The requests received at this path so far.
    pub(super) fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        let state = self.shared.state.lock().unwrap();
        state.requests.iter().filter(|request| request.path == path).cloned().collect()
    }

    pub(super) fn stalls(&self) -> Vec<Stall> {
        self.shared.state.lock().unwrap().stalls.clone()
    }
}

impl Shared {
    fn record_stalls(&self) {
        let (_sender, never) = channel::<()>();
        loop {
            let from = now();
            let _ = never.recv_timeout(CLOCK_CHECK_INTERVAL);
            let to = now();
            if to.duration_since(from) > STALL_THRESHOLD {
                self.update(|state| state.stalls.push(Stall { from, to }));
            }
        }
    }

    fn update<T>(&self, update: impl FnOnce(&mut ReceiverState) -> T) -> T {
        let result = update(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        result
    }

    #[track_caller]
    fn wait_while(
        &self,
        condition: impl Fn(&ReceiverState) -> bool,
    ) -> MutexGuard<'_, ReceiverState> {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, TIMEOUT, |state| condition(state));
        let (state, _) = waited.unwrap();
        assert!(!condition(&state), "connections stay open: {:?}", state.open);
        state
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let (head, body) = read_request(&mut stream)?;
            // A sender that is there while the lock is held has sent nothing later: the list has the
            // order of sending.
            let (index, reaction) = self.update(|state| {
                let (index, reaction) = state.record(&head, body);
                ensure_open(&stream).map(|()| (index, reaction))
            })?;
            if matches!(reaction, Reaction::Accepted | Reaction::Refused) {
                ensure_open(&stream)?;
                stream.write_all(reaction.response())?;
            }
            self.update(|state| state.requests[index].reaction = reaction);
            if reaction == Reaction::Reset {
                return SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

impl ReceiverState {
    /// Records a request before the response, so that requests caused by the response come later in
    /// the list. Returns the request's index, and how to react.
    fn record(&mut self, head: &str, body: Vec<u8>) -> (usize, Reaction) {
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let request = ReceivedRequest {
            generation: self.generation,
            at: now(),
            path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
            id: header(ID_HEADER),
            timestamp: header(TIMESTAMP_HEADER),
            signature: header(SIGNATURE_HEADER),
            body,
            reaction: Reaction::SenderGone,
        };
        // `evt_{account}_{number}_{time}`
        let number = request.id.split('_').nth(2).and_then(|number| number.parse().ok());
        let is_refused =
            number.is_some_and(|number: u64| number.is_multiple_of(REFUSED_EVENT_INTERVAL));
        let reaction = match Reaction::random(&mut self.rng) {
            _ if self.accepts_everything => Reaction::Accepted,
            Reaction::Accepted if is_refused => Reaction::Refused,
            other => other,
        };
        self.requests.push(request);
        (self.requests.len() - 1, reaction)
    }
}

/// The head and the body of the next request.
fn read_request(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut seen = [0; MAX_HEAD_BYTES];
    let end = loop {
        let length = stream.peek(&mut seen)?;
        match find(&seen[..length], b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if length == 0 || length == MAX_HEAD_BYTES => {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            None => {}
        }
    };
    let head = String::from_utf8_lossy(&seen[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let length: usize = length.filter(|length| *length > 0).ok_or(ErrorKind::InvalidData)?;
    let mut bytes = vec![0; end + length];
    stream.read_exact(&mut bytes)?;
    Ok((head, bytes.split_off(end)))
}

/// Fails if the sender has closed the connection: it may be killed, or have timed out.
fn ensure_open(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let more = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match more {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the receiver is independent of the service's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}
