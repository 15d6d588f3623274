//! The JSON form of the clock, the faults and the messages of an emulator account.

use galley_domain::emulator::{clock::Clock, messages::MessageStatus};
use galley_store::{StoredFault, StoredMessage};
use jiff::Timestamp;

use super::{ObjectWriter, write_data};

/// A clock at a real time, and how many steps its change has applied.
pub(crate) fn clock(clock: &Clock, real: Timestamp, applied: Option<u64>) -> String {
    let mut out = String::with_capacity(96);
    let mut object = ObjectWriter::open(&mut out);
    object.timestamp("now", clock.now(real));
    object.raw("follows", if clock.since.is_some() { "true" } else { "false" });
    if let Some(applied) = applied {
        object.number("applied", applied);
    }
    object.close();
    out
}

pub(crate) fn fault(fault: &StoredFault) -> String {
    let mut out = String::with_capacity(256);
    write_fault(&mut out, fault);
    out
}

/// All faults of an account. They are few, so the list has only one page.
pub(crate) fn faults(faults: &[StoredFault]) -> String {
    let mut out = String::with_capacity(256 * faults.len() + 16);
    write_data(&mut out, faults, write_fault);
    out.push('}');
    out
}

/// The id and the state of a fault, followed by its document.
fn write_fault(out: &mut String, stored: &StoredFault) {
    let fault = &stored.counted.fault;
    let mut object = ObjectWriter::open(out);
    object.display("id", stored.number);
    object.number("matched", stored.counted.matched);
    let is_spent = fault.is_spent(stored.counted.matched);
    object.raw("spent", if is_spent { "true" } else { "false" });
    object.timestamp("created_at", stored.created_at);
    let document = fault.as_json();
    out.push(',');
    out.push_str(document.strip_prefix('{').unwrap_or(document));
}

/// A page of messages, newest first; `next` is the query of the next page.
pub(crate) fn messages(messages: &[StoredMessage], next: Option<&str>) -> String {
    let mut out = String::with_capacity(512 * messages.len() + 64);
    write_data(&mut out, messages, write_message);
    if let Some(next) = next {
        out.push_str(",\"next\":");
        out.push_str(&serde_json::to_string(next).unwrap_or_default());
    }
    out.push('}');
    out
}

fn write_message(out: &mut String, message: &StoredMessage) {
    let mut object = ObjectWriter::open(out);
    object.display("id", message.id);
    object.string("to", &message.to);
    object.string("phone_number_id", &message.phone);
    object.display("template_id", message.template);
    if let Some(template) = &message.sent_template {
        object.string("name", &template.name);
        object.string("language", &template.language);
        if template.is_deleted {
            object.raw("template_deleted", "true");
        }
    }
    object.number("version", message.version);
    object.unescaped("category", message.category.as_str());
    object.raw("texts", &message.texts);
    object.unescaped("status", message.status.as_str());
    if let Some(code) = message.failure.filter(|_| message.status == MessageStatus::Failed) {
        object.number("code", code.into());
    }
    object.timestamp("sent_at", message.sent_at);
    object.close();
}
