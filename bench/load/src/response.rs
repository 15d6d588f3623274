//! Reading one answer: its status, where it ends, and the id in it.

/// A complete answer at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
    /// Bytes of head and body together.
    pub length: usize,
}

/// The answer in `buffer`, or nothing as long as it is not complete.
///
/// Answers without a length (chunked ones) are refused: every server here knows its lengths.
pub fn parse(buffer: &[u8]) -> Result<Option<Response<'_>>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) =
        head.parse(buffer).map_err(|e| format!("not an HTTP answer: {e}"))?
    else {
        return Ok(None);
    };
    let status = head.code.ok_or("an answer without a status")?;
    let length = if matches!(status, 204 | 304) {
        0
    } else {
        head.headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("content-length"))
            .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok())
            .ok_or("an answer without a usable Content-Length")?
    };
    let body = buffer.get(start..start + length);
    Ok(body.map(|body| Response { status, body, length: start + length }))
}

/// The value of the first `"id":"…"` in a body.
pub fn id(body: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = b"\"id\":\"";
    let start = body.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let rest = &body[start..];
    Some(&rest[..rest.iter().position(|&byte| byte == b'"')?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 11\r\n\r\n{\"id\":\"42\"}";

    #[test]
    fn an_answer_counts_only_once_its_last_byte_is_there() {
        for end in 0..ANSWER.len() {
            assert_eq!(parse(&ANSWER[..end]), Ok(None));
        }
        let answer = parse(ANSWER).unwrap().unwrap();
        assert_eq!((answer.status, answer.length), (201, ANSWER.len()));
        assert_eq!(id(answer.body), Some(&b"42"[..]));
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().is_some());
    }

    #[test]
    fn a_body_without_an_id_has_none() {
        assert_eq!(id(b"{\"di\":\"42\"}"), None);
        assert_eq!(id(b"{\"id\":\"42"), None);
    }
}
