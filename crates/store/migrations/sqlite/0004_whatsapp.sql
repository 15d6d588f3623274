-- Languages that share a name, limits by choice, and media samples.

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

-- Media samples, which arrive piece by piece: `received` bytes of `length` are there. `id` is known
-- to whoever sends it, `handle` is what it is found by when all of it is there. `sniffed` is the
-- type that its first bytes show, if they show one.
CREATE TABLE upload (
    number     INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    id         TEXT    NOT NULL UNIQUE,
    handle     TEXT    NOT NULL UNIQUE,
    file_name  TEXT    NOT NULL,
    file_type  TEXT    NOT NULL,
    length     INTEGER NOT NULL,
    received   INTEGER NOT NULL DEFAULT 0,
    sniffed    TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX upload_unfinished ON upload (account_id, created_at) WHERE received < length;

-- Its bytes. `place` is where a chunk begins. Large values are better off in a table with rowids.
CREATE TABLE upload_chunk (
    upload INTEGER NOT NULL REFERENCES upload (number),
    place  INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (upload, place)
) STRICT;
