//! Follows the framing of the requests on a connection and finds what the HTTP library tolerates but
//! other software may read differently: two readers that disagree about where a request ends are the
//! basis of request smuggling.
//!
//! The library refuses everything else that is malformed, such as folded header lines and whitespace
//! before a colon.

use memchr::memchr;

/// Maximum length of a line. The HTTP library refuses a longer header before this limit matters.
const MAX_LINE_BYTES: usize = 128 * 1_024;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingError {
    BareLineFeed,
    LineTooLong,
    HostMissing,
    HostRepeated,
    HostInvalid,
    ContentLength,
    TransferEncoding,
    TwoLengths,
    Chunk,
}

impl FramingError {
    /// What is wrong and how to fix it.
    pub(super) fn detail(self) -> &'static str {
        match self {
            Self::BareLineFeed => {
                "A line of the request ends with LF alone. End every line of the header, of chunk sizes and of trailers with CRLF."
            }
            Self::LineTooLong => "A line of the request is too long. Send shorter header fields.",
            Self::HostMissing => "The header `Host` is missing. Send it exactly once.",
            Self::HostRepeated => "The header `Host` is repeated. Send it exactly once.",
            Self::HostInvalid => {
                "The header `Host` is invalid. Send a host name or an IP address, with an optional port."
            }
            Self::ContentLength => {
                "The header `Content-Length` is invalid or repeated. Send one number of bytes."
            }
            Self::TransferEncoding => {
                "The only supported `Transfer-Encoding` is `chunked`. Send it once and alone, or send `Content-Length`."
            }
            Self::TwoLengths => {
                "The request has both `Transfer-Encoding` and `Content-Length`. Send only one of them."
            }
            Self::Chunk => {
                "The chunks of the body are invalid. Send each one with its size in hexadecimal digits, and end it with CRLF."
            }
        }
    }
}

/// An invalid request: its position on the connection, beginning with 0, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidRequest {
    pub(super) number: u64,
    pub(super) error: FramingError,
}

/// The position in the byte stream of a connection.
#[derive(Debug, Default)]
pub(super) struct RequestFraming {
    expected: Expected,
    /// The beginning of a line that has not ended yet.
    partial_line: Vec<u8>,
    header: Header,
    /// The number of complete requests.
    requests: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    #[default]
    RequestLine,
    HeaderField,
    /// The remaining bytes of a body with `Content-Length`.
    Content(u64),
    ChunkSize,
    /// The remaining bytes of a chunk.
    ChunkData(u64),
    /// The empty line after the bytes of a chunk.
    ChunkEnd,
    Trailer,
    /// Nothing more: the connection ends with the invalid request.
    Nothing,
}

impl RequestFraming {
    /// Follows the next bytes. Returns the first invalid request; what comes after it is ignored.
    pub(super) fn observe(&mut self, mut bytes: &[u8]) -> Option<InvalidRequest> {
        while !bytes.is_empty() {
            match self.expected {
                Expected::Nothing => return None,
                Expected::Content(left) => {
                    let left = skip(&mut bytes, left);
                    self.expected = Expected::Content(left);
                    if left == 0 {
                        self.end_request();
                    }
                }
                Expected::ChunkData(left) => {
                    let left = skip(&mut bytes, left);
                    self.expected =
                        if left == 0 { Expected::ChunkEnd } else { Expected::ChunkData(left) };
                }
                _ => {
                    if let Err(error) = self.read_line(&mut bytes) {
                        self.expected = Expected::Nothing;
                        self.partial_line = Vec::new();
                        return Some(InvalidRequest { number: self.requests, error });
                    }
                }
            }
        }
        None
    }

    /// Whether a header has begun and has not ended.
    pub(super) fn is_within_header(&self) -> bool {
        match self.expected {
            Expected::RequestLine => !self.partial_line.is_empty(),
            Expected::HeaderField => true,
            _ => false,
        }
    }

    /// Reads up to the end of the line, or keeps the beginning of a line that has not ended.
    fn read_line(&mut self, bytes: &mut &[u8]) -> Result<(), FramingError> {
        let end = memchr(b'\n', bytes).map(|end| end + 1);
        let (read, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        *bytes = rest;
        if self.partial_line.len() + read.len() > MAX_LINE_BYTES {
            return Err(FramingError::LineTooLong);
        }
        if end.is_none() {
            self.partial_line.extend_from_slice(read);
            return Ok(());
        }
        if self.partial_line.is_empty() {
            return self.end_line(read);
        }
        let mut line = std::mem::take(&mut self.partial_line);
        line.extend_from_slice(read);
        self.end_line(&line)
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let line = line.strip_suffix(b"\r\n").ok_or(FramingError::BareLineFeed)?;
        self.expected = match self.expected {
            // RFC 9112 lets a server ignore empty lines before a request.
            Expected::RequestLine if line.is_empty() => Expected::RequestLine,
            Expected::RequestLine => {
                self.header = Header::new(line);
                Expected::HeaderField
            }
            Expected::HeaderField if line.is_empty() => self.header.body()?,
            Expected::ChunkSize => match chunk_size(line).ok_or(FramingError::Chunk)? {
                0 => Expected::Trailer,
                size => Expected::ChunkData(size),
            },
            Expected::ChunkEnd if line.is_empty() => Expected::ChunkSize,
            Expected::ChunkEnd => return Err(FramingError::Chunk),
            Expected::Trailer if line.is_empty() => Expected::Content(0),
            Expected::HeaderField => {
                self.header.add_field(line)?;
                Expected::HeaderField
            }
            other => other,
        };
        if self.expected == Expected::Content(0) {
            self.end_request();
        }
        Ok(())
    }

    fn end_request(&mut self) {
        self.expected = Expected::RequestLine;
        self.requests += 1;
    }
}

/// Skips up to `count` bytes and returns how many are left to skip.
fn skip(bytes: &mut &[u8], count: u64) -> u64 {
    let skipped = usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len());
    *bytes = &bytes[skipped..];
    count - skipped as u64
}

/// The fields of a header that decide about its body, and the host.
#[derive(Debug, Default)]
struct Header {
    /// HTTP/1.0 has no `Host`.
    is_http_10: bool,
    has_host: bool,
    content_length: Option<u64>,
    is_chunked: bool,
}

impl Header {
    fn new(request_line: &[u8]) -> Self {
        Self { is_http_10: request_line.ends_with(b" HTTP/1.0"), ..Self::default() }
    }

    fn add_field(&mut self, line: &[u8]) -> Result<(), FramingError> {
        if let Some(host) = value_of(line, b"host") {
            if std::mem::replace(&mut self.has_host, true) {
                return Err(FramingError::HostRepeated);
            }
            if !is_host(host) {
                return Err(FramingError::HostInvalid);
            }
        } else if let Some(length) = value_of(line, b"content-length") {
            let length = decimal(length).filter(|_| self.content_length.is_none());
            self.content_length = Some(length.ok_or(FramingError::ContentLength)?);
        } else if let Some(encoding) = value_of(line, b"transfer-encoding") {
            if self.is_chunked || !encoding.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingError::TransferEncoding);
            }
            self.is_chunked = true;
        }
        Ok(())
    }

    /// What follows the header.
    fn body(&self) -> Result<Expected, FramingError> {
        if !self.has_host && !self.is_http_10 {
            return Err(FramingError::HostMissing);
        }
        match (self.content_length, self.is_chunked) {
            (Some(_), true) => Err(FramingError::TwoLengths),
            (None, true) => Ok(Expected::ChunkSize),
            (length, false) => Ok(Expected::Content(length.unwrap_or(0))),
        }
    }
}

/// The value of a header field without the whitespace around it, if the field has this name.
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":").filter(|_| start.eq_ignore_ascii_case(name))?;
    Some(value.trim_ascii())
}

/// Whether a value is a host name or an IP address, with an optional port.
fn is_host(value: &[u8]) -> bool {
    let Ok(value) = str::from_utf8(value) else { return false };
    let (host, port) = match value.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let is_address =
                address.bytes().all(|it| it.is_ascii_hexdigit() || b":.".contains(&it));
            (if is_address { address } else { "" }, port.strip_prefix(':').ok_or(port))
        }
        None => match value.split_once(':') {
            Some((name, port)) => (name, Ok(port)),
            None => (value, Err("")),
        },
    };
    let is_port = port.map_or_else(str::is_empty, |port| {
        port.len() <= 5 && port.bytes().all(|digit| digit.is_ascii_digit())
    });
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:".contains(&byte);
    is_port && !host.is_empty() && host.bytes().all(allowed)
}

/// A number of decimal digits.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// The size at the beginning of a chunk, before extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = &line[..memchr(b';', line).unwrap_or(line.len())];
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
