//! A small blocking HTTP/1.1 client that sends exactly the bytes it is told to.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Nothing here takes this long unless it hangs.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// A request, written out as its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The head with `framing` as its last headers.
    pub(crate) fn head(&self, framing: &str) -> Vec<u8> {
        let Self { method, path, headers, .. } = self;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: galley.test\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str(framing);
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let framing = match self.body.len() {
            0 if self.method == "GET" => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        [self.head(&framing), self.body.clone()].concat()
    }
}

/// What the service answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Demands a status and the problem of that name, told as RFC 9457 wants it.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, slug: &str) {
        assert_eq!(self.status, status, "{slug} expected: {self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["type"], format!("/problems/{slug}"), "{document}");
        assert_eq!(document["status"], status, "{document}");
        for member in ["title", "detail", "request_id"] {
            assert!(document[member].is_string(), "{member} in {document}");
        }
    }
}

/// One connection; answers are read one after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    waiting: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, BOUND)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(BOUND))?;
        stream.set_write_timeout(Some(BOUND))?;
        Ok(Self { stream, waiting: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits until the service has begun to answer, and reads nothing of it.
    pub(crate) fn until_answered(&self) -> io::Result<()> {
        self.stream.peek(&mut [0]).map(drop)
    }

    /// The next answer, as far as its length goes.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let head_end = loop {
            match find(&self.waiting, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.read_more()?,
            }
        };
        let head: Vec<u8> = self.waiting.drain(..head_end).collect();
        let head = String::from_utf8(head).map_err(|_| broken("the head is not UTF-8"))?;
        let status = head.get(9..12).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| broken("there is no status"))?;
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = match answer.header("content-length") {
            Some(length) => length.parse().map_err(|_| broken("the length is no number"))?,
            None => 0,
        };
        while self.waiting.len() < length {
            self.read_more()?;
        }
        answer.body = self.waiting.drain(..length).collect();
        Ok(answer)
    }

    /// Waits until the service closes the connection; answers what came before that.
    pub(crate) fn until_closed(mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if is_closed(&error) => return Ok(self.waiting),
                Err(error) => return Err(error),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1_024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.waiting.extend_from_slice(&chunk[..length]);
                Ok(())
            }
            // A read with a deadline is interrupted when the machine was stopped for a moment.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the other side has ended the connection, rather than being silent for too long.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Where `needle` stands in `bytes`.
pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
