-- The fingerprint of the content at the provider that a person has decided to replace.
ALTER TABLE upstream_operation ADD COLUMN replaces BLOB;

-- How many calls of an operation had an unknown outcome since it was queued.
ALTER TABLE upstream_operation ADD COLUMN unknown_calls INTEGER NOT NULL DEFAULT 0;
