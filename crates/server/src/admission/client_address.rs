//! The address of the client, also behind proxies that the operator trusts.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};

use crate::ip_network::IpNetwork;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// The address of the client. If the peer is a trusted proxy, this is the last address in
/// `X-Forwarded-For` or `Forwarded` that is not one. Addresses further left can be invented by the
/// client.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let peer = peer.to_canonical();
    if !is_trusted(peer) {
        return peer;
    }
    // A proxy writes one of the headers, and passes on what a client wrote into the other. With
    // both, it is not known which is the proxy's.
    let (name, is_extended) =
        match (headers.contains_key(X_FORWARDED_FOR), headers.contains_key(FORWARDED)) {
            (true, false) => (X_FORWARDED_FOR, false),
            (false, true) => (FORWARDED, true),
            _ => return peer,
        };
    let mut nearest = peer;
    let values: Vec<_> = headers.get_all(name).iter().collect();
    let hops = values.iter().rev().flat_map(|value| value.as_bytes().rsplit(|it| *it == b','));
    for hop in hops {
        let hop = std::str::from_utf8(hop).unwrap_or_default();
        let address = if is_extended { forwarded_for(hop) } else { node_address(hop) };
        // What is left of an unreadable entry cannot be attributed.
        let Some(address) = address else { return nearest };
        nearest = address;
        if !is_trusted(address) {
            break;
        }
    }
    nearest
}

/// Whether a trusted proxy has passed on both headers, so that the address of the client is not known.
pub(crate) fn is_ambiguous(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) -> bool {
    let has_both = headers.contains_key(X_FORWARDED_FOR) && headers.contains_key(FORWARDED);
    has_both && trusted.iter().any(|network| network.contains(peer.to_canonical()))
}

/// The address in the parameter `for` of an element of `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    node_address(node.trim().trim_matches('"'))
}

/// The address of a node, which may have a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]:80`.
fn node_address(node: &str) -> Option<IpAddr> {
    let node = node.trim();
    let without_port = || node.split_once(':').and_then(|(it, _)| it.parse().ok());
    let address = if let Some(rest) = node.strip_prefix('[') {
        rest.split_once(']')?.0.parse().ok()
    } else {
        node.parse().ok().or_else(without_port)
    };
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn the_headers_of_an_untrusted_peer_are_ignored() {
        let invented = [("x-forwarded-for", "198.51.100.1")];
        assert_eq!(of("192.0.2.9", &invented), "192.0.2.9");
        assert_eq!(of("::ffff:192.0.2.9", &[]), "192.0.2.9");
    }

    #[test]
    fn the_last_untrusted_address_is_the_client() {
        for (value, client) in [
            ("198.51.100.1", "198.51.100.1"),
            ("203.0.113.7, 198.51.100.1", "198.51.100.1"),
            ("203.0.113.7, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
            ("198.51.100.1:4711", "198.51.100.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("203.0.113.7, unknown, 10.0.0.2", "10.0.0.2"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(of("10.0.0.1", &[("x-forwarded-for", value)]), client, "{value}");
        }
        let two = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "198.51.100.1")];
        assert_eq!(of("10.0.0.1", &two), "198.51.100.1", "the proxy appends a header of its own");
    }

    #[test]
    fn the_standard_header_is_read_like_the_usual_one() {
        for (value, client) in [
            ("for=198.51.100.1;proto=https", "198.51.100.1"),
            ("for=203.0.113.7, proto=http;For=\"[2001:db8::1]:80\"", "2001:db8::1"),
            ("for=203.0.113.7, for=_hidden", "fd00::1"),
            ("for=203.0.113.7, proto=http", "fd00::1"),
        ] {
            assert_eq!(of("fd00::1", &[("forwarded", value)]), client, "{value}");
        }
    }

    #[test]
    fn with_both_headers_the_peer_counts_because_one_is_the_clients() {
        let both = [("x-forwarded-for", "198.51.100.1"), ("forwarded", "for=203.0.113.7")];
        assert_eq!(of("10.0.0.1", &both), "10.0.0.1");
        let headers = |names: &[&'static str]| -> HeaderMap {
            let value = HeaderValue::from_static("198.51.100.1");
            names.iter().map(|it| (HeaderName::from_static(it), value.clone())).collect()
        };
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let is_ambiguous = |peer: &str, names: &[&'static str]| {
            is_ambiguous(peer.parse().unwrap(), &headers(names), &trusted)
        };
        let both = ["x-forwarded-for", "forwarded"];
        assert!(is_ambiguous("10.0.0.1", &both) && is_ambiguous("::ffff:10.0.0.1", &both));
        assert!(!is_ambiguous("10.0.0.1", &both[..1]) && !is_ambiguous("10.0.0.1", &both[1..]));
        assert!(!is_ambiguous("192.0.2.9", &both), "the client can have written both");
    }
}
