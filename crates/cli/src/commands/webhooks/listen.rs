//! `galley webhook listen`: a receiver on this machine that shows what is delivered to it.

use std::{net::SocketAddr, pin::pin, sync::Arc};

use anyhow::Context as _;
use galley_server::delivery::{Checked, Received, Receiver, Secret};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    arguments::ListenOptions,
    clock::SystemClock,
    commands::{interrupted, serve},
    settings::Written,
    table,
};

/// How many deliveries may wait to be shown; the next one waits for its answer.
const WAITING: usize = 16;

pub(crate) async fn listen(
    options: ListenOptions,
    written: &Written,
    json: bool,
) -> anyhow::Result<()> {
    let given = options.secret.as_deref().or_else(|| written.variable("GALLEY_WEBHOOK_SECRET"));
    let secret = given.filter(|it| !it.is_empty()).map(Secret::read).transpose()?;
    let mut interrupted = pin!(interrupted()?);
    let listener = serve::listen(&options.listen).await?;
    welcome(listener.local_addr()?, secret.is_some());
    let (hear, mut heard) = mpsc::channel(WAITING);
    let receiving = Receiver {
        secret,
        verify_token: options.verify_token,
        answer: options.answer.try_into().context("--answer takes a status of HTTP")?,
        clock: Arc::new(SystemClock::new()),
        hear,
    };
    let receiving = tokio::spawn(receiving.receive(listener));
    loop {
        tokio::select! {
            Some(delivery) = heard.recv() => {
                let shown = if json { line(&delivery) } else { paragraph(&delivery) };
                // Whoever closed the pipe has seen enough.
                if table::try_say(&shown).is_err() {
                    break;
                }
            }
            () = &mut interrupted => break,
        }
    }
    receiving.abort();
    Ok(())
}

/// Says on standard error what to do next: standard output is for deliveries.
fn welcome(address: SocketAddr, secret: bool) {
    eprintln!("Listening on http://{address}/ until Ctrl-C.");
    eprintln!("To have events delivered here from a service on this machine:");
    eprintln!("  GALLEY_WEBHOOKS_ALLOW_PRIVATE=true galley webhook add ACCOUNT http://{address}/");
    eprintln!("The service needs GALLEY_WEBHOOKS_ALLOW_PRIVATE=true, too.");
    if !secret {
        eprintln!(
            "Signatures are not checked: start this again with the secret that `webhook add` \
             shows, in GALLEY_WEBHOOK_SECRET or after --secret."
        );
    }
}

/// For people: what it is, and the event as they like to read it.
fn paragraph(received: &Received) -> String {
    let body = body(received);
    let verdict = match why(received.checked) {
        Some(why) => format!("NOT VERIFIED: {why}"),
        None => "verified".to_owned(),
    };
    let text = String::from_utf8_lossy(&received.body);
    let pretty = if body.is_object() { indented(&text) } else { text.into_owned() };
    let at = received.sent_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let id = received.id.as_deref().unwrap_or("-");
    let kind = kind(&body).as_str().unwrap_or("-").to_owned();
    let plain = |text: &str| text.replace(|it: char| it.is_control() && it != '\n', " ");
    plain(&format!("{at}  {id}  {kind}  {verdict}\n{pretty}\n"))
}

/// A JSON text with one member a line, in the order in which they were sent.
fn indented(text: &str) -> String {
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
    for it in text.chars() {
        if quoted {
            quoted = escaped || it != '"';
            escaped = !escaped && it == '\\';
            out.push(it);
            continue;
        }
        match it {
            '{' | '[' => {
                depth += 1;
                out.push(it);
                out.push_str(&line(depth));
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                out.push_str(&line(depth));
                out.push(it);
            }
            ',' => {
                out.push(it);
                out.push_str(&line(depth));
            }
            ':' => out.push_str(": "),
            it if it.is_ascii_whitespace() => {}
            it => {
                quoted = it == '"';
                out.push(it);
            }
        }
    }
    out
}

/// For programs: one line.
fn line(received: &Received) -> String {
    let body = body(received);
    let mut object = json!({
        "id": received.id,
        "type": kind(&body),
        "sent_at": received.sent_at.map(|at| at.to_string()),
        "verified": received.checked == Checked::Verified,
        "reason": why(received.checked),
        "body": body,
    });
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object.to_string()
}

/// The type of an event, or the field of the first change that Meta would tell.
fn kind(body: &Value) -> &Value {
    body.get("type").unwrap_or(&body["entry"][0]["changes"][0]["field"])
}

/// Why it is not to be believed, if it is not.
fn why(checked: Checked) -> Option<String> {
    match checked {
        Checked::Verified => None,
        Checked::Refused(reason) => Some(reason.to_string()),
        Checked::Unsigned(header) => Some(format!("The header {header} is missing.")),
        Checked::NoSecret => Some("There is no secret to check it with.".to_owned()),
    }
}

/// What it says: JSON, or whatever text it is.
fn body(received: &Received) -> Value {
    serde_json::from_slice(&received.body)
        .unwrap_or_else(|_| String::from_utf8_lossy(&received.body).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_shown_in_their_order_and_texts_as_they_are() {
        let sent = r#"{"seq":1, "data":{"text":"a \"b\" \\ {c}: [d],","list":[1,true]}}"#;
        let shown = r#"{
  "seq": 1,
  "data": {
    "text": "a \"b\" \\ {c}: [d],",
    "list": [
      1,
      true
    ]
  }
}"#;
        assert_eq!(indented(sent), shown);
    }
}
