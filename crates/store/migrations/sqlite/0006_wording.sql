-- Templates that say the same.

-- A hash of account, body and footer, for templates that are compared with the others of their
-- account; empty for all others, which then pay nothing for it.
ALTER TABLE template ADD COLUMN wording BLOB;

CREATE INDEX template_of_wording ON template (wording)
    WHERE wording IS NOT NULL AND claim IS NOT NULL;
