//! Prebuilt request bytes: a request is built once, and each send fills in only what changes.

use std::fs;
use std::io::Write;

use serde_json::Value;

use crate::arguments::{Arguments, Mode};
use crate::document_generator::DocumentGenerator;

/// Length of a random name or Idempotency-Key, in characters.
pub const RANDOM_LEN: usize = 24;

/// Marks where random characters are filled in before each send.
pub(crate) const SLOT: &str = "~~~~~~~~~~~~~~~~~~~~~~~~";

/// Marks where an id is inserted into the path.
const ID_MARKER: &str = "{id}";

/// 32 letters: 5 random bits select one without a division.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The immutable request template shared by all connections.
#[derive(Debug)]
pub struct Plan {
    bytes: Vec<u8>,
    slots: Vec<usize>,
    /// Generates the body after `bytes` when every request has its own document.
    generator: Option<DocumentGenerator>,
    ids: Vec<String>,
    id_at: usize,
    /// Whether ids are used in order instead of at random.
    sequential_ids: bool,
}

/// The reusable request buffer of one connection.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    name_at: usize,
    id_len: usize,
    /// Buffer for a generated document, whose length is needed before it is sent.
    document: Vec<u8>,
}

impl Plan {
    /// Reads the files named in the arguments and builds the request.
    pub fn new(arguments: &Arguments) -> Result<Self, String> {
        let (body, generator) = body(arguments)?;
        let ids = ids(arguments)?;
        let get = arguments.mode == Mode::Get;
        let method = if get { "GET" } else { "POST" };
        let path = arguments.path.trim_end_matches('/');
        let (before, after) = match path.split_once(ID_MARKER) {
            Some(_) if ids.is_empty() => {
                return Err(format!("{ID_MARKER} in the path needs --ids"));
            }
            Some((before, after)) => (before.to_owned(), after),
            None if ids.is_empty() => (path.to_owned(), ""),
            None => (format!("{path}/"), ""),
        };

        let start = format!("{method} {before}");
        let id_at = start.len();
        let mut head = vec![format!("{start}{after} HTTP/1.1"), format!("Host: {}", arguments.url)];
        head.extend(arguments.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        if arguments.mode == Mode::CreateIdempotent {
            head.push(format!("Idempotency-Key: {SLOT}"));
        }
        if !get {
            head.push("Content-Type: application/json".to_owned());
        }
        if !get && generator.is_none() {
            head.push(format!("Content-Length: {}", body.len()));
        }
        let end = if generator.is_some() { "\r\n" } else { "\r\n\r\n" };
        let text = format!("{}{end}{body}", head.join("\r\n"));
        let slots = text.match_indices(SLOT).map(|(at, _)| at).collect();
        let sequential_ids = arguments.requests.is_some();
        Ok(Self { bytes: text.into_bytes(), slots, generator, ids, id_at, sequential_ids })
    }

    /// Returns a new request buffer for one connection.
    pub fn request(&self) -> Request {
        // The name comes after the Idempotency-Key.
        let name_at = self.slots.last().copied().unwrap_or(0);
        Request { bytes: self.bytes.clone(), name_at, id_len: 0, document: Vec::new() }
    }
}

impl Request {
    /// Fills in a new name, key, id or document. `number` is the index of the request, from 0.
    pub fn prepare(&mut self, plan: &Plan, number: u64, random: &mut fastrand::Rng) {
        for &slot in &plan.slots {
            fill_random(&mut self.bytes[slot..slot + RANDOM_LEN], random);
        }
        if let Some(generator) = &plan.generator {
            self.document.clear();
            let name_at = generator.write(&mut self.document, number, random);
            self.bytes.truncate(plan.bytes.len() + self.id_len);
            write!(self.bytes, "Content-Length: {}\r\n\r\n", self.document.len())
                .expect("writing to a Vec cannot fail");
            self.name_at = self.bytes.len() + name_at;
            self.bytes.extend_from_slice(&self.document);
        }
        if !plan.ids.is_empty() {
            let index = if plan.sequential_ids {
                usize::try_from(number).unwrap_or(0) % plan.ids.len()
            } else {
                random.usize(..plan.ids.len())
            };
            let id = plan.ids[index].as_bytes();
            let old = plan.id_at..plan.id_at + self.id_len;
            if old.len() == id.len() {
                self.bytes[old].copy_from_slice(id);
            } else {
                self.bytes.splice(old, id.iter().copied());
                self.id_len = id.len();
            }
        }
    }

    /// Returns the bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the template name in the request, in create modes.
    pub fn name(&self) -> &[u8] {
        self.bytes.get(self.name_at..self.name_at + RANDOM_LEN).unwrap_or_default()
    }
}

/// Fills the slot with random letters; 60 random bits give twelve letters.
pub(crate) fn fill_random(slot: &mut [u8], random: &mut fastrand::Rng) {
    for half in slot.chunks_mut(12) {
        let mut bits = random.u64(..);
        for letter in half {
            *letter = LETTERS[usize::try_from(bits & 31).unwrap_or(0)];
            bits >>= 5;
        }
    }
}

/// Returns the body as compact JSON, with a slot for its name in create modes, or a generator.
fn body(arguments: &Arguments) -> Result<(String, Option<DocumentGenerator>), String> {
    if arguments.vary && arguments.mode != Mode::Create {
        return Err("--vary is only valid in create mode".to_owned());
    }
    if arguments.mode == Mode::Get {
        return Ok((String::new(), None));
    }
    let file = arguments.document.as_ref().ok_or("this mode needs --document")?;
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if arguments.mode == Mode::Post {
        return Ok((text, None));
    }
    let mut document: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    if arguments.vary {
        return Ok((String::new(), Some(DocumentGenerator::new(document)?)));
    }
    let name = document.get_mut("name").ok_or("the document has no `name`")?;
    *name = Value::from(SLOT);
    Ok((document.to_string(), None))
}

fn ids(arguments: &Arguments) -> Result<Vec<String>, String> {
    let Some(file) = &arguments.ids else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let ids: Vec<String> = text.lines().map(str::to_owned).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() { Err(format!("{} contains no ids", file.display())) } else { Ok(ids) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use clap::Parser;

    use super::*;

    fn plan(mode: &str, extra: &[&str]) -> Plan {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample.json");
        let mut line = vec!["load", "--url", "h:1", "--mode", mode];
        line.extend(["--token", "t", "--document", sample]);
        if !extra.contains(&"--path") {
            line.extend(["--path", "/p"]);
        }
        line.extend(extra);
        Plan::new(&Arguments::parse_from(line)).unwrap()
    }

    fn text(request: &Request) -> String {
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    fn name(request: &Request) -> String {
        String::from_utf8(request.name().to_vec()).unwrap()
    }

    /// Returns a plan with these ids.
    fn plan_with_ids(mode: &str, ids: &str, extra: &[&str]) -> Plan {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("load-ids-{}-{count}", std::process::id()));
        fs::write(&file, ids).unwrap();
        let plan = plan(mode, &[&["--ids", file.to_str().unwrap()], extra].concat());
        fs::remove_file(&file).unwrap();
        plan
    }

    #[test]
    fn a_create_changes_only_its_name_and_key_and_stays_json() {
        let plan = plan("create-idempotent", &[]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        request.prepare(&plan, 0, &mut random);
        let first = text(&request);
        request.prepare(&plan, 0, &mut random);
        let second = text(&request);
        assert_ne!(first, second);
        assert_eq!(first.len(), second.len());
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(!first.contains(SLOT));
        assert!(second.contains(&format!("\"name\":\"{}\"", name(&request))));
        let document: Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["name"].as_str().unwrap().len(), RANDOM_LEN);
        assert_eq!(document["components"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn a_varied_create_has_the_right_length_and_name() {
        let plan = plan("create", &["--vary"]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..200 {
            request.prepare(&plan, number, &mut random);
            let text = text(&request);
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{text}");
            let document: Value = serde_json::from_str(body).unwrap();
            assert_eq!(document["name"], name(&request));
        }
    }

    #[test]
    fn a_get_appends_ids_of_any_length() {
        let plan = plan_with_ids("get", "7\n123456\n", &[]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20 {
            request.prepare(&plan, 0, &mut random);
            let text = text(&request);
            let line = text.lines().next().unwrap();
            assert!(line == "GET /p/7 HTTP/1.1" || line == "GET /p/123456 HTTP/1.1", "{line}");
        }
    }

    #[test]
    fn ids_are_inserted_at_the_marker_and_used_in_order_in_a_counted_run() {
        let mut random = fastrand::Rng::with_seed(7);
        for (mode, path, expected) in [
            ("get", "/p?after={id}&limit=9", "GET /p?after=ID&limit=9 HTTP/1.1"),
            ("post", "/p/{id}/review", "POST /p/ID/review HTTP/1.1"),
        ] {
            let plan = plan_with_ids(mode, "7\n123456\n", &["--requests", "4", "--path", path]);
            let mut request = plan.request();
            for (number, id) in ["7", "123456", "7", "123456"].iter().enumerate() {
                request.prepare(&plan, number as u64, &mut random);
                let text = text(&request);
                assert_eq!(text.lines().next().unwrap(), expected.replace("ID", id));
            }
        }
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        let error = |line: &[&str]| {
            let line = [&["load", "--url", "h:1"], line].concat();
            Plan::new(&Arguments::parse_from(line)).unwrap_err()
        };
        let get = ["--mode", "get", "--path"];
        assert!(error(&[&get[..], &["/p/{id}"]].concat()).contains("--ids"));
        assert!(error(&[&get[..], &["/p", "--vary"]].concat()).contains("create mode"));
    }
}
