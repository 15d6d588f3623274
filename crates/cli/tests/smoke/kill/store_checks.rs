//! Checks of the database file: no template is missing, duplicated, incomplete or unrequested.

use std::collections::HashMap;

use galley_domain::template::{
    Review,
    lifecycle::{EventType, Hold, State, Trigger},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{expected_template::ExpectedTemplate, model::StoreModel, tenant::TENANTS};

/// Compares the stored templates with the model, and checks their consistency. Returns the
/// violations.
pub(super) fn check(store: &Connection, model: &StoreModel) -> Vec<String> {
    store.execute_batch(&create_temp_tables()).unwrap();
    let mut violations = Vec::new();
    for (violation, query) in CONSISTENCY_QUERIES {
        let count: i64 = store.query_row(query, [], |row| row.get(0)).unwrap();
        if count != 0 {
            violations.push(format!("{count} {violation}"));
        }
    }
    let integrity: String =
        store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if integrity != "ok" {
        violations.push(integrity);
    }
    store.execute_batch(DROP_TEMP_TABLES).unwrap();
    let stored = read_templates(store, None);
    for (id, stored) in stored.iter().filter(|(_, stored)| !stored.row.is_null()) {
        let replayed = stored.replay_events();
        violations.extend(replayed.err().map(|violation| format!("{id}: {violation}")));
        match model.templates.get(id) {
            Some(expected) => violations.extend(stored.compare(expected).err()),
            None if model.broken.contains(id) => {}
            None => violations.push(format!("{id} was never requested: {}", stored.row)),
        }
    }
    let is_missing = |expected: &&ExpectedTemplate| {
        stored.get(&expected.id).is_none_or(|stored| stored.row.is_null())
    };
    for ExpectedTemplate { name, id, .. } in model.templates.values().filter(is_missing) {
        violations.push(format!("{name} ({id}) is not in the database"));
    }
    violations
}

/// The rows of one template.
#[derive(Debug, Default)]
pub(super) struct StoredTemplate {
    row: Value,
    versions: Vec<Value>,
    events: Vec<Value>,
}

/// Reads the rows of these templates, or of all.
pub(super) fn read_templates(
    store: &Connection,
    ids: Option<&[&str]>,
) -> HashMap<String, StoredTemplate> {
    let ids = ids.map(|ids| format!("[{}]", ids.join(",")));
    let mut templates: HashMap<String, StoredTemplate> = HashMap::new();
    let mut read = |query: &str, put: fn(&mut StoredTemplate, Value)| {
        let mut query = store.prepare(query).unwrap();
        let mut rows = query.query([&ids]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (id, object): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            let object = serde_json::from_str(&object).unwrap();
            put(templates.entry(id.to_string()).or_default(), object);
        }
    };
    read(TEMPLATES, |template, row| template.row = row);
    read(&version_rows(), |template, row| template.versions.push(row));
    read(EVENTS, |template, row| template.events.push(row));
    templates
}

impl StoredTemplate {
    /// Compares the rows with the expected ones.
    pub(super) fn compare(&self, expected: &ExpectedTemplate) -> Result<(), String> {
        let ExpectedTemplate { name, id, .. } = expected;
        let compare = |what, stored: &[Value], wanted: &[Value]| {
            let pairs = stored.iter().zip(wanted);
            let index = pairs.take_while(|(stored, wanted)| stored == wanted).count();
            match [stored.get(index), wanted.get(index)] {
                [None, None] => Ok(()),
                pair => {
                    let [stored, wanted] = pair.map(|it| it.unwrap_or(&Value::Null));
                    Err(format!("{what} {index} of {name} ({id}) is {stored}, not {wanted}"))
                }
            }
        };
        compare("template row", std::slice::from_ref(&self.row), &[expected.row()])?;
        compare("version row", &self.versions, &expected.version_rows())?;
        compare("event row", &self.events, expected.event_rows())
    }

    /// Replays the events through the transition table, independently of the model: each event must
    /// be a valid transition, and the last one must lead to the state in the row.
    fn replay_events(&self) -> Result<(), String> {
        let tenant = TENANTS.iter().find(|tenant| self.row["account"] == tenant.account);
        let review = tenant.ok_or("it belongs to no account")?.review;
        let kind = |event: &Value| event["type"].as_str().and_then(EventType::parse);
        let (mut state, mut deleted, mut last) = (State::initial(review), false, None);
        for event in &self.events {
            let now = kind(event).ok_or_else(|| format!("{event} has an unknown type"))?;
            state = next(state, last, now, review).filter(|_| !deleted).ok_or_else(|| {
                format!("{event} is not a valid transition from {state:?}, after {last:?}")
            })?;
            if event["version"] != state.version || event["status"] != state.status().as_str() {
                return Err(format!("{event} does not match {state:?}"));
            }
            deleted = now == EventType::Deleted;
            last = Some(now);
        }
        let newest = self.versions.last().unwrap_or(&Value::Null);
        let stored = json!([
            newest["version"],
            newest["status"],
            self.row["hold"],
            self.row["live_version"],
            self.row["revision"],
            self.row["deleted"],
        ]);
        let replayed = json!([
            state.version,
            state.newest_status.as_str(),
            state.hold.map(Hold::as_str),
            state.approved_version,
            self.events.len(),
            u8::from(deleted),
        ]);
        if stored == replayed {
            Ok(())
        } else {
            Err(format!("its row has {stored}, its events lead to {replayed}"))
        }
    }
}

/// The state after an event, if the event can follow the last one.
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
        EventType::Archived => Trigger::Archive,
        EventType::Unarchived => Trigger::Unarchive,
        EventType::Flagged => Trigger::Flag,
        EventType::QualityChanged => Trigger::Quality,
        EventType::CategoryAnnounced => Trigger::AnnounceCategory,
        EventType::WebhookDisabled
        | EventType::Submitted
        | EventType::ReviewPassed
        | EventType::UpstreamRefused
        | EventType::Drifted
        | EventType::Gone
        | EventType::UpstreamDegraded
        | EventType::UpstreamRecovered => return None,
    };
    let (after, event) = state.apply(trigger, review).ok()?;
    (last.is_some() && event == now).then_some(after)
}

const TEMPLATES: &str = "SELECT t.id, json_object('account', a.name, 'deleted', unique_key IS NULL, \
     'name', t.name, 'language', language, 'allow_category_change', allow_category_change, \
     'hold', hold, 'live_version', live_version, 'revision', revision, \
     'has_idempotency_key', t.id IN (SELECT template_id FROM idempotency)) \
     FROM template t LEFT JOIN account a ON a.id = t.account_id \
     WHERE ?1 IS NULL OR t.id IN (SELECT value FROM json_each(?1))";

const EVENTS: &str = "SELECT template_id, json_object('type', type, 'version', version, \
     'category', category, 'status', status, 'reason', reason) FROM event \
     WHERE ?1 IS NULL OR template_id IN (SELECT value FROM json_each(?1)) \
     ORDER BY template_id, seq";

/// Every version, the newest and the former ones.
const VERSIONS: &str = "SELECT id AS template_id, version, status, category, previous_category, \
     content, actor, coalesce(version_at, created_at) AS created_at, reason, decided_at, decided_by \
     FROM template UNION ALL SELECT template_id, version, status, category, previous_category, \
     content, actor, created_at, reason, decided_at, decided_by FROM former_version";

fn version_rows() -> String {
    format!(
        "SELECT template_id, json_object('version', version, 'status', status, \
         'category', category, 'previous_category', previous_category, \
         'decided', decided_at IS NOT NULL, 'reason', reason, 'content', json(content)) \
         FROM ({VERSIONS}) WHERE ?1 IS NULL OR template_id IN (SELECT value FROM json_each(?1)) \
         ORDER BY template_id, version"
    )
}

/// Creates indexed copies, because the database has no indexes for these queries.
/// `numbered_event` has the events, numbered for each template.
fn create_temp_tables() -> String {
    format!(
        "CREATE TEMP TABLE any_version AS {VERSIONS}; \
         CREATE INDEX temp.any_version_by_template ON any_version (template_id, version); \
         CREATE TEMP TABLE numbered_event AS \
         SELECT *, row_number() OVER (PARTITION BY template_id ORDER BY seq) AS revision \
         FROM event; \
         CREATE INDEX temp.numbered_event_by_template ON numbered_event (template_id, revision)"
    )
}

const DROP_TEMP_TABLES: &str = "DROP TABLE temp.any_version; DROP TABLE temp.numbered_event";

/// Violations, and the queries that count them.
pub(super) const CONSISTENCY_QUERIES: [(&str, &str); 17] = [
    (
        "merged names that are not in their index, or the reverse",
        "SELECT (SELECT count(*) FROM template t WHERE unique_key IS NOT NULL AND id <= \
         (SELECT merged_id FROM buffered_index WHERE name = 'template_name') AND \
         id IS NOT (SELECT template_id FROM template_name n WHERE n.unique_key = t.unique_key)) + \
         (SELECT count(*) FROM template_name n WHERE \
          unique_key IS NOT (SELECT unique_key FROM template t WHERE t.id = n.template_id))",
    ),
    (
        "templates without exactly one create event, as their first",
        "SELECT count(*) FROM template t WHERE '1 1' IS NOT \
         (SELECT count(*) || ' ' || min(f.revision) FROM numbered_event f WHERE f.template_id = t.id \
          AND f.account_id = t.account_id AND f.type = 'template.created')",
    ),
    (
        "templates that are deleted without a delete event as their last, or the reverse",
        "SELECT count(*) FROM template t WHERE (unique_key IS NULL) IS NOT \
         (SELECT count(*) = 1 AND min(f.revision) = t.revision FROM numbered_event f \
          WHERE f.template_id = t.id AND f.type = 'template.deleted')",
    ),
    (
        "templates whose revision is not the number of their events",
        "SELECT count(*) FROM template t WHERE revision <> \
         (SELECT count(*) FROM numbered_event f WHERE f.template_id = t.id)",
    ),
    (
        "templates whose times are not those of their first and last events",
        "SELECT count(*) FROM template t WHERE created_at || ' ' || updated_at IS NOT \
         (SELECT first.at || ' ' || last.at FROM numbered_event first, numbered_event last \
          WHERE first.template_id = t.id AND first.revision = 1 \
          AND last.template_id = t.id AND last.revision = t.revision)",
    ),
    (
        "templates whose versions are not numbered 1, 2, 3 up to the newest",
        "SELECT count(*) FROM template t WHERE version || ' 1 ' || version IS NOT \
         (SELECT count(*) || ' ' || min(e.version) || ' ' || max(e.version) \
          FROM any_version e WHERE e.template_id = t.id)",
    ),
    (
        "versions without exactly one event of the same time and actor",
        "SELECT count(*) FROM any_version e WHERE 1 <> (SELECT count(*) FROM numbered_event f \
         WHERE f.template_id = e.template_id AND f.version = e.version AND f.at = e.created_at \
         AND f.actor = e.actor AND f.category = e.category \
         AND f.type = iif(e.version = 1, 'template.created', 'template.edited'))",
    ),
    (
        "events of versions that do not exist",
        "SELECT count(*) FROM numbered_event f WHERE NOT EXISTS (SELECT 1 FROM any_version e \
         WHERE e.template_id = f.template_id AND e.version = f.version)",
    ),
    (
        "versions that changed the category without an event, or the reverse",
        "SELECT count(*) FROM any_version e WHERE (previous_category IS NOT NULL) <> \
         (SELECT count(*) FROM numbered_event f WHERE f.template_id = e.template_id \
          AND f.version = e.version AND f.type = 'template.category_changed')",
    ),
    (
        "decisions without exactly one event of the same time, actor and reason",
        "SELECT count(*) FROM any_version e WHERE \
         (decided_at IS NOT NULL) <> (SELECT count(*) FROM numbered_event f \
          WHERE f.template_id = e.template_id AND f.version = e.version \
          AND f.type IN ('template.approved', 'template.rejected')) \
         OR decided_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM numbered_event f \
          WHERE f.template_id = e.template_id AND f.version = e.version \
          AND f.type = 'template.' || lower(e.status) AND f.at = e.decided_at \
          AND f.actor = e.decided_by AND f.reason IS e.reason)",
    ),
    (
        "events whose actor is not a token of the account",
        "SELECT count(*) FROM numbered_event f WHERE f.actor NOT IN (SELECT c.id FROM credential c \
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
        "idempotency keys with two records",
        "SELECT count(*) FROM (SELECT 1 FROM idempotency GROUP BY key HAVING count(*) > 1)",
    ),
    (
        "names in use by two templates",
        "SELECT count(*) FROM (SELECT 1 FROM template WHERE unique_key IS NOT NULL \
         GROUP BY name HAVING count(*) > 1)",
    ),
    ("broken references", "SELECT count(*) FROM pragma_foreign_key_check"),
];
