//! The sandbox of emulator accounts: accepts template messages, checks them against the live version
//! of their template, and sends nothing.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    account,
    emulator::{
        failures,
        faults::Call,
        recipients::{self, MessageFate},
    },
    rulebook::{Category, WHATSAPP},
    send::{self, Filled, Message},
};
use galley_store::{NewMessage, StoredTemplate};

use super::{body::GraphBody, caller::Caller, faithful, not_offered::messages_not_offered};
use crate::{
    api::{
        auth::{self, Write},
        json,
        problem::{Problem, ProblemKind},
    },
    app::App,
    json_writer::ObjectWriter,
};

pub(super) async fn send(
    State(app): State<App>,
    caller: Caller<Write>,
    mut body: GraphBody,
) -> Result<Response, Problem> {
    if caller.account.emulator.is_none() {
        return Err(messages_not_offered());
    }
    let phone = &caller.node;
    if !account::is_valid_path_segment(phone) {
        return Err(Problem::of(ProblemKind::PhoneUnknown));
    }
    let at = app.clock().now();
    auth::ensure_phone(&app, &caller.account, phone, caller.author(at)).await?;
    let bytes = body.len();
    let document = body.process(app.admission(), |_, document| document).await?;
    let message = Message::read(&document).map_err(Problem::refused_message)?;
    caller.strike(&app, Call::Send, Some(message.name)).await?;
    let live = live_template(&app, &caller, &message).await?;
    let check = || send::check(&live.template, &message);
    let Filled { texts } =
        app.admission().process(bytes, check).await.map_err(Problem::refused_message)?;
    let texts = if caller.is_faithful() && live.template.category() == Category::Authentication {
        faithful::authentication_texts(&live.template, texts)
    } else {
        texts
    };
    let failure = match recipients::fate(&message.wa_id) {
        MessageFate::Read => None,
        MessageFate::Fails(code) => Some(code),
        MessageFate::Refused(code) => {
            let failure = failures::find(code).ok_or(Problem::of(ProblemKind::Internal))?;
            return Err(Problem::provoked(failure));
        }
    };
    let new = NewMessage {
        account: caller.account.id,
        phone: phone.clone(),
        to: message.wa_id.clone(),
        template: live.id,
        version: live.state.version,
        category: live.template.category(),
        texts,
        failure,
        callback_data: message.callback_data.map(str::to_owned),
        at,
    };
    let stored = app.store().add_message(new).await?.ok_or_else(messages_not_offered)?;
    Ok(json(StatusCode::OK, accepted(&message, &stored.id.to_string())))
}

/// The template that the message names, with its live version. The language has to match exactly.
async fn live_template(
    app: &App,
    caller: &Caller<Write>,
    message: &Message<'_>,
) -> Result<Arc<StoredTemplate>, Problem> {
    let account = caller.account.id;
    let (name, language) = (message.name, message.language);
    let unique_key = (WHATSAPP.unique_key)(account, name, language);
    let found = app.store().name_conflict(account, &unique_key).await?;
    let stored = match found.and_then(|found| found.existing_id) {
        Some(id) => app.store().template(account, id).await?,
        None => None,
    };
    let state = stored.as_ref().map(|stored| &stored.state);
    let number = send::live_version(name, language, state).map_err(Problem::refused_message)?;
    let stored = stored.ok_or(Problem::of(ProblemKind::Internal))?;
    if number == stored.state.version {
        return Ok(stored);
    }
    // The live version is never purged: if it is missing, the template has just been deleted.
    match app.store().version(account, stored.id, number).await? {
        Some(version) => Ok(Arc::new(stored.at_version(version))),
        None => Err(send::live_version(name, language, None)
            .map_or_else(Problem::refused_message, |_| Problem::of(ProblemKind::Internal))),
    }
}

/// Meta's response to an accepted message.
fn accepted(message: &Message<'_>, id: &str) -> String {
    let mut contact = String::new();
    let mut object = ObjectWriter::open(&mut contact);
    object.string("input", &message.to);
    object.unescaped("wa_id", &message.wa_id);
    object.close();
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.unescaped("messaging_product", "whatsapp");
    object.raw("contacts", &format!("[{contact}]"));
    object.raw("messages", &format!(r#"[{{"id":"{id}","message_status":"accepted"}}]"#));
    object.close();
    out
}
