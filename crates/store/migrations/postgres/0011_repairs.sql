-- The version that the last call has given the provider, until a read shows that one.
ALTER TABLE upstream_template ADD COLUMN sent_version bigint;
UPDATE upstream_template SET sent_version = (SELECT max(o.version) FROM upstream_operation o
    WHERE o.account_id = upstream_template.account_id
    AND o.template_id = upstream_template.template_id
    AND o.kind IN ('create', 'edit') AND o.state = 'done' AND o.attempts > 0);

-- Fingerprints are SHA-256 now: the next sweep reads every content and writes its fingerprint.
UPDATE upstream_template SET content_key = NULL;
UPDATE upstream_operation SET replaces = NULL;
UPDATE upstream SET read_all_at = NULL;

-- How the template came into being, in the word of the provider: AUTO_GENERATED if the provider made it.
ALTER TABLE upstream_template ADD COLUMN source TEXT;

-- Decisions with four eyes read which tokens replaced which.
CREATE INDEX audit_of_rotations ON audit (account_id) WHERE kind = 'credential.rotated';
-- What the sweep that runs has seen: the generated templates, and the pages in a row without a new one.
ALTER TABLE upstream ADD COLUMN sweep_generated BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN sweep_idle BIGINT NOT NULL DEFAULT 0;

-- The number of the last sweep that walked to the last page.
ALTER TABLE upstream ADD COLUMN walked_sweep BIGINT NOT NULL DEFAULT 0;
UPDATE upstream SET walked_sweep = sweep - CASE WHEN sweep_began_at IS NULL THEN 0 ELSE 1 END;
