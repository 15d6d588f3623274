//! A small blocking HTTP/1.1 client that sends exactly the bytes it is given.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Timeout of every wait in these tests; reaching it means that something hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A request that can be serialised to bytes.
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

    /// The request line and headers, with `framing` as the last headers.
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

/// A response of the service.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Asserts that this is an RFC 9457 problem with that status and slug.
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

/// A connection; responses are read in order.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for the first byte of a response without consuming it.
    pub(crate) fn wait_for_response(&self) -> io::Result<()> {
        self.stream.peek(&mut [0]).map(drop)
    }

    /// Reads the next response, up to its content length.
    pub(crate) fn read_response(&mut self) -> io::Result<Response> {
        let head_end = loop {
            match find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.read_more()?,
            }
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let head = String::from_utf8(head).map_err(|_| invalid("the head is not UTF-8"))?;
        let status = head.get(9..12).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| invalid("the status is missing"))?;
        let mut response = Response { status, head, body: Vec::new() };
        let length = match response.header("content-length") {
            Some(length) => {
                length.parse().map_err(|_| invalid("the content length is not a number"))?
            }
            None => 0,
        };
        while self.buffer.len() < length {
            self.read_more()?;
        }
        response.body = self.buffer.drain(..length).collect();
        Ok(response)
    }

    /// Waits until the service closes the connection. Returns the bytes received before that.
    pub(crate) fn read_until_closed(mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if is_closed(&error) => return Ok(self.buffer),
                Err(error) => return Err(error),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1_024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.buffer.extend_from_slice(&chunk[..length]);
                Ok(())
            }
            // A read with a timeout is interrupted if the machine was suspended.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the peer closed the connection, as opposed to a timeout.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// The position of `needle` in `bytes`.
pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
