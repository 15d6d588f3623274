INSERT INTO account (id, created_at, takes_any_phone, name, rulebook, review)
    VALUES (1, 0, TRUE, 'a', 'whatsapp', 'provider');

INSERT INTO upstream_template (account_id, remote_id, template_id, name, language, status, category,
    version, observed_at, changed_at, sweep) VALUES
    (1, '5', 5, 'sent', 'en', 'APPROVED', 'AUTHENTICATION', 3, 0, 0, 1),
    (1, '6', 6, 'never_sent', 'en', 'APPROVED', 'AUTHENTICATION', 1, 0, 0, 1),
    (1, '7', NULL, 'foreign', 'en', 'APPROVED', 'AUTHENTICATION', NULL, 0, 0, 1);

-- The third version of the first template was skipped without a call, and the fourth one refused.
INSERT INTO upstream_operation (account_id, template_id, version, kind, state, attempts, created_at,
    updated_at) VALUES
    (1, 5, 1, 'create', 'done', 1, 0, 0),
    (1, 5, 2, 'edit', 'done', 2, 0, 0),
    (1, 5, 3, 'edit', 'done', 0, 0, 0),
    (1, 5, 4, 'edit', 'refused', 1, 0, 0),
    (1, 5, 9, 'archive', 'done', 1, 0, 0),
    (1, 6, 1, 'create', 'done', 0, 0, 0);
