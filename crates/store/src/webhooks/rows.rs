//! How the rows of webhook endpoints are selected and decoded.

use galley_domain::{
    template::lifecycle::EventType,
    webhook::{Format, delivery::DisableReason},
};

use crate::{
    StoreError, StoredSecret, Webhook,
    stored_row::{Row, StoredRow as _},
};

/// The columns of an endpoint's own row, each after a prefix. They are listed by name, and in a join with
/// their table, here as everywhere: a newer release may add columns while this one is running.
macro_rules! columns {
    ($prefix:literal) => {
        concat!(
            columns!($prefix, id account_id url events format subscribed secret former_secret),
            columns!($prefix, former_until cursor failures failing_since failed_at resting_until),
            columns!($prefix, disabled_at disabled_because created_at),
            $prefix,
            "updated_at"
        )
    };
    ($prefix:literal, $($column:ident)+) => {
        concat!($($prefix, stringify!($column), ", "),+)
    };
}

/// The columns of an endpoint's own row.
pub(crate) const COLUMNS: &str = columns!("");

/// Selects endpoints (`w`) with the number of events after their cursors, and with `more` columns: of
/// the account (`a`), or of what `rest` joins.
pub(crate) fn select(more: &str, rest: &str) -> String {
    format!(
        "SELECT {}, CASE WHEN a.last_seq > w.cursor THEN a.last_seq - w.cursor ELSE 0 END \
         AS behind{more} FROM webhook w JOIN account a ON a.id = w.account_id {rest}",
        columns!("w.")
    )
}

/// Event types as they are stored: separated by commas.
pub(crate) fn event_list(events: &[EventType]) -> String {
    let names: Vec<_> = events.iter().map(|it| it.as_str()).collect();
    names.join(",")
}

/// Decodes stored event types; `None` if one of them is unknown.
fn parse_event_list(list: &str) -> Option<Vec<EventType>> {
    list.split(',').filter(|name| !name.is_empty()).map(EventType::parse).collect()
}

/// The endpoint in a row.
pub(crate) fn webhook(row: &Row<'_>) -> Result<Webhook, StoreError> {
    let former: Option<Vec<u8>> = row.value("former_secret")?;
    let reason = row.optional("disabled_because", |text: String| DisableReason::parse(&text))?;
    Ok(Webhook {
        id: row.webhook_id("id")?,
        account: row.account_id("account_id")?,
        url: row.value("url")?,
        events: row.parsed("events", parse_event_list)?,
        format: row.parsed("format", Format::parse)?,
        subscribed: row.value("subscribed")?,
        secret: StoredSecret(row.value("secret")?),
        former_secret: former.map(StoredSecret).zip(row.optional_timestamp("former_until")?),
        cursor: row.number("cursor")?,
        behind: row.number("behind")?,
        failing_since: row.optional_timestamp("failing_since")?,
        resting_until: row.optional_timestamp("resting_until")?,
        disabled: row.optional_timestamp("disabled_at")?.zip(reason),
        created_at: row.timestamp("created_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}
