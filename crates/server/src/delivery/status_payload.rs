//! Webhook payloads with statuses of sandbox messages, in Meta's format.

use galley_domain::{
    emulator::{failures, messages::MessageStatus},
    id::AccountId,
};
use galley_store::DueStatus;

use crate::json_writer::ObjectWriter;

/// Where Meta describes the codes of errors.
const ERROR_PAGE: &str =
    "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/";

/// The request body with these statuses of an account, one change for each.
pub(crate) fn build(account: AccountId, statuses: &[DueStatus]) -> String {
    let changes: Vec<String> = statuses.iter().map(change).collect();
    let mut entry = String::new();
    let mut object = ObjectWriter::open(&mut entry);
    object.display("id", account);
    object.raw("changes", &format!("[{}]", changes.join(",")));
    object.close();
    let mut out = String::with_capacity(entry.len() + 64);
    let mut object = ObjectWriter::open(&mut out);
    object.unescaped("object", "whatsapp_business_account");
    object.raw("entry", &format!("[{entry}]"));
    object.close();
    out
}

fn change(due: &DueStatus) -> String {
    let mut out = String::with_capacity(512);
    let mut object = ObjectWriter::open(&mut out);
    object.object("value", |value| {
        value.unescaped("messaging_product", "whatsapp");
        value.object("metadata", |metadata| {
            // Galley knows no other number than the id.
            metadata.string("display_phone_number", &due.phone);
            metadata.string("phone_number_id", &due.phone);
        });
        // At least one client cannot read a status without a contact.
        value.raw("contacts", &format!(r#"[{{"wa_id":"{}"}}]"#, due.to));
        value.raw("statuses", &format!("[{}]", status(due)));
    });
    object.unescaped("field", "messages");
    object.close();
    out
}

fn status(due: &DueStatus) -> String {
    let mut out = String::with_capacity(256);
    let mut object = ObjectWriter::open(&mut out);
    object.display("id", due.message);
    object.unescaped("status", due.status.as_str());
    object.display("timestamp", due.at.as_second());
    object.unescaped("recipient_id", &due.to);
    if let Some(data) = &due.callback_data {
        object.string("biz_opaque_callback_data", data);
    }
    if matches!(due.status, MessageStatus::Sent | MessageStatus::Delivered) {
        object.object("pricing", |pricing| {
            pricing.raw("billable", "true");
            pricing.unescaped("pricing_model", "PMP");
            pricing.unescaped("type", "regular");
            pricing.unescaped("category", &due.category.as_str().to_ascii_lowercase());
        });
    }
    if let Some(failure) = due.code.and_then(failures::find) {
        let mut error = String::new();
        let mut members = ObjectWriter::open(&mut error);
        members.number("code", failure.code.into());
        members.string("title", failure.title);
        members.string("message", failure.title);
        members.object("error_data", |data| data.string("details", failure.message));
        members.unescaped("href", ERROR_PAGE);
        members.close();
        object.raw("errors", &format!("[{error}]"));
    }
    object.close();
    out
}

#[cfg(test)]
mod tests {
    use galley_domain::{emulator::messages::MessageId, rulebook::Category};
    use galley_store::StatusCursor;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn due(status: MessageStatus, code: Option<u32>) -> DueStatus {
        DueStatus {
            message: MessageId { account: AccountId::new(1).unwrap(), number: 2 },
            phone: "15550783881".to_owned(),
            to: "16505551234".to_owned(),
            category: Category::Utility,
            status,
            code,
            at: Timestamp::from_millisecond(1_790_000_000_999).unwrap(),
            callback_data: (status == MessageStatus::Read).then(|| "a \"b\"".to_owned()),
            cursor: StatusCursor::default(),
        }
    }

    #[test]
    fn statuses_have_metas_format() {
        let account = AccountId::new(1).unwrap();
        let statuses = [
            due(MessageStatus::Sent, None),
            due(MessageStatus::Failed, Some(131_026)),
            due(MessageStatus::Read, None),
        ];
        let body: Value = serde_json::from_str(&build(account, &statuses)).unwrap();
        let common = json!({
            "id": "wamid.sandbox.AAAAAAAAAAEAAAAAAAAAAg", "timestamp": "1790000000",
            "recipient_id": "16505551234",
        });
        let with = |more: Value| {
            let mut status = common.clone();
            status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"field": "messages", "value": {
                "messaging_product": "whatsapp",
                "metadata": {"display_phone_number": "15550783881", "phone_number_id": "15550783881"},
                "contacts": [{"wa_id": "16505551234"}],
                "statuses": [status],
            }})
        };
        let pricing = json!({
            "billable": true, "pricing_model": "PMP", "type": "regular", "category": "utility",
        });
        let error = json!({
            "code": 131_026, "title": "Message undeliverable", "message": "Message undeliverable",
            "error_data": {"details": "The message cannot be delivered to this recipient."},
            "href": ERROR_PAGE,
        });
        let changes = [
            with(json!({"status": "sent", "pricing": pricing})),
            with(json!({"status": "failed", "errors": [error]})),
            with(json!({"status": "read", "biz_opaque_callback_data": "a \"b\""})),
        ];
        let expected = json!({
            "object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}],
        });
        assert_eq!(body, expected);
    }
}
