-- The fingerprint of the content at the provider that a person has decided to replace.
ALTER TABLE upstream_operation ADD COLUMN replaces BLOB;
