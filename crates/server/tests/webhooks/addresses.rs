//! Public and private IP addresses, and names that resolve to private ones.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use galley_server::delivery::{
    HttpWebhookClient, NameCause, Resolve, SsrfGuard, SsrfPolicy, SystemResolver, UrlError,
    is_public,
};
use rustls::RootCertStore;

use super::receiver::{
    FixedResolver, LONG_TIMEOUT, SHORT_TIMEOUT, ScriptedReceiver, account, failure, ok,
    strict_guard,
};

/// First and last address of each private range, and its public neighbours.
const RANGES_V4: [(&str, &str, &[&str]); 15] = [
    ("0.0.0.0", "0.255.255.255", &["1.0.0.0"]),
    ("10.0.0.0", "10.255.255.255", &["9.255.255.255", "11.0.0.0"]),
    ("100.64.0.0", "100.127.255.255", &["100.63.255.255", "100.128.0.0"]),
    ("127.0.0.0", "127.255.255.255", &["126.255.255.255", "128.0.0.0"]),
    ("169.254.0.0", "169.254.255.255", &["169.253.255.255", "169.255.0.0"]),
    ("172.16.0.0", "172.31.255.255", &["172.15.255.255", "172.32.0.0"]),
    ("192.0.0.0", "192.0.0.255", &["191.255.255.255", "192.0.1.0"]),
    ("192.0.2.0", "192.0.2.255", &["192.0.1.255", "192.0.3.0"]),
    ("192.88.99.0", "192.88.99.255", &["192.88.98.255", "192.88.100.0"]),
    ("192.168.0.0", "192.168.255.255", &["192.167.255.255", "192.169.0.0"]),
    ("198.18.0.0", "198.19.255.255", &["198.17.255.255", "198.20.0.0"]),
    ("198.51.100.0", "198.51.100.255", &["198.51.99.255", "198.51.101.0"]),
    ("203.0.113.0", "203.0.113.255", &["203.0.112.255", "203.0.114.0"]),
    ("224.0.0.0", "239.255.255.255", &["223.255.255.255"]),
    ("240.0.0.0", "255.255.255.255", &[]),
];

const RANGES_V6: [(&str, &str, &[&str]); 14] = [
    ("::", "::", &[]),
    ("::1", "::1", &[]),
    ("::7f00:1", "::ffff:ffff", &[]),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", &[]),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", &[]),
    ("100::", "100::ffff:ffff:ffff:ffff", &[]),
    ("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1fff::", &["2000::"]),
    (
        "2001::",
        "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
        &["2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"],
    ),
    (
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        &["2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"],
    ),
    (
        "3fff::",
        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        &["3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"],
    ),
    ("4000::", "5f00::1", &["3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[]),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[]),
    ("fec0::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[]),
];

fn is_public_text(address: &str) -> bool {
    is_public(address.parse().unwrap())
}

#[test]
fn private_ranges_have_the_right_bounds() {
    for (first, last, neighbours) in RANGES_V4.iter().chain(&RANGES_V6) {
        assert!(!is_public_text(first), "{first}");
        assert!(!is_public_text(last), "{last}");
        for neighbour in *neighbours {
            assert!(is_public_text(neighbour), "{neighbour}");
        }
    }
    for public in ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::1"] {
        assert!(is_public_text(public), "{public}");
    }
}

/// The IPv6 addresses that embed an IPv4 address: mapped, NAT64 and 6to4.
fn embeddings(address: Ipv4Addr) -> [Ipv6Addr; 3] {
    let [a, b, c, d] = address.octets();
    let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    [
        address.to_ipv6_mapped(),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
    ]
}

#[test]
fn an_embedded_ipv4_address_decides_whether_an_ipv6_address_is_public() {
    for (first, last, neighbours) in RANGES_V4 {
        for (address, public) in [(&first, false), (&last, false)]
            .into_iter()
            .chain(neighbours.iter().map(|neighbour| (neighbour, true)))
        {
            for embedding in embeddings(address.parse().unwrap()) {
                assert_eq!(is_public(IpAddr::V6(embedding)), public, "{address} as {embedding}");
            }
        }
    }
}

/// IPv4 addresses of cloud metadata services, and link-local ones.
const METADATA_V4: [&str; 6] = [
    "169.254.169.254",
    "169.254.0.0",
    "169.254.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
];

/// IPv6 addresses of cloud metadata services, and link-local ones.
const METADATA_V6: [&str; 6] =
    ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::1", "febf:ffff::1"];

/// Neighbours of metadata addresses, which private networks may use.
const NOT_METADATA: [&str; 12] = [
    "169.253.255.255",
    "169.255.0.0",
    "100.100.100.199",
    "100.100.100.201",
    "168.63.129.15",
    "168.63.129.17",
    "192.0.0.191",
    "192.0.0.193",
    "fd00:ec1:ffff::254",
    "fd00:ec3::254",
    "fd00:42::43",
    "fec0::1",
];

/// Every IPv6 address that a translator or tunnel turns into this IPv4 address.
fn translations(address: Ipv4Addr) -> Vec<Ipv6Addr> {
    let [a, b, c, d] = address.octets();
    let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    let pair = |left: u8, right: u8| u16::from_be_bytes([left, right]);
    let nat64 = |tail: [u16; 5]| {
        let [first, second, third, fourth, fifth] = tail;
        Ipv6Addr::new(0x64, 0xff9b, 1, first, second, third, fourth, fifth)
    };
    let mut all = embeddings(address).to_vec();
    all.extend([
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
        nat64([0, 0, 0, high, low]),
        nat64([7, 7, 7, high, low]),
        nat64([high, pair(0, c), pair(d, 0), 0, 0]),
        nat64([pair(9, a), pair(0, b), pair(c, d), 0, 0]),
        nat64([9, pair(0, a), pair(b, c), pair(d, 0), 0]),
        Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 0),
        Ipv6Addr::new(0x2001, 0, 0x0808, 0x0808, 0, 0, !high, !low),
    ]);
    all
}

#[tokio::test]
async fn metadata_addresses_are_refused_even_where_private_networks_are_allowed() {
    let allowing = |address: IpAddr| {
        SsrfGuard::new(SsrfPolicy { allow_private: true }, Arc::new(FixedResolver(vec![address])))
    };
    let literal = |address: IpAddr| match address {
        IpAddr::V4(address) => format!("http://{address}/"),
        IpAddr::V6(address) => format!("http://[{address}]/"),
    };
    let v4 = METADATA_V4.iter().map(|it| it.parse::<Ipv4Addr>().unwrap());
    let translated = v4.clone().flat_map(translations).map(IpAddr::V6);
    let v6 = METADATA_V6.iter().map(|it| it.parse::<IpAddr>().unwrap());
    let mut checked = 0;
    for address in v4.map(IpAddr::V4).chain(translated).chain(v6) {
        for guard in [allowing(address), strict_guard(Arc::new(FixedResolver(vec![address])))] {
            let error = guard.resolve(account(), "https://example.com/").await.unwrap_err();
            assert_eq!(error.hidden_cause(), Some(NameCause::MetadataAddress), "{address}");
        }
        let error = allowing(address).check_url(&literal(address)).unwrap_err();
        assert_eq!(error, UrlError::MetadataAddress, "{address}");
        checked += 1;
    }
    assert_eq!(checked, METADATA_V4.len() * 13 + METADATA_V6.len());
    for address in NOT_METADATA {
        let address: IpAddr = address.parse().unwrap();
        allowing(address)
            .resolve(account(), "http://example.com/")
            .await
            .expect("a private address");
        allowing(address).check_url(&literal(address)).expect("a private address");
    }
}

#[tokio::test]
async fn every_unusable_name_gets_the_same_message_and_kind() {
    let private = FixedResolver::at(&["10.0.0.7"]) as Arc<dyn Resolve>;
    let metadata = FixedResolver::at(&["169.254.169.254"]);
    let mut answers = Vec::new();
    for (resolver, cause) in [
        (private, NameCause::PrivateAddress),
        (metadata, NameCause::MetadataAddress),
        (FixedResolver::at(&[]), NameCause::Unresolved),
        (Arc::new(FailingResolver), NameCause::Unresolved),
    ] {
        let guard = strict_guard(resolver);
        let error = guard.resolve(account(), "https://example.com/").await.unwrap_err();
        assert_eq!(error.hidden_cause(), Some(cause));
        let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
        let failure = failure(&client, "https://example.com/").await;
        assert_eq!(failure.hidden_cause, Some(cause), "the operator's log has the cause");
        answers.push((error.to_string(), failure.to_string()));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].1.starts_with("unresolved: "), "{answers:?}");
}

#[tokio::test]
async fn one_private_address_rejects_the_whole_name() {
    let receiver = ScriptedReceiver::start(vec![vec![ok()]; 8]).await;
    let url = format!("https://example.com:{}/", receiver.port());
    for addresses in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["2606:2800:220:1::1", "93.184.216.34", "::1"],
        &["::ffff:127.0.0.1"],
        &["fd00::1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::"],
    ] {
        let guard = strict_guard(FixedResolver::at(addresses));
        let error = guard.resolve(account(), &url).await.unwrap_err();
        assert_eq!(error.hidden_cause(), Some(NameCause::PrivateAddress), "{addresses:?}");
        let message = error.to_string();
        assert!(message.contains("example.com"), "{message}");
        for address in addresses {
            assert!(!message.contains(address), "the message reveals an address: {message}");
        }
        let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
        assert_eq!(failure(&client, &url).await.kind.as_str(), "unresolved", "{addresses:?}");
    }
    assert_eq!(receiver.connections(), 0);
}

/// Returns one address per lookup, in order.
struct SequenceResolver(Mutex<VecDeque<&'static str>>);

#[async_trait]
impl Resolve for SequenceResolver {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let address = self.0.lock().unwrap().pop_front().expect("one lookup per attempt");
        // A wrong port: the guard must use the port of the URL.
        Ok(vec![SocketAddr::new(address.parse().unwrap(), 22)])
    }
}

#[tokio::test]
async fn a_name_that_moves_to_a_private_address_is_rejected_at_the_next_attempt() {
    let receiver = ScriptedReceiver::start(vec![vec![ok()]]).await;
    let url = format!("https://example.com:{}/", receiver.port());
    let resolver =
        Arc::new(SequenceResolver(Mutex::new(VecDeque::from(["93.184.216.34", "127.0.0.1"]))));
    let guard = strict_guard(resolver.clone());
    let target = guard.resolve(account(), &url).await.unwrap();
    let checked = SocketAddr::new("93.184.216.34".parse().unwrap(), receiver.port());
    assert_eq!(target.addresses, [checked]);
    let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
    assert_eq!(failure(&client, &url).await.kind.as_str(), "unresolved");
    assert_eq!(receiver.connections(), 0);
    assert!(resolver.0.lock().unwrap().is_empty());
}

/// Fails every lookup.
struct FailingResolver;

#[async_trait]
impl Resolve for FailingResolver {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Never completes a lookup.
struct HangingResolver;

#[async_trait]
impl Resolve for HangingResolver {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_unresolved_and_a_hanging_lookup_times_out() {
    let url = "https://example.com/";
    for resolver in [FixedResolver::at(&[]) as Arc<dyn Resolve>, Arc::new(FailingResolver)] {
        let guard = strict_guard(resolver);
        let error = guard.resolve(account(), url).await.unwrap_err();
        assert_eq!(error.hidden_cause(), Some(NameCause::Unresolved));
        let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
        assert_eq!(failure(&client, url).await.kind.as_str(), "unresolved");
    }
    let client = HttpWebhookClient::new(
        strict_guard(Arc::new(HangingResolver)),
        SHORT_TIMEOUT,
        RootCertStore::empty(),
    );
    assert_eq!(failure(&client, url).await.kind.as_str(), "timeout");
}

#[tokio::test]
async fn the_system_resolver_resolves_names() {
    let guard = SsrfGuard::new(SsrfPolicy { allow_private: true }, Arc::new(SystemResolver::new()));
    let target = guard.resolve(account(), "http://localhost:8080/").await.unwrap();
    assert!(target.addresses.iter().all(|it| it.ip().is_loopback() && it.port() == 8_080));
}
