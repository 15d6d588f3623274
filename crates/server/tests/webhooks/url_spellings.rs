//! Spellings of forbidden URLs, and the error that each one causes.

use std::io::ErrorKind;

use galley_server::delivery::{HttpWebhookClient, UrlError};
use rustls::RootCertStore;

use super::receiver::{
    FixedResolver, LONG_TIMEOUT, ScriptedReceiver, account, failure, ok, private_client,
    private_guard, status, strict_guard,
};

/// Forbidden URLs by the name of their error. `PORT` is the port of a receiver on 127.0.0.1.
const FORBIDDEN: [(&str, &[&str]); 12] = [
    (
        "MetadataAddress",
        &[
            "https://[fe80::1]:PORT/",
            "https://[::ffff:169.254.169.254]/latest/meta-data/",
            "https://169.254.169.254/latest/meta-data/",
            "https://2852039166/latest/meta-data/",
            "https://0xa9fea9fe/latest/meta-data/",
            "https://0251.0376.0251.0376/latest/meta-data/",
            "https://[::169.254.169.254]/latest/meta-data/",
            "https://[64:ff9b::169.254.169.254]/latest/meta-data/",
            "https://[2002:a9fe:a9fe::]/latest/meta-data/",
            "https://[fd00:ec2::254]/latest/meta-data/",
            "https://100.100.100.200/latest/meta-data/",
            "https://168.63.129.16/machine?comp=goalstate",
        ],
    ),
    (
        "IpAddress",
        &[
            "https://127.0.0.1:PORT/",
            "HTTPS://127.0.0.1:PORT/",
            "https:127.0.0.1:PORT/",
            "https:/127.0.0.1:PORT/",
            "https:////127.0.0.1:PORT/",
            "https://127.0.0.1.:PORT/",
            "https://127.1:PORT/",
            "https://127.0.1:PORT/",
            "https://2130706433:PORT/",
            "https://017700000001:PORT/",
            "https://0177.0.0.01:PORT/",
            "https://0x7f000001:PORT/",
            "https://0X7F000001:PORT/",
            "https://0x7f.1:PORT/",
            "https://0x7f.0x0.0x0.0x1:PORT/",
            "https://127.0.0.0x1:PORT/",
            "https://１２７.０.０.１:PORT/",
            "https://①②⑦.⓪.⓪.①:PORT/",
            "https://127。0。0。1:PORT/",
            "https://%31%32%37.0.0.1:PORT/",
            "https://127%2e0%2e0%2e1:PORT/",
            "https://0:PORT/",
            "https://0x:PORT/",
            "https://0.0.0.0:PORT/",
            "https://127.255.255.254:PORT/",
            "https://[::1]:PORT/",
            "https://[0:0:0:0:0:0:0:1]:PORT/",
            "https://[::]:PORT/",
            "https://[::ffff:127.0.0.1]:PORT/",
            "https://[::FFFF:7F00:1]:PORT/",
            "https://[::127.0.0.1]:PORT/",
            "https://[64:ff9b::127.0.0.1]:PORT/",
            "https://[2002:7f00:1::]:PORT/",
            "https://[fd00::1]:PORT/",
            "https://[ff02::1]:PORT/",
            "https://10.0.0.1/",
            "https://172.16.0.1/",
            "https://192.168.0.1/",
            "https://255.255.255.255/",
            "https://8.8.8.8/",
            "https://[2606:4700:4700::1111]/",
        ],
    ),
    (
        "LocalName",
        &[
            "https://localhost:PORT/",
            "https://LOCALHOST:PORT/",
            "https://localhost.:PORT/",
            "https://hooks.localhost:PORT/",
            "https://hooks.LocalHost.:PORT/",
            "https://loc%61lhost:PORT/",
            "https://ｌｏｃａｌｈｏｓｔ:PORT/",
            "https://lo\u{ad}calhost:PORT/",
            "https://printer.local:PORT/",
            "https://metadata.google.internal:PORT/",
            "https://host.docker.internal:PORT/",
            "https://intranet:PORT/",
        ],
    ),
    (
        "UserInfo",
        &[
            "https://user@127.0.0.1:PORT/",
            "https://user:password@example.com:PORT/",
            "https://example.com@127.0.0.1:PORT/",
            "https://example.com:443@127.0.0.1:PORT/",
            "https://@127.0.0.1:PORT/",
            "https://:@example.com:PORT/",
            "https://a@b@127.0.0.1:PORT/",
            "https:user@127.0.0.1:PORT/",
            "https://example.com%2f@127.0.0.1:PORT/",
        ],
    ),
    (
        "Characters",
        &[
            r"https://example.com\@127.0.0.1:PORT/",
            r"https:\\127.0.0.1:PORT/",
            r"https://127.0.0.1:PORT\",
            "https://127.0\t.0.1:PORT/",
            "https://127.0.0.1\n:PORT/",
            "ht\ntps://127.0.0.1:PORT/",
            "https://example.com:PORT/\r\nX-Injected: yes",
            " https://127.0.0.1:PORT/",
            "https://127.0.0.1:PORT/ ",
            "https://example.com:PORT/\u{0}",
            "https://example.com:PORT/\u{7f}",
            "https://example.com:PORT/\u{85}",
            "https://example\u{a0}.com:PORT/",
            "https://example.com:PORT/\u{2028}",
        ],
    ),
    ("Fragment", &["https://example.com#@127.0.0.1:PORT/", "https://example.com:PORT/#"]),
    (
        "Scheme",
        &[
            "http://127.0.0.1:PORT/",
            "http://example.com:PORT/",
            "ftp://127.0.0.1:PORT/",
            "gopher://127.0.0.1:PORT/_GET",
            "ws://127.0.0.1:PORT/",
            "wss://example.com:PORT/",
            "file:///etc/passwd",
            "unix:///var/run/docker.sock",
            "unix:/var/run/docker.sock",
            "javascript:alert(1)",
            "javascript://127.0.0.1:PORT/",
            "data:text/plain,hello",
            "blob:https://127.0.0.1:PORT/",
            "view-source:https://127.0.0.1:PORT/",
            "localhost:PORT",
        ],
    ),
    (
        "Unparsable",
        &[
            "",
            "https://",
            "//127.0.0.1:PORT/",
            "/hook",
            "127.0.0.1:PORT",
            "https://[fe80::1%25lo]:PORT/",
            "https://[::1%lo]:PORT/",
            "https://[::1:PORT/",
            "https://127.0.0.256:PORT/",
            "https://127.0.0.1.1:PORT/",
            "https://127.0.0.1:99999/",
            "https://127.0.0.1:-1/",
            "https://example.com%40127.0.0.1:PORT/",
            "https://127.0.0.1%00.example.com:PORT/",
        ],
    ),
    (
        "InvalidName",
        &["https://a..example.com:PORT/", "https://.example.com:PORT/", "https://*.example.com/"],
    ),
    ("PortZero", &["https://example.com:0/"]),
    (
        "Port",
        &[
            "https://example.com:22/",
            "https://example.com:25/",
            "https://example.com:80/",
            "https://example.com:1023/",
        ],
    ),
    (
        "UnusableName",
        &[
            "https://example.com:PORT/",
            "https://example.com.:PORT/",
            "https://example.com:PORT/?@127.0.0.1",
            "https://example.com:PORT?@127.0.0.1/",
            "https://127.0.0.1.nip.io:PORT/",
            "https://bücher.example:PORT/",
        ],
    ),
];

/// URLs that are too long for the table.
fn overlong() -> Vec<(&'static str, String)> {
    let label = "a".repeat(63);
    vec![
        ("TooLong", format!("https://example.com/{}", "a".repeat(2_000))),
        ("TooLong", format!("https://{}.example.com/", "a".repeat(2_000))),
        ("InvalidName", format!("https://{label}a.example.com/")),
        ("InvalidName", format!("https://{label}.{label}.{label}.{label}.com/")),
    ]
}

/// Every forbidden URL with the name of its error.
fn forbidden(port: u16) -> Vec<(&'static str, String)> {
    let rows = FORBIDDEN.iter().flat_map(|(name, urls)| urls.iter().map(|url| (*name, *url)));
    let rows = rows.map(|(name, url)| (name, url.replace("PORT", &port.to_string())));
    rows.chain(overlong()).collect()
}

fn name_of(error: &UrlError) -> String {
    format!("{error:?}").split(['(', ' ']).next().unwrap().to_owned()
}

#[tokio::test]
async fn no_spelling_of_a_forbidden_url_causes_a_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Every name resolves to the listener.
    let guard = strict_guard(FixedResolver::loopback());
    let client = HttpWebhookClient::new(guard.clone(), LONG_TIMEOUT, RootCertStore::empty());
    let rows = forbidden(port);
    assert!(rows.len() >= 60, "{} spellings", rows.len());
    for (expected, url) in rows {
        let error = guard.resolve(account(), &url).await.expect_err(&url);
        assert_eq!(name_of(&error), expected, "{url:?}");
        let failure = failure(&client, &url).await;
        let kind = if expected == "UnusableName" { "unresolved" } else { "refused" };
        assert_eq!(failure.kind.as_str(), kind, "{url:?}");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{url:?}");
    }
}

#[tokio::test]
async fn an_operator_can_allow_private_addresses_and_http_but_no_ambiguous_urls() {
    let receiver = ScriptedReceiver::start(vec![vec![ok()]; 8]).await;
    let port = receiver.port();
    let allowed = ["127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "hooks"];
    for host in allowed {
        let url = format!("http://{host}:{port}/");
        assert_eq!(status(&private_client(LONG_TIMEOUT), &url).await, 200, "{url}");
    }
    assert_eq!(receiver.connections(), allowed.len());
    let always = [
        "TooLong",
        "Characters",
        "Unparsable",
        "UserInfo",
        "Fragment",
        "InvalidName",
        "PortZero",
        "MetadataAddress",
    ];
    let mut checked = 0;
    for (expected, url) in forbidden(port) {
        let result = private_guard().check_url(&url);
        if always.contains(&expected) {
            assert_eq!(name_of(&result.expect_err(&url)), expected, "{url:?}");
            checked += 1;
        } else if expected != "Scheme" {
            result.expect(&url);
        }
    }
    assert!(checked > always.len());
    for url in ["ftp://127.0.0.1/", "file:///etc/passwd", "javascript:alert(1)"] {
        assert_eq!(private_guard().check_url(url).unwrap_err(), UrlError::Scheme, "{url}");
    }
}

#[tokio::test]
async fn ordinary_urls_resolve_to_their_checked_addresses() {
    let guard = strict_guard(FixedResolver::at(&["93.184.216.34", "2606:2800:220:1::1"]));
    for (url, port) in [
        ("https://example.com", 443),
        ("https://hooks.example.com:8443/a/b?c=d&e=%20", 8443),
        ("https://example.com:1024/@user", 1_024),
        ("https://my_app.example.com/", 443),
        ("https://127.0.0.1.example.com/", 443),
        ("https://bücher.example/", 443),
        ("https://localhost.example.com/", 443),
    ] {
        let target = guard.resolve(account(), url).await.expect(url);
        let addresses: Vec<String> = target.addresses.iter().map(ToString::to_string).collect();
        let expected = [format!("93.184.216.34:{port}"), format!("[2606:2800:220:1::1]:{port}")];
        assert_eq!(addresses, expected, "{url}");
    }
    let longest = format!("https://example.com/{}", "ü".repeat(1_980));
    guard.check_url(&longest).unwrap();
    let label = "a".repeat(63);
    let longest = format!("https://{label}.{label}.{label}.{}/", "a".repeat(61));
    guard.check_url(&longest).unwrap();
}

#[test]
fn errors_mention_the_operator_setting_exactly_if_it_would_help() {
    let (strict, lenient) = (strict_guard(FixedResolver::loopback()), private_guard());
    for (expected, url) in forbidden(8_443) {
        let Err(error) = strict.check_url(&url) else { continue };
        let is_allowed = lenient.check_url(&url).is_ok();
        let mentions_setting = error.to_string().contains("GALLEY_WEBHOOKS_ALLOW_PRIVATE=true");
        // The setting allows only http of the other schemes; the message says so.
        assert!(is_allowed == mentions_setting || expected == "Scheme", "{url:?}: {error}");
    }
}
