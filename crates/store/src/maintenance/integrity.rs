//! The checks of `galley doctor` that both engines run. Each engine adds those of its own.

use crate::{
    Finding, MAX_VERSIONS, VERSION_OVERHEAD_BYTES, engine::Dialect, records::IntegrityCheck,
};

/// Whether the number of an account's newest event is at least that of its last one.
const EVENT_NUMBERS: &str = "SELECT count(*) FROM account a WHERE last_seq < \
     (SELECT coalesce(max(seq), 0) FROM event e WHERE e.account_id = a.id)";

/// Whether finished and unfinished files have all bytes that were received.
const MEDIA: &str = "SELECT count(*) FROM upload u WHERE received <> (SELECT \
     coalesce(sum(length(bytes)), 0) FROM upload_chunk c WHERE c.upload = u.number)";

/// The checks, in the order in which they are shown.
pub(super) fn checks(dialect: Dialect) -> Vec<IntegrityCheck> {
    let check = |statement, finding| IntegrityCheck { statement, finding };
    vec![
        check(references(dialect), |count| {
            Finding::checked("references", format!("{count} broken"), count == 0)
        }),
        check(EVENT_NUMBERS.to_owned(), |count| {
            Finding::counted("event numbers", count, "account", "behind")
        }),
        check(versions(dialect), |count| {
            Finding::counted("versions", count, "template", "incomplete")
        }),
        check("SELECT count(*) FROM template".to_owned(), |count| {
            Finding::checked("templates", count.to_string(), true)
        }),
        check(categories(dialect), |count| {
            Finding::counted("categories", count, "name", "with several categories")
        }),
        check(MEDIA.to_owned(), |count| Finding::counted("media", count, "file", "incomplete")),
        check(media_quota(dialect), |count| {
            Finding::counted("media quota", count, "account", "miscounted")
        }),
        check(stored_bytes(), |count| {
            let finding = Finding::counted("stored bytes", count, "account", "miscounted");
            finding.with_advice("correct them with --count-bytes")
        }),
    ]
}

/// Rows that refer to others that do not exist. SQLite also checks its foreign keys, which PostgreSQL
/// cannot violate.
fn references(dialect: Dialect) -> String {
    let keys = dialect.either("(SELECT count(*) FROM pragma_foreign_key_check) + ", "");
    format!(
        "SELECT {keys}(SELECT count(*) FROM template t WHERE NOT EXISTS (SELECT 1 FROM account a \
         WHERE a.id = t.account_id)) + (SELECT count(*) FROM event e WHERE e.webhook_id IS NULL AND \
         e.type NOT LIKE 'upstream.%' AND NOT EXISTS (SELECT 1 FROM template t \
         WHERE t.id = e.template_id))"
    )
}

/// Templates that lack a former version.
fn versions(dialect: Dialect) -> String {
    let least = dialect.either("min", "least");
    format!(
        "SELECT count(*) FROM template t WHERE unique_key IS NOT NULL AND version > 1 AND \
         ({least}(version, {MAX_VERSIONS}) - 1 <> (SELECT count(*) FROM former_version f \
         WHERE f.template_id = t.id AND f.version < t.version AND \
         f.version > t.version - {MAX_VERSIONS}) OR (live_version < version AND \
         NOT EXISTS (SELECT 1 FROM former_version f WHERE f.template_id = t.id AND \
         f.version = t.live_version)))"
    )
}

/// Names whose languages differ in their category. Review scripts of emulator accounts and providers
/// change the category of one language alone.
fn categories(dialect: Dialect) -> String {
    let index = dialect.either(" INDEXED BY template_of_translation_group", "");
    format!(
        "SELECT count(*) FROM (SELECT translation_group FROM template{index} \
         WHERE translation_group IS NOT NULL AND unique_key IS NOT NULL \
         AND account_id NOT IN (SELECT id FROM account WHERE emulator IS NOT NULL) \
         AND account_id NOT IN (SELECT account_id FROM audit WHERE kind = 'upstream.connected') \
         GROUP BY translation_group HAVING count(DISTINCT category) > 1) AS divided"
    )
}

/// Accounts whose total of media bytes differs from their files.
fn media_quota(dialect: Dialect) -> String {
    let greatest = dialect.either("max", "greatest");
    format!(
        "SELECT count(*) FROM account a LEFT JOIN (SELECT account_id, \
         sum(({greatest}(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)) AS bytes \
         FROM upload GROUP BY account_id) kept ON kept.account_id = a.id \
         WHERE a.media_bytes <> coalesce(kept.bytes, 0)"
    )
}

/// Accounts whose total of stored bytes differs from their versions, except those not counted yet.
fn stored_bytes() -> String {
    format!(
        "WITH version AS (SELECT account_id, octet_length(content) + {VERSION_OVERHEAD_BYTES} AS bytes \
         FROM template UNION ALL SELECT t.account_id, octet_length(f.content) + \
         {VERSION_OVERHEAD_BYTES} FROM former_version f JOIN template t ON t.id = f.template_id), \
         stored AS (SELECT account_id, sum(bytes) AS bytes FROM version GROUP BY account_id) \
         SELECT count(*) FROM account a LEFT JOIN stored ON stored.account_id = a.id \
         WHERE a.counting IS NULL AND a.template_bytes <> coalesce(stored.bytes, 0)"
    )
}
