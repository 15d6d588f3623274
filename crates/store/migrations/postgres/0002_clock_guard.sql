-- The time that retention trusts (position 0), and times beyond a jump that are not confirmed yet.
-- `observed_ms`: for how long such a time has lasted. See `src/clock_guard.rs`.
CREATE TABLE clock_guard (
    position    INTEGER PRIMARY KEY,
    at          BIGINT NOT NULL,
    observed_ms BIGINT NOT NULL
);

-- A used store trusts the time of its newest row, so that a wrong clock at the upgrade is noticed.
INSERT INTO clock_guard
SELECT 0, max(at), 0
FROM (
    SELECT created_at AS at FROM account
    UNION ALL
    SELECT (SELECT at FROM event WHERE account_id = account.id ORDER BY seq DESC LIMIT 1)
    FROM account
) AS stored
HAVING max(at) IS NOT NULL;
