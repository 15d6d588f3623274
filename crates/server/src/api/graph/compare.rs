//! Compares two templates by the messages that the sandbox of an emulator account keeps. Other
//! accounts have no messages to compare.

use std::collections::HashMap;

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::id::TemplateId;
use jiff::Timestamp;
use serde_json::json;

use super::{
    caller::{Caller, unknown},
    not_offered::analytics_not_offered,
    parameters::{Query, invalid_parameter},
};
use crate::{
    api::{auth::Read, json as json_response, problem::Problem},
    app::App,
};

/// Number of messages read at once.
const PAGE_ITEMS: usize = 1_000;

pub(super) async fn compare(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    if caller.account.emulator.is_none() {
        return Err(analytics_not_offered());
    }
    let ids = [caller.template_id(&app).await?, other_template(&query)?];
    for id in ids {
        let stored = app.store().template(caller.account.id, id).await?;
        stored.ok_or_else(|| unknown(&id.to_string()))?;
    }
    let window = (time(&query, "start")?, time(&query, "end")?);
    if window.0 >= window.1 {
        return Err(invalid_parameter("end", "must be later than `start`"));
    }
    let sends = count(&app, &caller, window).await?;
    let number_values = ids.map(
        |id| json!({"key": id.to_string(), "value": sends.get(&id).copied().unwrap_or_default()}),
    );
    // No recipient blocks messages of the sandbox, so the order is that of the request.
    let data = json!({"data": [
        {
            "metric": "BLOCK_RATE", "type": "RELATIVE",
            "order_by_relative_metric": ids.map(|id| id.to_string()),
        },
        {"metric": "MESSAGE_SENDS", "type": "NUMBER_VALUES", "number_values": number_values},
        {"metric": "TOP_BLOCK_REASON", "type": "STRING_VALUES", "string_values": []},
    ]});
    Ok(json_response(StatusCode::OK, data.to_string()))
}

/// The template to compare with.
fn other_template(query: &Query) -> Result<TemplateId, Problem> {
    let ids = query.list("template_ids")?.unwrap_or_default();
    let [id] = &ids[..] else {
        return Err(invalid_parameter("template_ids", "must be a list of one id of a template"));
    };
    id.parse().map_err(|_| unknown(id))
}

/// A time in seconds since 1970.
fn time(query: &Query, name: &str) -> Result<Timestamp, Problem> {
    let seconds = query.text(name).and_then(|text| text.parse().ok());
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.ok_or_else(|| invalid_parameter(name, "must be a time in seconds since 1970"))
}

/// The number of kept messages of each template that were sent in the window, on the account's clock.
async fn count(
    app: &App,
    caller: &Caller<Read>,
    (start, end): (Timestamp, Timestamp),
) -> Result<HashMap<TemplateId, u64>, Problem> {
    let mut sends = HashMap::new();
    let mut before = None;
    loop {
        let at = app.clock().now();
        let messages = app.store().messages(caller.account.id, before, PAGE_ITEMS, at).await?;
        for message in messages.iter().filter(|it| (start..end).contains(&it.sent_at)) {
            *sends.entry(message.template).or_default() += 1;
        }
        // The messages are numbered in the order of their times.
        match messages.last() {
            Some(last) if messages.len() == PAGE_ITEMS && last.sent_at >= start => {
                before = Some(last.id.number);
            }
            _ => return Ok(sends),
        }
    }
}
