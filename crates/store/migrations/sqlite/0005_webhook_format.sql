-- How endpoints are sent events.

-- `format`: as the feed has them, or as Meta sends them. `subscribed`: made by way of the Graph
-- API, where an account has one.
ALTER TABLE webhook ADD COLUMN format TEXT NOT NULL DEFAULT 'galley';
ALTER TABLE webhook ADD COLUMN subscribed INTEGER NOT NULL DEFAULT 0;

CREATE UNIQUE INDEX webhook_subscribed ON webhook (account_id) WHERE subscribed = 1;
