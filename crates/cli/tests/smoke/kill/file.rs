//! A look into the store's file, behind the service's back: nothing is lost, nothing doubled,
//! nothing half-made, nothing there that nobody asked for.

use std::collections::HashMap;

use galley_domain::template::{
    Review,
    lifecycle::{EventType, Hold, State, Trigger},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{ledger::Ledger, life::Life, tenant::TENANTS};

/// Compares all that is kept with the ledger, and with itself. Answers what is wrong.
pub(super) fn examine(store: &Connection, ledger: &Ledger) -> Vec<String> {
    store.execute_batch(&copies()).unwrap();
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
    store.execute_batch(NO_COPIES).unwrap();
    let kept = kept(store, None);
    for (id, kept) in kept.iter().filter(|(_, kept)| !kept.row.is_null()) {
        faults.extend(kept.moved_along_the_table().err().map(|fault| format!("{id}: {fault}")));
        match ledger.lives.get(id) {
            Some(life) => faults.extend(kept.compare(life).err()),
            None if ledger.broken.contains(id) => {}
            None => faults.push(format!("{id} was sent by nobody: {}", kept.row)),
        }
    }
    let is_missing = |life: &&Life| kept.get(&life.id).is_none_or(|kept| kept.row.is_null());
    let missing = ledger.lives.values().filter(is_missing);
    faults.extend(missing.map(|life| format!("{} ({}) is not in the file", life.name, life.id)));
    faults
}

/// All that the file holds of one template.
#[derive(Debug, Default)]
pub(super) struct Kept {
    row: Value,
    versions: Vec<Value>,
    events: Vec<Value>,
}

/// What the file holds of these templates, or of all.
pub(super) fn kept(store: &Connection, ids: Option<&[&str]>) -> HashMap<String, Kept> {
    let ids = ids.map(|ids| format!("[{}]", ids.join(",")));
    let mut kept: HashMap<String, Kept> = HashMap::new();
    let mut read = |query: &str, put: fn(&mut Kept, Value)| {
        let mut query = store.prepare(query).unwrap();
        let mut rows = query.query([&ids]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (id, object): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            let object = serde_json::from_str(&object).unwrap();
            put(kept.entry(id.to_string()).or_default(), object);
        }
    };
    read(TEMPLATES, |kept, row| kept.row = row);
    read(&versions(), |kept, row| kept.versions.push(row));
    read(EVENTS, |kept, row| kept.events.push(row));
    kept
}

impl Kept {
    /// Whether it is what the ledger says.
    pub(super) fn compare(&self, life: &Life) -> Result<(), String> {
        let Life { name, id, .. } = life;
        let differ = |what, kept: &[Value], wanted: &[Value]| {
            let place = kept.iter().zip(wanted).take_while(|(kept, wanted)| kept == wanted).count();
            match [kept.get(place), wanted.get(place)] {
                [None, None] => Ok(()),
                two => {
                    let [kept, wanted] = two.map(|it| it.unwrap_or(&Value::Null));
                    Err(format!("{what} {place} of {name} ({id}) is {kept}, not {wanted}"))
                }
            }
        };
        differ("row", std::slice::from_ref(&self.row), &[life.row()])?;
        differ("version", &self.versions, &life.rows_of_versions())?;
        differ("event", &self.events, life.rows_of_events())
    }

    /// Replays its events along the table of moves, whatever the ledger says: each has to be
    /// possible where it stands, and the last has to lead to what the row says.
    fn moved_along_the_table(&self) -> Result<(), String> {
        let owner = TENANTS.iter().find(|tenant| self.row["account"] == tenant.account);
        let review = owner.ok_or("it belongs to nobody")?.review;
        let kind = |event: &Value| event["type"].as_str().and_then(EventType::parse);
        let (mut state, mut gone, mut last) = (State::initial(review), false, None);
        for event in &self.events {
            let now = kind(event).ok_or_else(|| format!("{event} is no event"))?;
            state = next(state, last, now, review)
                .filter(|_| !gone)
                .ok_or_else(|| format!("{event} is not possible at {state:?}, after {last:?}"))?;
            if event["version"] != state.version || event["status"] != state.status().as_str() {
                return Err(format!("{event} does not tell {state:?}"));
            }
            gone = now == EventType::Deleted;
            last = Some(now);
        }
        let newest = self.versions.last().unwrap_or(&Value::Null);
        let stands = json!([
            newest["version"],
            newest["status"],
            self.row["hold"],
            self.row["live_version"],
            self.row["revision"],
            self.row["gone"],
        ]);
        let leads = json!([
            state.version,
            state.newest.as_str(),
            state.hold.map(Hold::as_str),
            state.approved,
            self.events.len(),
            u8::from(gone),
        ]);
        if stands == leads {
            Ok(())
        } else {
            Err(format!("its row says {stands}, its events lead to {leads}"))
        }
    }
}

/// Where an event leads to, if it can follow the last one.
fn next(state: State, last: Option<EventType>, now: EventType, review: Review) -> Option<State> {
    let trigger = match now {
        EventType::Created => return last.is_none().then_some(state),
        EventType::CategoryChanged => return (last == Some(EventType::Edited)).then_some(state),
        EventType::Edited => Trigger::Edit,
        EventType::Approved => Trigger::Approve,
        EventType::Rejected => Trigger::Reject,
        EventType::Paused => Trigger::Pause,
        EventType::Resumed => Trigger::Resume,
        EventType::Disabled => Trigger::Disable,
        EventType::Deleted => Trigger::Delete,
        EventType::WebhookDisabled => return None,
    };
    let (after, told) = state.apply(trigger, review).ok()?;
    (last.is_some() && told == now).then_some(after)
}

const TEMPLATES: &str = "SELECT t.id, json_object('account', a.name, 'gone', claim IS NULL, \
     'name', t.name, 'language', language, 'allow_category_change', allow_category_change, \
     'hold', hold, 'live_version', live_version, 'revision', revision, \
     'keyed', t.id IN (SELECT template_id FROM idempotency)) \
     FROM template t LEFT JOIN account a ON a.id = t.account_id \
     WHERE ?1 IS NULL OR t.id IN (SELECT value FROM json_each(?1))";

const EVENTS: &str = "SELECT template_id, json_object('type', type, 'version', version, \
     'category', category, 'status', status, 'reason', reason) FROM event \
     WHERE ?1 IS NULL OR template_id IN (SELECT value FROM json_each(?1)) \
     ORDER BY template_id, seq";

/// Every version, whether it is the newest or not.
const EDITIONS: &str = "SELECT id AS template_id, version, status, category, previous_category, \
     content, actor, coalesce(version_at, created_at) AS made_at, reason, decided_at, decided_by \
     FROM template UNION ALL SELECT template_id, version, status, category, previous_category, \
     content, actor, created_at, reason, decided_at, decided_by FROM former_version";

fn versions() -> String {
    format!(
        "SELECT template_id, json_object('version', version, 'status', status, \
         'category', category, 'previous_category', previous_category, \
         'decided', decided_at IS NOT NULL, 'reason', reason, 'content', json(content)) \
         FROM ({EDITIONS}) WHERE ?1 IS NULL OR template_id IN (SELECT value FROM json_each(?1)) \
         ORDER BY template_id, version"
    )
}

/// Copies with an index: the file itself needs none for these questions. The facts are the
/// events, numbered for each template.
fn copies() -> String {
    format!(
        "CREATE TEMP TABLE edition AS {EDITIONS}; \
         CREATE INDEX temp.edition_of_template ON edition (template_id, version); \
         CREATE TEMP TABLE fact AS \
         SELECT *, row_number() OVER (PARTITION BY template_id ORDER BY seq) AS revision \
         FROM event; \
         CREATE INDEX temp.fact_of_template ON fact (template_id, revision)"
    )
}

const NO_COPIES: &str = "DROP TABLE temp.edition; DROP TABLE temp.fact";

/// What must not be in the file, and the query that counts it.
pub(super) const NOTHING_HALF_MADE: [(&str, &str); 16] = [
    (
        "templates whose first event, and no other, is not that of their creation",
        "SELECT count(*) FROM template t WHERE '1 1' IS NOT \
         (SELECT count(*) || ' ' || min(f.revision) FROM fact f WHERE f.template_id = t.id \
          AND f.account_id = t.account_id AND f.type = 'template.created')",
    ),
    (
        "templates that are gone without an event as their last that says so, or the reverse",
        "SELECT count(*) FROM template t WHERE (claim IS NULL) IS NOT \
         (SELECT count(*) = 1 AND min(f.revision) = t.revision FROM fact f \
          WHERE f.template_id = t.id AND f.type = 'template.deleted')",
    ),
    (
        "templates whose revision is not the number of their events",
        "SELECT count(*) FROM template t WHERE revision <> \
         (SELECT count(*) FROM fact f WHERE f.template_id = t.id)",
    ),
    (
        "templates that did not change when their first and last events say",
        "SELECT count(*) FROM template t WHERE created_at || ' ' || updated_at IS NOT \
         (SELECT first.at || ' ' || last.at FROM fact first, fact last \
          WHERE first.template_id = t.id AND first.revision = 1 \
          AND last.template_id = t.id AND last.revision = t.revision)",
    ),
    (
        "templates whose versions are not numbered 1, 2, 3 up to the newest",
        "SELECT count(*) FROM template t WHERE version || ' 1 ' || version IS NOT \
         (SELECT count(*) || ' ' || min(e.version) || ' ' || max(e.version) \
          FROM edition e WHERE e.template_id = t.id)",
    ),
    (
        "versions that were not made by exactly one event, then and by the same",
        "SELECT count(*) FROM edition e WHERE 1 <> (SELECT count(*) FROM fact f \
         WHERE f.template_id = e.template_id AND f.version = e.version AND f.at = e.made_at \
         AND f.actor = e.actor AND f.category = e.category \
         AND f.type = iif(e.version = 1, 'template.created', 'template.edited'))",
    ),
    (
        "events of versions that are not there",
        "SELECT count(*) FROM fact f WHERE NOT EXISTS (SELECT 1 FROM edition e \
         WHERE e.template_id = f.template_id AND e.version = f.version)",
    ),
    (
        "versions that changed the category without an event, or the reverse",
        "SELECT count(*) FROM edition e WHERE (previous_category IS NOT NULL) <> \
         (SELECT count(*) FROM fact f WHERE f.template_id = e.template_id \
          AND f.version = e.version AND f.type = 'template.category_changed')",
    ),
    (
        "decisions that are not exactly one event, then, by the same and for the same reason",
        "SELECT count(*) FROM edition e WHERE \
         (decided_at IS NOT NULL) <> (SELECT count(*) FROM fact f \
          WHERE f.template_id = e.template_id AND f.version = e.version \
          AND f.type IN ('template.approved', 'template.rejected')) \
         OR decided_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM fact f \
          WHERE f.template_id = e.template_id AND f.version = e.version \
          AND f.type = 'template.' || lower(e.status) AND f.at = e.decided_at \
          AND f.actor = e.decided_by AND f.reason IS e.reason)",
    ),
    (
        "events by somebody who has no token of the account",
        "SELECT count(*) FROM fact f WHERE f.actor NOT IN (SELECT c.id FROM credential c \
         WHERE c.account_id = f.account_id AND c.kind = 'token')",
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
        "names that two templates have",
        "SELECT count(*) FROM (SELECT 1 FROM template WHERE claim IS NOT NULL \
         GROUP BY name HAVING count(*) > 1)",
    ),
    ("broken references", "SELECT count(*) FROM pragma_foreign_key_check"),
];
