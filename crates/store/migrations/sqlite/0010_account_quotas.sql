-- Limits that the operator sets for one account, and how much the account stores.

-- Requests that the account may send in a second; empty: as many as it likes.
ALTER TABLE account ADD COLUMN requests_per_second INTEGER;

-- Bytes of templates that the account may store, and phone numbers that it may claim. Empty: the
-- default of the program; 0: no limit.
ALTER TABLE account ADD COLUMN stored_bytes_limit INTEGER;
ALTER TABLE account ADD COLUMN phone_limit INTEGER;

-- Quota bytes of all stored versions of the account's templates. `counting` is empty when
-- all of them are in it; the service counts those of an older store once, in the background. Every
-- write changes `counted_seq` together with `last_seq`: if the two differ, an older program has
-- written, and the bytes are counted again.
ALTER TABLE account ADD COLUMN template_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN counted_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN counting INTEGER;

UPDATE account SET counted_seq = last_seq, counting = 0 WHERE last_seq > 0;
