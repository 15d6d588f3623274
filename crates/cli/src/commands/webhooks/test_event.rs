//! `galley webhook test`: sends one signed test event to an endpoint and shows the response.

use std::process::ExitCode;

use anyhow::Context as _;
use galley_domain::webhook::delivery::DeliveryOutcome;
use galley_server::delivery::{Failure, FailureKind, NameCause, ResponseStart, TestReport};
use galley_store::Webhook;
use serde_json::Value;

use super::{CommandContext, no_webhook, state};
use crate::{arguments::Endpoint, settings::WebhookSettings, table};

/// How much of a response is shown.
const MAX_SHOWN_CHARS: usize = 500;

pub(crate) async fn test(
    context: &CommandContext,
    settings: &WebhookSettings,
    endpoint: &Endpoint,
) -> anyhow::Result<ExitCode> {
    let (account, id) = endpoint.ids(context).await?;
    let webhook = context.store.webhook(account, id).await?.with_context(|| no_webhook(id))?;
    let (delivery, client) = settings.context_and_client();
    let request = delivery.test_request(&webhook, context.now).context(
        "the test event cannot be signed: set the GALLEY_SECRET_KEY of the service, or replace the \
         secret with `galley webhook rotate`",
    )?;
    let report = client.post_test(request).await;
    let is_accepted = matches!(&report.response, Ok(response) if is_accepted(response.status));
    table::print_one(context.json, &members(&webhook, &report, context.json));
    Ok(if is_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same decision as for a delivery.
fn is_accepted(status: u16) -> bool {
    DeliveryOutcome::from_status(status, None) == DeliveryOutcome::Accepted
}

fn members(webhook: &Webhook, report: &TestReport, json: bool) -> Vec<(&'static str, Value)> {
    let latency = u64::try_from(report.latency.as_millis()).unwrap_or(u64::MAX);
    let mut members = vec![
        ("id", Value::from(webhook.id.to_string())),
        ("url", webhook.url.clone().into()),
        ("state", state(webhook).into()),
    ];
    let (result, fix) = match &report.response {
        Ok(ResponseStart { status, body }) => {
            members.push(("response_status", (*status).into()));
            let text = beginning(body, json);
            members.push(("response", if text.is_empty() { Value::Null } else { text.into() }));
            (if is_accepted(*status) { "accepted" } else { "refused" }, fix_of_status(*status))
        }
        Err(failure) => {
            let cause = failure.hidden_cause.map(|cause| format!(" Here, {cause}."));
            let failed = format!("{failure}{}", cause.unwrap_or_default());
            members.push(("failure", failed.into()));
            ("failed", Some(fix_of_failure(failure)))
        }
    };
    members.push(("latency_ms", latency.into()));
    members.push(("result", result.into()));
    let disabled = webhook.disabled.map(|_| "enable it with `galley webhook enable`");
    members.push(("fix", fix.or(disabled).map_or(Value::Null, Value::from)));
    members
}

/// The beginning of a response body. For people without control characters, which could move the
/// cursor of the terminal.
fn beginning(body: &[u8], json: bool) -> String {
    let text = String::from_utf8_lossy(body);
    let shown = text.trim().chars().take(MAX_SHOWN_CHARS);
    shown.map(|it| if it.is_control() && !json { ' ' } else { it }).collect()
}

/// How to make the endpoint accept events, by the status that it responded with.
fn fix_of_status(status: u16) -> Option<&'static str> {
    Some(match status {
        200..=299 => return None,
        300..=399 => {
            "redirects are not followed: set the final URL with `galley webhook change --url`"
        }
        401 | 403 => {
            "the receiver has to verify the signature with the secret of this webhook: compare them, \
             or replace the secret with `galley webhook rotate`"
        }
        404 | 405 => {
            "check the path of the URL, and that the receiver accepts POST there: `galley webhook \
             change --url` sets another URL"
        }
        410 => "respond with 200: a delivery that gets 410 disables the endpoint",
        429 | 502..=504 => "the receiver is overloaded or down: see its log and that of its proxy",
        _ => "respond with a status of 200 to 299: see the log of the receiver",
    })
}

/// How to reach the endpoint, by why there was no response.
fn fix_of_failure(failure: &Failure) -> &'static str {
    match failure.kind {
        // The failure says what of the URL is not allowed, and what can be allowed.
        FailureKind::Refused => "set a URL that is allowed with `galley webhook change --url`",
        FailureKind::Unresolved => match failure.hidden_cause {
            Some(NameCause::PrivateAddress) => {
                "use a public address; or, if every account may reach private networks, set \
                 webhooks_allow_private=true here and for the service"
            }
            Some(NameCause::MetadataAddress) => {
                "use a receiver with another address: this one is never allowed"
            }
            _ => "check the name and its DNS records from this machine",
        },
        FailureKind::Unreachable => {
            "check that the receiver runs and listens on this port, and the firewalls between"
        }
        FailureKind::Tls => {
            "check the certificate of the receiver: its name, its validity and the complete chain"
        }
        FailureKind::Timeout => {
            "respond before the work is done, within the setting webhooks_timeout"
        }
        FailureKind::Broken => "the receiver has to respond with HTTP/1.1: see its log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_that_is_not_accepted_has_a_fix() {
        for status in 100..=599 {
            assert_eq!(fix_of_status(status).is_none(), is_accepted(status), "{status}");
        }
    }

    #[test]
    fn only_a_private_address_gets_the_advice_to_allow_private_networks() {
        let fix = |kind, hidden_cause| {
            fix_of_failure(&Failure { kind, detail: String::new(), hidden_cause })
        };
        let private = fix(FailureKind::Unresolved, Some(NameCause::PrivateAddress));
        assert!(private.contains("webhooks_allow_private"), "{private}");
        for other in [
            fix(FailureKind::Unresolved, Some(NameCause::MetadataAddress)),
            fix(FailureKind::Unresolved, None),
            fix(FailureKind::Refused, None),
        ] {
            assert!(!other.contains("webhooks_allow_private"), "{other}");
        }
    }

    #[test]
    fn the_beginning_of_a_response_cannot_control_the_terminal() {
        assert_eq!(beginning(b"a\x1b[2J\xffb\n", false), "a [2J\u{fffd}b");
        assert_eq!(beginning(b"a\x1bb", true), "a\u{1b}b");
        assert_eq!(beginning(&[b'x'; 4_096], false).len(), MAX_SHOWN_CHARS);
    }
}
