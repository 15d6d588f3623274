-- Languages that share a name, and limits by choice.

-- Where several languages share a name, what they have in common: a hash of account and name.
-- Empty for templates that are alone with their name, which then pay nothing for it.
ALTER TABLE template ADD COLUMN family BLOB;

CREATE INDEX template_of_family ON template (family)
    WHERE family IS NOT NULL AND claim IS NOT NULL;

-- How many templates an account may have, if it is held to limits; empty if it is not.
ALTER TABLE account ADD COLUMN template_limit INTEGER;

-- What limits count, written only for accounts that are held to them: creations (under template 0)
-- and edits of APPROVED templates. No more are kept than the largest limit needs.
CREATE TABLE counted (
    account_id  INTEGER NOT NULL,
    template_id INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (account_id, template_id, seq)
) STRICT, WITHOUT ROWID;
