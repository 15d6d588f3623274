//! What the deliveries of this engine read and write of webhook endpoints.

use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::{key, millis};
use crate::{
    StoreError, Webhook,
    decisions::{deliveries::health as decoded_health, endpoint_health::EndpointHealth},
    stored_row::Row,
    webhooks::{select, webhook},
};

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    Ok(by_id(connection, id)?.filter(|webhook| webhook.account == account))
}

/// One endpoint of any account.
pub(super) fn by_id(connection: &Connection, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let mut query = connection.prepare_cached(&select("", "WHERE id = ?1"))?;
    let mut rows = query.query([key(id.get())])?;
    rows.next()?.map(|row| webhook(&Row::Sqlite(row))).transpose()
}

/// Disables an endpoint. Its waiting deliveries stay.
pub(super) fn disable(
    connection: &Connection,
    id: WebhookId,
    reason: DisableReason,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE webhook SET disabled_at = ?2, disabled_because = ?3, resting_until = NULL \
             WHERE id = ?1",
        )?
        .execute(params![key(id.get()), millis(at), reason.as_str()])?;
    Ok(())
}

/// The failure history of an endpoint.
pub(super) fn health(connection: &Connection, id: WebhookId) -> Result<EndpointHealth, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT failures, failing_since, failed_at, resting_until FROM webhook WHERE id = ?1",
    )?;
    let mut rows = query.query([key(id.get())])?;
    let Some(row) = rows.next()? else { return Ok(EndpointHealth::default()) };
    decoded_health(row)
}
