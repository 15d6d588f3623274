//! Requests as ready bytes: a request is written once, and each sending only fills in what is new.

use std::fs;
use std::io::Write;

use serde_json::Value;

use crate::arguments::{Arguments, Mode};
use crate::variety::Variety;

/// Length of a random name and of a random Idempotency-Key.
pub const RANDOM: usize = 24;

/// Stands where random characters go until a request is sent.
pub(crate) const HOLE: &str = "~~~~~~~~~~~~~~~~~~~~~~~~";

/// Stands in a path where an id goes.
const ID: &str = "{id}";

/// 32 letters, so that 5 random bits choose one without a division.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What every connection sends: shared and never changed.
#[derive(Debug)]
pub struct Plan {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    /// What comes behind `bytes` when every request has a document of its own.
    variety: Option<Variety>,
    ids: Vec<String>,
    id_at: usize,
    /// Whether ids are taken one after the other.
    in_turn: bool,
}

/// A request of one connection, kept and reused.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    name_at: usize,
    id_len: usize,
    /// Where a document of its own is written before its length is known.
    document: Vec<u8>,
}

impl Plan {
    /// Reads the files that the arguments name and writes the request down.
    pub fn new(arguments: &Arguments) -> Result<Self, String> {
        let (body, variety) = body(arguments)?;
        let ids = ids(arguments)?;
        let get = arguments.mode == Mode::Get;
        let method = if get { "GET" } else { "POST" };
        let path = arguments.path.trim_end_matches('/');
        let (before, behind) = match path.split_once(ID) {
            Some(_) if ids.is_empty() => return Err(format!("{ID} in the path needs --ids")),
            Some((before, behind)) => (before.to_owned(), behind),
            None if ids.is_empty() => (path.to_owned(), ""),
            None => (format!("{path}/"), ""),
        };

        let start = format!("{method} {before}");
        let id_at = start.len();
        let mut head =
            vec![format!("{start}{behind} HTTP/1.1"), format!("Host: {}", arguments.url)];
        head.extend(arguments.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        if arguments.mode == Mode::CreateIdempotent {
            head.push(format!("Idempotency-Key: {HOLE}"));
        }
        if !get {
            head.push("Content-Type: application/json".to_owned());
        }
        if !get && variety.is_none() {
            head.push(format!("Content-Length: {}", body.len()));
        }
        let end = if variety.is_some() { "\r\n" } else { "\r\n\r\n" };
        let text = format!("{}{end}{body}", head.join("\r\n"));
        let holes = text.match_indices(HOLE).map(|(at, _)| at).collect();
        let in_turn = arguments.requests.is_some();
        Ok(Self { bytes: text.into_bytes(), holes, variety, ids, id_at, in_turn })
    }

    /// A request for one connection.
    pub fn request(&self) -> Request {
        // The name is behind the key.
        let name_at = self.holes.last().copied().unwrap_or(0);
        Request { bytes: self.bytes.clone(), name_at, id_len: 0, document: Vec::new() }
    }
}

impl Request {
    /// Gives the request a new name, key, id or document. `number` counts all requests from 0 on.
    pub fn renew(&mut self, plan: &Plan, number: u64, random: &mut fastrand::Rng) {
        for &hole in &plan.holes {
            fill(&mut self.bytes[hole..hole + RANDOM], random);
        }
        if let Some(variety) = &plan.variety {
            self.document.clear();
            let name_at = variety.write(&mut self.document, number, random);
            self.bytes.truncate(plan.bytes.len() + self.id_len);
            write!(self.bytes, "Content-Length: {}\r\n\r\n", self.document.len())
                .expect("a vector takes every byte");
            self.name_at = self.bytes.len() + name_at;
            self.bytes.extend_from_slice(&self.document);
        }
        if !plan.ids.is_empty() {
            let place = if plan.in_turn {
                usize::try_from(number).unwrap_or(0) % plan.ids.len()
            } else {
                random.usize(..plan.ids.len())
            };
            let id = plan.ids[place].as_bytes();
            let old = plan.id_at..plan.id_at + self.id_len;
            if old.len() == id.len() {
                self.bytes[old].copy_from_slice(id);
            } else {
                self.bytes.splice(old, id.iter().copied());
                self.id_len = id.len();
            }
        }
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name in them, in create modes.
    pub fn name(&self) -> &[u8] {
        self.bytes.get(self.name_at..self.name_at + RANDOM).unwrap_or_default()
    }
}

/// Twelve letters come from one draw of 60 bits.
pub(crate) fn fill(hole: &mut [u8], random: &mut fastrand::Rng) {
    for half in hole.chunks_mut(12) {
        let mut bits = random.u64(..);
        for letter in half {
            *letter = LETTERS[usize::try_from(bits & 31).unwrap_or(0)];
            bits >>= 5;
        }
    }
}

/// The document as compact JSON, with a hole for its name in create modes, or as one that varies.
fn body(arguments: &Arguments) -> Result<(String, Option<Variety>), String> {
    if arguments.vary && arguments.mode != Mode::Create {
        return Err("--vary is for create mode".to_owned());
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
        return Ok((String::new(), Some(Variety::new(document)?)));
    }
    let name = document.get_mut("name").ok_or("the document has no `name`")?;
    *name = Value::from(HOLE);
    Ok((document.to_string(), None))
}

fn ids(arguments: &Arguments) -> Result<Vec<String>, String> {
    let Some(file) = &arguments.ids else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let ids: Vec<String> = text.lines().map(str::to_owned).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() { Err(format!("{} holds no ids", file.display())) } else { Ok(ids) }
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

    /// A plan with these ids.
    fn with_ids(mode: &str, ids: &str, extra: &[&str]) -> Plan {
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
        request.renew(&plan, 0, &mut random);
        let first = text(&request);
        request.renew(&plan, 0, &mut random);
        let second = text(&request);
        assert_ne!(first, second);
        assert_eq!(first.len(), second.len());
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(!first.contains(HOLE));
        assert!(second.contains(&format!("\"name\":\"{}\"", name(&request))));
        let document: Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["name"].as_str().unwrap().len(), RANDOM);
        assert_eq!(document["components"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn a_varied_create_knows_its_length_and_its_name() {
        let plan = plan("create", &["--vary"]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..200 {
            request.renew(&plan, number, &mut random);
            let text = text(&request);
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{text}");
            let document: Value = serde_json::from_str(body).unwrap();
            assert_eq!(document["name"], name(&request));
        }
    }

    #[test]
    fn a_get_appends_ids_of_any_length() {
        let plan = with_ids("get", "7\n123456\n", &[]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20 {
            request.renew(&plan, 0, &mut random);
            let text = text(&request);
            let line = text.lines().next().unwrap();
            assert!(line == "GET /p/7 HTTP/1.1" || line == "GET /p/123456 HTTP/1.1", "{line}");
        }
    }

    #[test]
    fn an_id_goes_where_the_path_says_and_each_has_its_turn_in_a_counted_run() {
        let mut random = fastrand::Rng::with_seed(7);
        for (mode, path, expected) in [
            ("get", "/p?after={id}&limit=9", "GET /p?after=ID&limit=9 HTTP/1.1"),
            ("post", "/p/{id}/review", "POST /p/ID/review HTTP/1.1"),
        ] {
            let plan = with_ids(mode, "7\n123456\n", &["--requests", "4", "--path", path]);
            let mut request = plan.request();
            for (number, id) in ["7", "123456", "7", "123456"].iter().enumerate() {
                request.renew(&plan, number as u64, &mut random);
                let text = text(&request);
                assert_eq!(text.lines().next().unwrap(), expected.replace("ID", id));
            }
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let refused = |line: &[&str]| {
            let line = [&["load", "--url", "h:1"], line].concat();
            Plan::new(&Arguments::parse_from(line)).unwrap_err()
        };
        let get = ["--mode", "get", "--path"];
        assert!(refused(&[&get[..], &["/p/{id}"]].concat()).contains("--ids"));
        assert!(refused(&[&get[..], &["/p", "--vary"]].concat()).contains("create mode"));
    }
}
