-- Edits, reviews and lists.

-- The newest version of a template: who made it and when (empty: with the template), which
-- category it replaced, and what a reviewer decided. Actor 0 is the operator.
ALTER TABLE template ADD COLUMN actor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE template ADD COLUMN version_at INTEGER;
ALTER TABLE template ADD COLUMN previous_category TEXT;
ALTER TABLE template ADD COLUMN reason TEXT;
ALTER TABLE template ADD COLUMN decided_at INTEGER;
ALTER TABLE template ADD COLUMN decided_by INTEGER;

UPDATE template SET actor = event.actor FROM event
WHERE event.template_id = template.id AND event.type = 'template.created';

ALTER TABLE former_version ADD COLUMN previous_category TEXT;
ALTER TABLE former_version ADD COLUMN reason TEXT;
ALTER TABLE former_version ADD COLUMN decided_at INTEGER;
ALTER TABLE former_version ADD COLUMN decided_by INTEGER;

-- Lists are read shelf by shelf: one index serves every filter, alone or combined, and costs a
-- create less than an index for each would. An account has few shelves and many templates.
ALTER TABLE template ADD COLUMN shelf TEXT
    AS (coalesce(hold, status) || ' ' || category || ' ' || language) VIRTUAL;

CREATE INDEX template_on_shelf ON template (account_id, shelf, id) WHERE claim IS NOT NULL;
