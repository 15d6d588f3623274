//! What the writers of the kill harness sent and were answered, and what the store has to hold
//! because of it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    time::Instant,
};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::{
    http::{self, Answer, Request},
    service::{get, raw_post},
};

/// One request, and what came of it as far as its writer knows.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) name: String,
    pub(crate) document: Value,
    pub(crate) key: Option<String>,
    /// Whether several writers sent this name.
    pub(crate) contested: bool,
    /// When the last of its bytes was handed over.
    pub(crate) at: Instant,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered 201 with these bytes.
    Acknowledged(Vec<u8>),
    /// Answered 409: another writer was faster.
    Taken,
    /// Not answered.
    Unknown,
}

impl Sent {
    pub(crate) fn request(&self) -> Request {
        let request = raw_post(self.document.to_string());
        match &self.key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        }
    }

    /// Checks after a restart that the promise of the answer is kept; answers what is wrong.
    pub(crate) fn check(&self, calls: &mut http::Connection) -> Result<(), String> {
        match &self.outcome {
            Outcome::Acknowledged(bytes) => self.check_acknowledged(bytes, calls),
            Outcome::Taken => {
                let again = call(calls, &self.request());
                demand(again.status == 409, "a taken name became free", &again)
            }
            Outcome::Unknown => self.check_unknown(calls),
        }
    }

    fn check_acknowledged(&self, bytes: &[u8], calls: &mut http::Connection) -> Result<(), String> {
        let receipt: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        self.check_kept(&receipt, calls)?;
        let again = call(calls, &self.request());
        if self.key.is_some() {
            demand(again.status == 201 && again.body == bytes, "another answer", &again)?;
            let replayed = again.header("idempotent-replayed") == Some("true");
            demand(replayed, "a replay that does not say so", &again)
        } else {
            let taken = again.status == 409 && again.json()["existing_id"] == receipt["id"];
            demand(taken, "the name is not taken by what was acknowledged", &again)
        }
    }

    /// Either wholly there or not at all; sending it again settles it.
    fn check_unknown(&self, calls: &mut http::Connection) -> Result<(), String> {
        let again = call(calls, &self.request());
        if self.contested && again.status == 409 {
            return Ok(());
        }
        match &self.key {
            Some(_) => {
                demand(again.status == 201, "a repetition was refused", &again)?;
                self.check_kept(&again.json(), calls)?;
                let third = call(calls, &self.request());
                let same =
                    third.body == again.body && third.header("idempotent-replayed").is_some();
                demand(same, "a third answer differs from the second", &third)
            }
            None if again.status == 409 => {
                let receipt = json!({
                    "id": again.json()["existing_id"], "status": "APPROVED", "category": "MARKETING",
                });
                self.check_kept(&receipt, calls)
            }
            None => {
                demand(again.status == 201, "a repetition was refused", &again)?;
                self.check_kept(&again.json(), calls)
            }
        }
    }

    /// What the receipt names is there, with every text as it was sent.
    fn check_kept(&self, receipt: &Value, calls: &mut http::Connection) -> Result<(), String> {
        let id = receipt["id"].as_str().ok_or_else(|| format!("no id in {receipt}"))?;
        let answer = call(calls, &get(id));
        demand(answer.status == 200, &format!("{} ({id}) is gone", self.name), &answer)?;
        let kept = answer.json();
        let sent = ["name", "language", "category", "allow_category_change", "components"];
        let same = sent.iter().all(|member| kept[member] == self.document[member])
            && ["id", "status", "category"].iter().all(|member| kept[member] == receipt[member]);
        demand(same, &format!("{} is not what was sent: {}", self.name, self.document), &answer)
    }
}

fn demand(good: bool, what: &str, seen: &Answer) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{what}: {} {}", seen.status, seen.text())) }
}

fn call(calls: &mut http::Connection, request: &Request) -> Answer {
    calls.send(&request.bytes()).unwrap();
    calls.answer().unwrap()
}

/// Looks into the file itself, behind the service's back: nothing is lost, nothing half-made,
/// nothing there that nobody sent. Answers what is wrong.
pub(crate) fn examine(file: &Path, all: &[Sent]) -> Vec<String> {
    let store = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut faults = Vec::new();
    for (what, query) in NOTHING_HALF_MADE {
        let count: i64 = store.query_row(query, [], |row| row.get(0)).unwrap();
        if count != 0 {
            faults.push(format!("{count} {what}"));
        }
    }
    let integrity: String =
        store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if integrity != "ok" {
        faults.push(integrity);
    }

    let mut wanted: HashMap<&str, Vec<&Sent>> = HashMap::new();
    for sent in all {
        wanted.entry(&sent.name).or_default().push(sent);
    }
    let mut query = store
        .prepare("SELECT t.id, t.name, t.content, i.key IS NOT NULL FROM template t LEFT JOIN idempotency i ON i.template_id = t.id")
        .unwrap();
    let mut rows = query.query([]).unwrap();
    let mut found = HashSet::new();
    while let Some(row) = rows.next().unwrap() {
        let (id, name): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        let (content, keyed): (String, bool) = (row.get(2).unwrap(), row.get(3).unwrap());
        let content: Value = serde_json::from_str(&content).unwrap();
        let candidates = wanted.get(&*name).map_or(&[][..], Vec::as_slice);
        if !candidates.iter().any(|it| it.document["components"] == content["components"]) {
            faults.push(format!("{name} ({id}) was sent by nobody like this: {content}"));
        }
        if let [only] = candidates
            && only.key.is_some() != keyed
        {
            faults.push(format!("{name} ({id}) has lost or gained an idempotency record"));
        }
        if !found.insert(name.clone()) {
            faults.push(format!("{name} is there twice"));
        }
    }
    let missing = wanted.keys().filter(|name| !found.contains(**name));
    faults.extend(missing.map(|name| format!("{name} is not in the file")));
    faults
}

/// What must not be in the file, and the query that counts it.
const NOTHING_HALF_MADE: [(&str, &str); 7] = [
    (
        "templates without exactly one event of their creation",
        "SELECT count(*) FROM template t WHERE 1 <> (SELECT count(*) FROM event e \
         WHERE e.template_id = t.id AND e.account_id = t.account_id AND e.type = 'template.created')",
    ),
    (
        "events without a template",
        "SELECT count(*) FROM event WHERE template_id NOT IN (SELECT id FROM template)",
    ),
    (
        "accounts whose events are not numbered 1, 2, 3 up to the last",
        "SELECT count(*) FROM account a WHERE \
         (SELECT count(*) || ' ' || coalesce(min(seq), 1) || ' ' || coalesce(max(seq), 0) \
          FROM event e WHERE e.account_id = a.id) <> last_seq || ' 1 ' || last_seq",
    ),
    (
        "idempotency records without a template",
        "SELECT count(*) FROM idempotency WHERE template_id NOT IN (SELECT id FROM template)",
    ),
    (
        "templates with two idempotency records",
        "SELECT count(*) FROM (SELECT 1 FROM idempotency GROUP BY template_id HAVING count(*) > 1)",
    ),
    (
        "names that are there twice",
        "SELECT count(*) FROM (SELECT 1 FROM template GROUP BY name HAVING count(*) > 1)",
    ),
    ("broken references", "SELECT count(*) FROM pragma_foreign_key_check"),
];
