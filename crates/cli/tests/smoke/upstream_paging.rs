//! Pages of a provider whose `paging.next` contains a secret, as that of Meta does: the service never
//! calls that address, and the secret appears nowhere.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::upstream::{Mirror, SECRET_KEY, create, provider};
use crate::{
    http::{Connection, Request, TIMEOUT, find},
    service::{GALLEY, Launch, command, galley, json_of, until},
};

const CANARY: &str = "canary-paging-next-9Vb2LqXw71";

/// What the service has sent, and what it gets.
#[derive(Default)]
struct Provider {
    /// All requests: their heads.
    requests: Mutex<Vec<String>>,
    pages: Mutex<usize>,
    /// Whether every page fails.
    is_failing: AtomicBool,
}

impl Provider {
    /// Stands before an emulator until the test process ends. Returns its address.
    fn start(self: &Arc<Self>, emulator: SocketAddr) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v23.0", listener.local_addr().unwrap());
        let provider = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming() {
                provider.answer(&mut stream.unwrap(), emulator);
            }
        });
        url
    }

    fn answer(&self, stream: &mut TcpStream, emulator: SocketAddr) {
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
        let Some(path) = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) else {
            return;
        };
        let mut request = Request::get(with_small_pages(path));
        for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("authorization") {
                request = request.header(name, value);
            }
        }
        let is_page = path.contains("/message_templates?");
        self.requests.lock().unwrap().push(head);
        let mut connection = Connection::open(emulator).unwrap();
        connection.send(&request.bytes()).unwrap();
        let response = connection.read_response().unwrap();
        let (mut status, mut body) = (response.status, response.body);
        if is_page {
            (status, body) = self.page(status, &body);
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    }

    /// The page with the secret. The second one is cut off behind it, and the fourth one is an error.
    fn page(&self, status: u16, body: &[u8]) -> (u16, Vec<u8>) {
        let mut number = self.pages.lock().unwrap();
        *number += 1;
        let next = format!(
            "https://provider.test/v23.0/1/message_templates?access_token={CANARY}&after=x"
        );
        if *number == 4 || self.is_failing.load(Ordering::Relaxed) {
            let error = json!({"message": "An unknown error occurred.", "code": 2});
            let body = json!({"error": error, "paging": {"next": next}});
            return (500, body.to_string().into_bytes());
        }
        let mut page: Value = serde_json::from_slice(body).unwrap();
        if page["paging"]["next"].is_string() {
            page["paging"]["next"] = json!(next);
        }
        let mut body = page.to_string().into_bytes();
        if *number == 2 {
            let end = find(&body, CANARY.as_bytes()).unwrap() + CANARY.len();
            body.truncate(end);
        }
        (status, body)
    }
}

/// The path of a page, with at most two templates.
fn with_small_pages(path: &str) -> String {
    match path.split_once("limit=") {
        Some((before, after)) => {
            let limit: String = after.chars().take_while(char::is_ascii_digit).collect();
            let small = limit.parse::<u32>().unwrap().min(2);
            format!("{before}limit={small}{}", &after[limit.len()..])
        }
        None => path.to_owned(),
    }
}

#[test]
fn an_address_of_a_next_page_with_a_token_is_not_called_and_appears_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let emulator = provider(dir.path());
    create(&emulator, &["order", "receipt", "parcel", "refund", "offer"]);
    let address = emulator.member("url").trim_start_matches("http://").parse().unwrap();
    let pages = Arc::new(Provider::default());
    let base_url = pages.start(address);
    let mirror = Mirror::new();
    let token = emulator.member("token");
    let waba = emulator.member("waba_id");
    let connect = ["connect", "shop", "--base-url", &base_url, "--waba", waba];
    let connect = [&connect[..], &["--token-file", "-", "--json"]].concat();
    json_of(&mirror.reading(token, &connect));
    // The import begins, and the service continues it.
    pages.is_failing.store(true, Ordering::Relaxed);
    assert!(!mirror.reading("", &["import", "shop"]).status.success());
    mirror.json("resume");
    pages.is_failing.store(false, Ordering::Relaxed);
    *pages.pages.lock().unwrap() = 0;

    let mut service = Launch::with(command(GALLEY), mirror.dir.path())
        .flags(&["--log-format", "json", "--set", "log_level=trace"])
        .flags(&["--set", "upstream_allow_private=true"])
        .variable("GALLEY_SECRET_KEY", SECRET_KEY)
        .start();
    until(TIMEOUT, "the import has ended", || mirror.json("status")["templates"] == 5);
    assert!(*pages.pages.lock().unwrap() >= 5, "three pages, and two that failed");
    until(TIMEOUT, "the lease is free", || mirror.reading("", &["sync", "shop"]).status.success());
    assert_eq!(mirror.json("check")["templates"], 5);
    pages.is_failing.store(true, Ordering::Relaxed);
    let failed = mirror.reading("", &["sync", "shop"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert_eq!(mirror.json("status")["degraded"], "unreachable");

    mirror.assert_hides(CANARY);
    let metrics = service.send(&Request::get("/metrics")).text();
    assert!(metrics.contains("galley_upstream_calls_total"), "{metrics}");
    let backup = galley(mirror.dir.path(), &["backup", "copy"]);
    assert!(backup.status.success(), "{backup:?}");
    service.signal("TERM");
    assert!(service.wait().success());
    // The backup, and the database without its write-ahead log.
    mirror.assert_hides(CANARY);
    for text in [&metrics, &service.log.text(), &service.printed.text()] {
        assert!(find(text.as_bytes(), CANARY.as_bytes()).is_none(), "found a secret in {text}");
    }
    for request in &*pages.requests.lock().unwrap() {
        assert!(!request.contains(CANARY), "the service called the address: {request}");
    }
}
