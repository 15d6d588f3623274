//! Adds messages of the sandbox, as SQL.

use super::{statements::execute, writer::Batch};
use crate::{
    NewMessage, StoreError, StoredMessage,
    emulator::{MessageCounter, sent, stored_callback_data},
    encoding::key,
    engine::values,
    stored_row::Row,
};

pub(super) fn add(batch: &Batch, new: &NewMessage) -> Result<Option<StoredMessage>, StoreError> {
    let connection = batch.connection();
    let mut query = connection.prepare_cached(
        "SELECT at, since, last_message, last_sent_at FROM emulator_clock WHERE account_id = ?1",
    )?;
    let mut rows = query.query([key(new.account.get())])?;
    let Some(clock) = rows.next()? else { return Ok(None) };
    let mut counter = MessageCounter::read(&Row::Sqlite(clock))?;
    drop(rows);
    let (number, sent_at) = counter.next(new.at);
    let count =
        "UPDATE emulator_clock SET last_message = $2, last_sent_at = $3 WHERE account_id = $1";
    execute(connection, count, &values![new.account, number, sent_at])?;
    let insert = "INSERT INTO message (account_id, number, sent_at, created_at, template_id, \
                  version, failure, phone_id, recipient, category, callback_data, texts) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let values = values![
        new.account,
        number,
        sent_at,
        new.at,
        new.template,
        new.version,
        new.failure,
        &new.phone,
        &new.to,
        new.category.as_str(),
        stored_callback_data(new),
        &new.texts,
    ];
    execute(connection, insert, &values)?;
    if let Some(last) = counter.last_surplus() {
        let delete = "DELETE FROM message WHERE account_id = $1 AND number <= $2";
        execute(connection, delete, &values![new.account, last])?;
    }
    Ok(Some(sent(new, number, sent_at)))
}
