//! What a fault of the store could leave in its file, planted there: the look into the file has
//! to find all of it, and none of its checks is there for nothing.

use super::{Harness, brief, dice::seed, file::NOTHING_HALF_MADE};

/// What is planted, and what has to be said about it among other things.
const PLANTED: [(&str, &str); 20] = [
    // A change is told twice.
    (
        "UPDATE account SET last_seq = last_seq + 1; \
         INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
         status, reason) SELECT account_id, max(seq) + 1, type, template_id, version, at, actor, \
         category, status, reason FROM event GROUP BY account_id",
        "templates whose revision is not the number of their events",
    ),
    // A decision is applied twice.
    (
        "UPDATE account SET last_seq = last_seq + 1 WHERE name = 'reviewed'; \
         UPDATE template SET revision = revision + 1 WHERE id = (SELECT template_id FROM event \
         WHERE type = 'template.approved' ORDER BY seq DESC LIMIT 1); \
         INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
         status, reason) SELECT a.id, a.last_seq, type, template_id, version, at, actor, \
         category, status, reason FROM event e JOIN account a ON a.id = e.account_id \
         WHERE type = 'template.approved' ORDER BY seq DESC LIMIT 1",
        "decisions that are not exactly one event",
    ),
    // A change is not told.
    (
        "DELETE FROM event WHERE seq = (SELECT last_seq FROM account a WHERE a.id = account_id); \
         UPDATE account SET last_seq = last_seq - 1",
        "its events lead to",
    ),
    // A number of an event is left out.
    (
        "UPDATE account SET last_seq = last_seq + 1",
        "accounts whose events are not numbered 1, 2, 3 up to the last",
    ),
    // The revision is not raised.
    ("UPDATE template SET revision = revision - 1 WHERE revision > 1", "its row says"),
    // A version is dropped.
    (
        "DELETE FROM former_version WHERE version = 1",
        "templates whose versions are not numbered 1, 2, 3 up to the newest",
    ),
    // An older version is rewritten.
    ("UPDATE former_version SET content = '{\"components\":[]}'", "version 0 of"),
    // A version is made, and its event tells of another moment.
    ("UPDATE template SET version_at = 1 WHERE version > 1", "versions that were not made"),
    // The template says nothing of its last change.
    ("UPDATE template SET updated_at = 1", "templates that did not change when"),
    // A version is approved by nobody.
    (
        "UPDATE template SET status = 'APPROVED', live_version = version WHERE status = 'PENDING'",
        "its row says",
    ),
    // A hold is dropped.
    ("UPDATE template SET hold = NULL WHERE hold IS NOT NULL", "row 0 of"),
    // A reason is lost, in the version or in the event.
    (
        "UPDATE template SET reason = NULL WHERE reason IS NOT NULL; \
         UPDATE former_version SET reason = NULL WHERE reason IS NOT NULL",
        "decisions that are not",
    ),
    ("UPDATE event SET reason = NULL WHERE reason IS NOT NULL", "event "),
    // A category is lost.
    (
        "UPDATE template SET category = previous_category, previous_category = NULL \
         WHERE previous_category IS NOT NULL; \
         UPDATE former_version SET category = previous_category, previous_category = NULL \
         WHERE previous_category IS NOT NULL",
        "versions that changed the category without an event",
    ),
    // A deleted template comes back; another vanishes without a word.
    ("UPDATE template SET claim = randomblob(16) WHERE claim IS NULL", "templates that are gone"),
    ("UPDATE template SET claim = NULL WHERE claim IS NOT NULL", "templates that are gone"),
    // Events that nobody asked for, or that tell of something else.
    (
        "UPDATE event SET type = 'template.created', actor = 0 WHERE type = 'template.edited'",
        "is not possible at",
    ),
    ("UPDATE event SET status = 'DISABLED' WHERE status = 'APPROVED'", "does not tell"),
    // Everything of a template is gone but what others remember of it.
    (
        "PRAGMA defer_foreign_keys = ON; DELETE FROM template WHERE version > 1; \
         UPDATE idempotency SET template_id = 1; DELETE FROM event WHERE seq = 1",
        "is not in the file",
    ),
    // One name, twice; a template that nobody sent.
    (
        "UPDATE template SET name = 'twice'; \
         INSERT INTO template (id, account_id, name, language, category, allow_category_change, \
         status, version, revision, created_at, updated_at, content) \
         SELECT 1, account_id, name, language, category, allow_category_change, \
         status, version, revision, created_at, updated_at, content FROM template LIMIT 1",
        "was sent by nobody",
    ),
];

#[test]
fn what_a_fault_could_leave_in_the_file_is_found() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    let mut harness = Harness::new(dir.path(), seed, &[]);
    harness.cycle(0, 600);
    let faults = [&harness.report.faults[..], &harness.examine("")].concat();
    assert!(faults.is_empty(), "seed {seed}: {}", brief(&faults));
    let mut found = Vec::new();
    for (planted, said) in PLANTED {
        let faults = harness.examine(planted);
        let noticed = faults.iter().any(|fault| fault.contains(said));
        assert!(noticed, "seed {seed}: nobody says {said:?} after {planted}: {}", brief(&faults));
        found.extend(faults);
    }
    for (what, _) in NOTHING_HALF_MADE {
        assert!(found.iter().any(|it| it.ends_with(what)), "seed {seed}: nothing shows {what:?}");
    }
}
