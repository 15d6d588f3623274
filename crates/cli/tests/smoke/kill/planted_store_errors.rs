//! Plants errors in the database that a bug in the store could cause. The store checks must find
//! all of them, and each consistency query must find at least one.

use super::{Harness, rng::seed, store_checks::CONSISTENCY_QUERIES, summary};

/// Statements that plant an error, and part of one of the violations that the checks must report.
const PLANTED: [(&str, &str); 21] = [
    // A change has two events.
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
        "decisions without exactly one event",
    ),
    // A change has no event.
    (
        "DELETE FROM event WHERE seq = (SELECT last_seq FROM account a WHERE a.id = account_id); \
         UPDATE account SET last_seq = last_seq - 1",
        "its events lead to",
    ),
    // An event number is skipped.
    (
        "UPDATE account SET last_seq = last_seq + 1",
        "accounts whose events are not numbered 1, 2, 3 up to the last",
    ),
    // The revision is not incremented.
    ("UPDATE template SET revision = revision - 1 WHERE revision > 1", "its row has"),
    // A version is missing.
    (
        "DELETE FROM former_version WHERE version = 1",
        "templates whose versions are not numbered 1, 2, 3 up to the newest",
    ),
    // An older version is rewritten.
    ("UPDATE former_version SET content = '{\"components\":[]}'", "version row 0 of"),
    // A version and its event have different times.
    ("UPDATE template SET version_at = 1 WHERE version > 1", "versions without exactly one event"),
    // The template has the wrong time of its last change.
    ("UPDATE template SET updated_at = 1", "templates whose times are not"),
    // A version is approved without a decision.
    (
        "UPDATE template SET status = 'APPROVED', live_version = version WHERE status = 'PENDING'",
        "its row has",
    ),
    // A hold is lost.
    ("UPDATE template SET hold = NULL WHERE hold IS NOT NULL", "template row 0 of"),
    // A reason is missing in the version or in the event.
    (
        "UPDATE template SET reason = NULL WHERE reason IS NOT NULL; \
         UPDATE former_version SET reason = NULL WHERE reason IS NOT NULL",
        "decisions without",
    ),
    ("UPDATE event SET reason = NULL WHERE reason IS NOT NULL", "event row "),
    // A category is lost.
    (
        "UPDATE template SET category = previous_category, previous_category = NULL \
         WHERE previous_category IS NOT NULL; \
         UPDATE former_version SET category = previous_category, previous_category = NULL \
         WHERE previous_category IS NOT NULL",
        "versions that changed the category without an event",
    ),
    // A deleted template exists again; another is deleted without an event.
    (
        "UPDATE template SET unique_key = randomblob(16) WHERE unique_key IS NULL",
        "templates that are deleted",
    ),
    (
        "UPDATE template SET unique_key = NULL WHERE unique_key IS NOT NULL",
        "templates that are deleted",
    ),
    // A name is missing in its index, so that another template can be created with it.
    (
        "DELETE FROM template_name WHERE unique_key = (SELECT max(unique_key) FROM template_name)",
        "merged names that are not in their index, or the reverse",
    ),
    // Events that no request caused, or with another content.
    (
        "UPDATE event SET type = 'template.created', actor = 0 WHERE type = 'template.edited'",
        "is not a valid transition",
    ),
    ("UPDATE event SET status = 'DISABLED' WHERE status = 'APPROVED'", "does not match"),
    // A template is missing, but other rows still refer to it.
    (
        "PRAGMA defer_foreign_keys = ON; DELETE FROM template WHERE version > 1; \
         UPDATE idempotency SET template_id = -template_id, key = x'00'; DELETE FROM event WHERE seq = 1",
        "is not in the database",
    ),
    // Two templates have one name; no request created one of them.
    (
        "UPDATE template SET name = 'twice'; \
         INSERT INTO template (id, account_id, name, language, category, allow_category_change, \
         status, version, revision, created_at, updated_at, actor, content) \
         SELECT 1, account_id, name, language, category, allow_category_change, \
         status, version, revision, created_at, updated_at, actor, content FROM template LIMIT 1",
        "was never requested",
    ),
];

#[test]
fn the_store_checks_find_every_planted_error() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    let mut harness = Harness::new(dir.path(), seed, &[]);
    harness.cycle(0, 600);
    let violations = [&harness.report.violations[..], &harness.check_store("")].concat();
    assert!(violations.is_empty(), "seed {seed}: {}", summary(&violations));
    let mut found = Vec::new();
    for (planted, expected) in PLANTED {
        let violations = harness.check_store(planted);
        let is_found = violations.iter().any(|violation| violation.contains(expected));
        assert!(
            is_found,
            "seed {seed}: no check reports {expected:?} after {planted}: {}",
            summary(&violations)
        );
        found.extend(violations);
    }
    for (violation, _) in CONSISTENCY_QUERIES {
        let is_found = found.iter().any(|it| it.ends_with(violation));
        assert!(is_found, "seed {seed}: no planted error causes {violation:?}");
    }
}
