//! `galley webhook listen`: a local receiver that shows each delivery.

use std::{net::SocketAddr, pin::pin, sync::Arc};

use anyhow::Context as _;
use galley_server::delivery::{ReceivedDelivery, Secret, SignatureCheck, WebhookReceiver};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    arguments::ListenOptions,
    clock::SystemClock,
    commands::{interrupted, serve},
    secrets::file,
    settings::RawSettings,
    table,
};

/// Number of deliveries buffered for output; further deliveries wait for their response.
const OUTPUT_BUFFER: usize = 16;

pub(crate) async fn listen(
    options: ListenOptions,
    raw: &RawSettings,
    json: bool,
) -> anyhow::Result<()> {
    let ListenOptions { secret, secret_file, verify_token, verify_token_file, .. } = &options;
    let flags = ["--secret-file", "--verify-token-file"];
    file::require_one_from_standard_input([secret_file, verify_token_file], flags)?;
    let given = match file::given(secret.clone(), secret_file.as_deref())? {
        Some(secret) => Some(secret),
        None => raw.secret("GALLEY_WEBHOOK_SECRET").map_err(anyhow::Error::msg)?,
    };
    let given = given.as_deref().filter(|it| !it.is_empty());
    let secret = given.map(Secret::parse_any).transpose()?;
    let verify_token = file::given(verify_token.clone(), verify_token_file.as_deref())?;
    let mut interrupted = pin!(interrupted()?);
    let listener = serve::listen(&options.listen, "--listen HOST:PORT").await?;
    welcome(listener.local_addr()?, secret.is_some());
    let (hear, mut heard) = mpsc::channel(OUTPUT_BUFFER);
    let receiving = WebhookReceiver {
        secret,
        verify_token,
        response_status: options.answer.try_into().context("--answer expects an HTTP status")?,
        clock: Arc::new(SystemClock::new()),
        deliveries: hear,
    };
    let receiving = tokio::spawn(receiving.serve(listener));
    loop {
        tokio::select! {
            Some(delivery) = heard.recv() => {
                let shown = if json { line(&delivery) } else { paragraph(&delivery) };
                // The reader closed the pipe.
                if table::try_print_line(&shown).is_err() {
                    break;
                }
            }
            () = &mut interrupted => break,
        }
    }
    receiving.abort();
    Ok(())
}

/// Prints instructions to standard error; standard output is for deliveries.
fn welcome(address: SocketAddr, secret: bool) {
    eprintln!("Listening on http://{address}/ until Ctrl-C.");
    eprintln!("To deliver events here from a service on this machine:");
    eprintln!("  GALLEY_WEBHOOKS_ALLOW_PRIVATE=true galley webhook add ACCOUNT http://{address}/");
    eprintln!("The service needs GALLEY_WEBHOOKS_ALLOW_PRIVATE=true, too.");
    if !secret {
        eprintln!(
            "Without a secret no signature can be verified, and every delivery gets 401: restart with \
             the secret that `webhook add` shows, in GALLEY_WEBHOOK_SECRET or with --secret-file."
        );
    }
}

/// A delivery for people: a summary line and the indented body.
fn paragraph(received: &ReceivedDelivery) -> String {
    let body = body(received);
    let verdict = match rejection_reason(received.signature) {
        Some(reason) => format!("NOT VERIFIED: {reason}"),
        None => "verified".to_owned(),
    };
    let text = String::from_utf8_lossy(&received.body);
    let pretty = if body.is_object() { indented(&text) } else { text.into_owned() };
    let at = received.sent_at.map_or_else(|| "-".to_owned(), |at| format!("{at:.3}"));
    let id = received.id.as_deref().unwrap_or("-");
    let kind = kind(&body).as_str().unwrap_or("-").to_owned();
    let plain = |text: &str| text.replace(|it: char| it.is_control() && it != '\n', " ");
    plain(&format!("{at}  {id}  {kind}  {verdict}\n{pretty}\n"))
}

/// Indents a JSON text, keeping the order of its members.
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

/// A delivery for programs: one line of JSON.
fn line(received: &ReceivedDelivery) -> String {
    let body = body(received);
    let mut object = json!({
        "id": received.id,
        "type": kind(&body),
        "sent_at": received.sent_at.map(|at| format!("{at:.3}")),
        "verified": received.signature == SignatureCheck::Verified,
        "reason": rejection_reason(received.signature),
        "body": body,
    });
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object.to_string()
}

/// The type of an event, or the field of the first change in Meta's format.
fn kind(body: &Value) -> &Value {
    body.get("type").unwrap_or(&body["entry"][0]["changes"][0]["field"])
}

/// Why the signature is not verified, if it is not.
fn rejection_reason(checked: SignatureCheck) -> Option<String> {
    match checked {
        SignatureCheck::Verified => None,
        SignatureCheck::Invalid(reason) => Some(reason.to_string()),
        SignatureCheck::MissingHeader(header) => Some(format!("The header {header} is missing.")),
        SignatureCheck::NoSecret => Some("There is no secret to verify it with.".to_owned()),
    }
}

/// The body as JSON, or as text if it is not JSON.
fn body(received: &ReceivedDelivery) -> Value {
    serde_json::from_slice(&received.body)
        .unwrap_or_else(|_| String::from_utf8_lossy(&received.body).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indenting_keeps_the_order_of_members_and_the_texts() {
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
