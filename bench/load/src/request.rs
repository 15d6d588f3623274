//! Requests as ready bytes: a request is written once, and each sending only fills in what is new.

use std::fs;

use serde_json::Value;

use crate::arguments::{Arguments, Mode};

/// Length of a random name and of a random Idempotency-Key.
pub const RANDOM: usize = 24;

/// Stands where random characters go until a request is sent.
const HOLE: &str = "~~~~~~~~~~~~~~~~~~~~~~~~";

/// 32 letters, so that 5 random bits choose one without a division.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What every connection sends: shared and never changed.
#[derive(Debug)]
pub struct Plan {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    ids: Vec<String>,
    id_at: usize,
}

/// A request of one connection, kept and reused.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    id_len: usize,
}

impl Plan {
    /// Reads the files that the arguments name and writes the request down.
    pub fn new(arguments: &Arguments) -> Result<Self, String> {
        let body = body(arguments)?;
        let ids = ids(arguments)?;
        let get = arguments.mode == Mode::Get;
        let method = if get { "GET" } else { "POST" };
        let path = arguments.path.trim_end_matches('/');
        let slash = if ids.is_empty() { "" } else { "/" };

        let start = format!("{method} {path}{slash}");
        let id_at = start.len();
        let mut head = vec![format!("{start} HTTP/1.1"), format!("Host: {}", arguments.url)];
        head.extend(arguments.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        if arguments.mode == Mode::CreateIdempotent {
            head.push(format!("Idempotency-Key: {HOLE}"));
        }
        if !get {
            head.push("Content-Type: application/json".to_owned());
            head.push(format!("Content-Length: {}", body.len()));
        }
        let text = format!("{}\r\n\r\n{body}", head.join("\r\n"));
        let holes = text.match_indices(HOLE).map(|(at, _)| at).collect();
        Ok(Self { bytes: text.into_bytes(), holes, ids, id_at })
    }

    /// A request for one connection.
    pub fn request(&self) -> Request {
        Request { bytes: self.bytes.clone(), id_len: 0 }
    }
}

impl Request {
    /// Gives the request a new name, key or id.
    pub fn renew(&mut self, plan: &Plan, random: &mut fastrand::Rng) {
        for &hole in &plan.holes {
            fill(&mut self.bytes[hole..hole + RANDOM], random);
        }
        if !plan.ids.is_empty() {
            let id = plan.ids[random.usize(..plan.ids.len())].as_bytes();
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
}

/// Twelve letters come from one draw of 60 bits.
fn fill(hole: &mut [u8], random: &mut fastrand::Rng) {
    for half in hole.chunks_mut(12) {
        let mut bits = random.u64(..);
        for letter in half {
            *letter = LETTERS[usize::try_from(bits & 31).unwrap_or(0)];
            bits >>= 5;
        }
    }
}

/// The document as compact JSON, with a hole for its name in create modes.
fn body(arguments: &Arguments) -> Result<String, String> {
    if arguments.mode == Mode::Get {
        return Ok(String::new());
    }
    let file = arguments.document.as_ref().ok_or("this mode needs --document")?;
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if arguments.mode == Mode::Post {
        return Ok(text);
    }
    let mut document: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let name = document.get_mut("name").ok_or("the document has no `name`")?;
    *name = Value::from(HOLE);
    Ok(document.to_string())
}

fn ids(arguments: &Arguments) -> Result<Vec<String>, String> {
    let Some(file) = &arguments.ids else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let ids: Vec<String> = text.lines().map(str::to_owned).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() { Err(format!("{} holds no ids", file.display())) } else { Ok(ids) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn plan(mode: &str, extra: &[&str]) -> Plan {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample.json");
        let mut line = vec!["load", "--url", "h:1", "--path", "/p", "--mode", mode];
        line.extend(["--token", "t", "--document", sample]);
        line.extend(extra);
        Plan::new(&Arguments::parse_from(line)).unwrap()
    }

    fn text(request: &Request) -> String {
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    #[test]
    fn a_create_changes_only_its_name_and_key_and_stays_json() {
        let plan = plan("create-idempotent", &[]);
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        request.renew(&plan, &mut random);
        let first = text(&request);
        request.renew(&plan, &mut random);
        let second = text(&request);
        assert_ne!(first, second);
        assert_eq!(first.len(), second.len());
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(!first.contains(HOLE));
        let document: Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["name"].as_str().unwrap().len(), RANDOM);
        assert_eq!(document["components"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn a_get_appends_ids_of_any_length() {
        let file = std::env::temp_dir().join(format!("load-ids-{}", std::process::id()));
        fs::write(&file, "7\n123456\n").unwrap();
        let plan = plan("get", &["--ids", file.to_str().unwrap()]);
        fs::remove_file(&file).unwrap();
        let mut request = plan.request();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20 {
            request.renew(&plan, &mut random);
            let text = text(&request);
            let line = text.lines().next().unwrap();
            assert!(line == "GET /p/7 HTTP/1.1" || line == "GET /p/123456 HTTP/1.1", "{line}");
        }
    }
}
