-- Limits that the operator sets for one account, and how much the account stores.
-- `requests_per_second`: requests that the account may send in a second; empty: no limit.
-- `stored_bytes_limit`, `phone_limit`: bytes of templates that it may store, and phone numbers that
-- it may claim. Empty: the default of the program; 0: no limit.
-- `template_bytes`: quota bytes of all stored versions of the account's templates. Every write that
-- changes them sets `counted_seq` to `last_seq`. If the two differ, an older program has written
-- beside this one, and the bytes are counted again. `counted_template`: templates up to this one are
-- counted; empty: all of them.
ALTER TABLE account
    ADD COLUMN requests_per_second BIGINT,
    ADD COLUMN stored_bytes_limit BIGINT,
    ADD COLUMN phone_limit BIGINT,
    ADD COLUMN template_bytes BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN counted_seq BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN counted_template BIGINT;

UPDATE account SET counted_seq = last_seq, counted_template = 0 WHERE last_seq > 0;
