-- Search terms have no accents any more, so that all templates are indexed again. `indexed` and
-- `scanned` are the progress of programs with these terms; `seq` and `walked` that of older ones,
-- which may still run beside them and know only those.
ALTER TABLE followed
    ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN scanned BIGINT DEFAULT 0;

UPDATE followed SET indexed = seq;
