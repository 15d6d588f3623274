//! Tests of the framing: each error, and that the split of the bytes into reads changes nothing.

use proptest::prelude::*;

use super::*;

/// The first invalid request if the bytes arrive in one read.
fn check(bytes: &[u8]) -> Option<(u64, FramingError)> {
    RequestFraming::default().observe(bytes).map(|invalid| (invalid.number, invalid.error))
}

/// A header with these fields, each ending with CRLF.
fn header(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

#[test]
fn exactly_one_valid_host_is_required() {
    let request = |fields: &str| format!("GET / HTTP/1.1\r\n{fields}\r\n").into_bytes();
    for good in ["a", "galley.test:8080", "127.0.0.1", "[::1]", "[::1]:80", "a_b:", "x%20y"] {
        assert_eq!(check(&request(&format!("hOST:\t{good} \r\n"))), None, "{good}");
    }
    for bad in [
        "", "a b", "a, b", "u@a", "a/b", "a:b", "a:123456", "a:1:2", "[::1", "[x]", "[]", "ä",
        ":80",
    ] {
        let bytes = request(&format!("Host: {bad}\r\n"));
        assert_eq!(check(&bytes), Some((0, FramingError::HostInvalid)), "{bad}");
    }
    assert_eq!(check(&request("Hosts: a\r\n")), Some((0, FramingError::HostMissing)));
    assert_eq!(
        check(&request("Host: a\r\nX: y\r\nhost: a\r\n")),
        Some((0, FramingError::HostRepeated))
    );
    assert_eq!(check(b"GET / HTTP/1.0\r\n\r\n"), None, "HTTP/1.0 has no Host");
}

#[test]
fn a_body_has_one_length() {
    use FramingError::{ContentLength, TransferEncoding, TwoLengths};
    for (fields, error) in [
        ("Content-Length: 7\r\nContent-Length: 7\r\n", ContentLength),
        ("Content-Length: 7, 7\r\n", ContentLength),
        ("Content-Length: +7\r\n", ContentLength),
        ("Content-Length: -7\r\n", ContentLength),
        ("Content-Length: 0x7\r\n", ContentLength),
        ("Content-Length:\r\n", ContentLength),
        ("Content-Length: 18446744073709551616\r\n", ContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: identity\r\n", TransferEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", TransferEncoding),
        ("Transfer-Encoding:\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", TwoLengths),
        ("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", TwoLengths),
    ] {
        assert_eq!(check(&header(fields)), Some((0, error)), "{fields:?}");
    }
    assert_eq!(check(&header("transfer-encoding:CHUNKED\r\n")), None);
    assert_eq!(check(&header("Content-Length: 007\r\n")), None);
}

#[test]
fn a_line_that_ends_with_a_line_feed_alone_is_invalid() {
    let chunks = |text: &str| [&header("Transfer-Encoding: chunked\r\n"), text.as_bytes()].concat();
    for bytes in [
        b"GET / HTTP/1.1\nHost: a\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec(),
        b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        chunks("3\nabc\r\n0\r\n\r\n"),
        chunks("3;x\ny\r\nabc\r\n0\r\n\r\n"),
        chunks("3\r\nabc\n0\r\n\r\n"),
        chunks("3\r\nabc\r\n0\n\r\n"),
        chunks("3\r\nabc\r\n0\r\nX: y\n\r\n"),
        chunks("3\r\nabc\r\n0\r\n\n"),
    ] {
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(check(&bytes), Some((0, FramingError::BareLineFeed)), "{shown:?}");
    }
    assert_eq!(
        check(b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        None,
        "empty lines are ignored"
    );
    assert_eq!(check(&chunks("3\r\na\nb\r\n0\r\n\r\n")), None, "a chunk may contain anything");
}

#[test]
fn invalid_chunks_are_refused() {
    for chunks in
        ["\r\n", "x\r\n", "3 \r\n", "-1\r\n", "1x\r\n", "3\r\nabcd\r\n", "10000000000000000\r\n"]
    {
        let bytes = [&header("Transfer-Encoding: chunked\r\n"), chunks.as_bytes()].concat();
        assert_eq!(check(&bytes), Some((0, FramingError::Chunk)), "{chunks:?}");
    }
}

#[test]
fn a_line_without_end_is_bounded() {
    let mut framing = RequestFraming::default();
    let found = (0..1_000).find_map(|_| framing.observe(&[b'a'; 1_024]));
    assert_eq!(found.map(|it| it.error), Some(FramingError::LineTooLong));
    assert_eq!(framing.partial_line.capacity(), 0);
}

/// A valid request with any body.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..200);
    let with_length = body
        .prop_map(|body| [header(&format!("Content-Length: {}\r\n", body.len())), body].concat());
    let chunk = prop::collection::vec(any::<u8>(), 1..100);
    let chunked = prop::collection::vec(chunk, 0..5).prop_map(|chunks| {
        let mut bytes = header("Transfer-Encoding: chunked\r\n");
        for chunk in chunks {
            bytes.extend_from_slice(format!("{:x};x=\"y\"\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(&chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nX-Trailer: z\r\n\r\n");
        bytes
    });
    prop_oneof![with_length, chunked, Just(header("")), Just(b"\r\n".to_vec())]
}

/// Bytes of which many are significant for the framing.
fn mutation() -> impl Strategy<Value = (prop::sample::Index, u8)> {
    let significant = prop::sample::select(b"\r\n:;, 0aZ\0\xff".to_vec());
    (any::<prop::sample::Index>(), prop_oneof![significant, any::<u8>()])
}

proptest! {
    #[test]
    fn valid_requests_are_followed_to_their_end(requests in prop::collection::vec(request(), 0..6)) {
        let mut framing = RequestFraming::default();
        prop_assert_eq!(framing.observe(&requests.concat()), None);
        let count = requests.iter().filter(|it| *it != b"\r\n").count();
        prop_assert_eq!((framing.requests, framing.expected), (count as u64, Expected::RequestLine));
    }

    #[test]
    fn the_split_into_reads_changes_nothing(
        requests in prop::collection::vec(request(), 1..4),
        mutations in prop::collection::vec(mutation(), 0..4),
        splits in prop::collection::vec(1_usize..40, 1..50),
    ) {
        let mut bytes = requests.concat();
        for (index, byte) in mutations {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let mut whole = RequestFraming::default();
        let expected = whole.observe(&bytes);
        let (mut split, mut found, mut rest) = (RequestFraming::default(), None, &bytes[..]);
        for length in splits.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (read, later) = rest.split_at((*length).min(rest.len()));
            rest = later;
            found = found.or(split.observe(read));
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!((split.requests, split.expected), (whole.requests, whole.expected));
    }
}
