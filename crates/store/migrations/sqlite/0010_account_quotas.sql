-- Limits that the operator sets for one account, and how much the account stores.

-- Requests that the account may send in a second; empty: as many as it likes.
ALTER TABLE account ADD COLUMN requests_per_second INTEGER;

-- Bytes of templates that the account may store, and phone numbers that it may claim. Empty: the
-- default of the program; 0: no limit.
ALTER TABLE account ADD COLUMN stored_bytes_limit INTEGER;
ALTER TABLE account ADD COLUMN phone_limit INTEGER;

-- Quota bytes of all stored versions of the account's templates. Every write that changes them sets
-- `counted_seq` to `last_seq`. If the two differ, an older program has written, and the bytes are
-- counted again. `counted_template`: templates up to this one are counted; empty: all of them.
ALTER TABLE account ADD COLUMN template_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN counted_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN counted_template INTEGER;

UPDATE account SET counted_seq = last_seq, counted_template = 0 WHERE last_seq > 0;
