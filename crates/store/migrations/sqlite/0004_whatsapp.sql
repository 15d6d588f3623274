-- Languages that share a name.

-- Where several languages share a name, what they have in common: a hash of account and name.
-- Empty for templates that are alone with their name, which then pay nothing for it.
ALTER TABLE template ADD COLUMN family BLOB;

CREATE INDEX template_of_family ON template (family)
    WHERE family IS NOT NULL AND claim IS NOT NULL;
