//! Parses one response: status, length, and the id in its body.

/// A complete response at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
    /// Length of head and body in bytes.
    pub length: usize,
}

/// Parses the response in `buffer`; returns `None` while it is incomplete.
///
/// Responses without a length (chunked ones) are errors: every measured server sends a length.
pub fn parse(buffer: &[u8]) -> Result<Option<Response<'_>>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) =
        head.parse(buffer).map_err(|e| format!("not an HTTP response: {e}"))?
    else {
        return Ok(None);
    };
    let status = head.code.ok_or("response without a status")?;
    let length = if matches!(status, 204 | 304) {
        0
    } else {
        head.headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("content-length"))
            .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok())
            .ok_or("response without a valid Content-Length")?
    };
    let body = buffer.get(start..start + length);
    Ok(body.map(|body| Response { status, body, length: start + length }))
}

/// Returns the value of the first `"id":"…"` in a body.
pub fn id(body: &[u8]) -> Option<&[u8]> {
    const PREFIX: &[u8] = b"\"id\":\"";
    let start = body.windows(PREFIX.len()).position(|window| window == PREFIX)? + PREFIX.len();
    let rest = &body[start..];
    Some(&rest[..rest.iter().position(|&byte| byte == b'"')?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 11\r\n\r\n{\"id\":\"42\"}";

    #[test]
    fn a_response_is_complete_only_with_its_last_byte() {
        for end in 0..RESPONSE.len() {
            assert_eq!(parse(&RESPONSE[..end]), Ok(None));
        }
        let response = parse(RESPONSE).unwrap().unwrap();
        assert_eq!((response.status, response.length), (201, RESPONSE.len()));
        assert_eq!(id(response.body), Some(&b"42"[..]));
    }

    #[test]
    fn a_response_without_a_length_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().is_some());
    }

    #[test]
    fn a_body_without_an_id_has_none() {
        assert_eq!(id(b"{\"di\":\"42\"}"), None);
        assert_eq!(id(b"{\"id\":\"42"), None);
    }
}
