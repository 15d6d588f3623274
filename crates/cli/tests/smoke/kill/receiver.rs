//! A receiver of webhooks that nobody can rely on: it takes most of what it gets, refuses some,
//! is silent now and then, or resets the connection. It outlives the services that are killed,
//! and writes down whatever arrives.

use std::{
    collections::HashSet,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc::channel},
    time::Duration,
};

use galley_server::delivery::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use jiff::{SignedDuration, Timestamp};

use super::dice::Dice;
use crate::http::{BOUND, find};

/// One event of an account in this many is not taken until the receiver relents.
const HOPELESS: u64 = 97;

/// How often the receiver looks at its clock, and when it has stood still for long.
const BEAT: Duration = Duration::from_millis(50);
const LONG: SignedDuration = SignedDuration::from_millis(250);

/// The longest head of a request.
const MOST_HEAD: usize = 16 * 1_024;

/// One request, in the order of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// How many services had been killed before the one that sent it.
    pub(super) life: u32,
    pub(super) at: Timestamp,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
    pub(super) reaction: Reaction,
}

/// A while in which nothing ran here, and perhaps nowhere on the machine: whoever waits for an
/// answer may have given up although it was there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// 200, and all of that was written out.
    Taken,
    /// 500, likewise.
    Refused,
    /// The connection was reset.
    Reset,
    /// Nothing until the sender gave up.
    Silent,
    /// The sender was gone when there was an answer.
    Unheard,
}

impl Reaction {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Taken => "200",
            Self::Refused => "500",
            Self::Reset => "reset",
            Self::Silent => "not answered",
            Self::Unheard => "not waited for",
        }
    }

    fn thrown(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..70 => Self::Taken,
            70..84 => Self::Refused,
            84..98 => Self::Reset,
            _ => Self::Silent,
        }
    }

    fn answer(self) -> &'static [u8] {
        if self == Self::Taken {
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        } else {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nno!\n"
        }
    }
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    notes: Arc<Notes>,
}

struct Notes {
    book: Mutex<Book>,
    news: Condvar,
}

struct Book {
    dice: Dice,
    /// From now on everything is taken.
    relents: bool,
    life: u32,
    /// The connections that have not ended, by where they come from.
    open: HashSet<SocketAddr>,
    arrivals: Vec<Arrival>,
    stalls: Vec<Stall>,
}

impl Receiver {
    /// Receives from now on, until the tests end.
    pub(super) fn start(dice: Dice) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (arrivals, stalls) = (Vec::new(), Vec::new());
        let book = Book { dice, relents: false, life: 0, open: HashSet::new(), arrivals, stalls };
        let notes = Arc::new(Notes { book: Mutex::new(book), news: Condvar::new() });
        let theirs = Arc::clone(&notes);
        std::thread::spawn(move || {
            while let Ok((stream, from)) = listener.accept() {
                theirs.change(|book| book.open.insert(from));
                let notes = Arc::clone(&theirs);
                std::thread::spawn(move || {
                    // Whatever breaks a connection is what this is about.
                    let _ = notes.serve(stream);
                    notes.change(|book| book.open.remove(&from));
                });
            }
        });
        let theirs = Arc::clone(&notes);
        std::thread::spawn(move || theirs.watch_the_clock());
        Self { address, notes }
    }

    /// To be told when a service was killed: what arrives from here on is of the next one.
    pub(super) fn sender_is_gone(&self) {
        // Connections are accepted in their order: all of the service are before this one.
        let last = TcpStream::connect(self.address).unwrap();
        let from = last.local_addr().unwrap();
        drop(self.notes.wait_while(|book| !book.open.contains(&from)));
        drop(last);
        self.notes.wait_while(|book| !book.open.is_empty()).life += 1;
    }

    /// To be told when only the rest is waited for. An endpoint that has failed ten times in a row is
    /// probed once a minute in the end: where little is left, and much of that hopeless, that happens.
    pub(super) fn relent(&self) {
        self.notes.change(|book| book.relents = true);
    }

    /// All that has arrived at this path so far.
    pub(super) fn arrivals(&self, path: &str) -> Vec<Arrival> {
        let book = self.notes.book.lock().unwrap();
        book.arrivals.iter().filter(|arrival| arrival.path == path).cloned().collect()
    }

    pub(super) fn stalls(&self) -> Vec<Stall> {
        self.notes.book.lock().unwrap().stalls.clone()
    }
}

impl Notes {
    fn watch_the_clock(&self) {
        let (_nobody, nothing) = channel::<()>();
        loop {
            let from = now();
            let _ = nothing.recv_timeout(BEAT);
            let to = now();
            if to.duration_since(from) > LONG {
                self.change(|book| book.stalls.push(Stall { from, to }));
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let changed = change(&mut self.book.lock().unwrap());
        self.news.notify_all();
        changed
    }

    #[track_caller]
    fn wait_while(&self, condition: impl Fn(&Book) -> bool) -> MutexGuard<'_, Book> {
        let book = self.book.lock().unwrap();
        let waited = self.news.wait_timeout_while(book, BOUND, |book| condition(book));
        let (book, _) = waited.unwrap();
        assert!(!condition(&book), "connections do not end: {:?}", book.open);
        book
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let (head, body) = peek_request(&mut stream)?;
            let (place, reaction) = self.change(|book| book.enter(&head, body));
            // What is closed before all of it was read is reset.
            let reset = reaction == Reaction::Reset;
            if !reset {
                stream.read_exact(&mut [0])?;
            }
            if matches!(reaction, Reaction::Taken | Reaction::Refused) {
                is_awaited(&stream)?;
                stream.write_all(reaction.answer())?;
            }
            self.change(|book| book.arrivals[place].reaction = reaction);
            if reset {
                return Ok(());
            }
        }
    }
}

impl Book {
    /// Notes what arrives before it is answered: what comes because of the answer comes later.
    /// Answers where that stands, and what is to be done.
    fn enter(&mut self, head: &str, body: Vec<u8>) -> (usize, Reaction) {
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let arrival = Arrival {
            life: self.life,
            at: now(),
            path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
            id: header(ID_HEADER),
            timestamp: header(TIMESTAMP_HEADER),
            signature: header(SIGNATURE_HEADER),
            body,
            reaction: Reaction::Unheard,
        };
        // `evt_{account}_{number}_{moment}`
        let number = arrival.id.split('_').nth(2).and_then(|number| number.parse().ok());
        let hopeless = number.is_some_and(|number: u64| number.is_multiple_of(HOPELESS));
        let reaction = match Reaction::thrown(&mut self.dice) {
            _ if self.relents => Reaction::Taken,
            Reaction::Taken if hopeless => Reaction::Refused,
            other => other,
        };
        self.arrivals.push(arrival);
        (self.arrivals.len() - 1, reaction)
    }
}

/// The head and the body of the next request, of which the last byte is still to be read.
fn peek_request(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut seen = [0; MOST_HEAD];
    let end = loop {
        let length = stream.peek(&mut seen)?;
        match find(&seen[..length], b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if length == 0 || length == MOST_HEAD => {
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
    let mut bytes = vec![0; end + length - 1];
    stream.read_exact(&mut bytes)?;
    let mut last = [0];
    if stream.peek(&mut last)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok((head, [&bytes[end..], &last].concat()))
}

/// Whether somebody still waits for an answer: he may have been killed, or have given up.
fn is_awaited(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let more = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match more {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "a receiver has a clock of its own")]
fn now() -> Timestamp {
    Timestamp::now()
}
