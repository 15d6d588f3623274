//! Clocks, review scripts, faults and sandbox messages of emulator accounts.

use galley_domain::{
    emulator::{
        clock::{Clock, ClockRefusal},
        faults::CountedFault,
        messages::{MessageId, MessageStatus},
    },
    id::{AccountId, TemplateId},
    rulebook::Category,
    webhook::Format,
};
use jiff::Timestamp;

use crate::{Account, StoredSecret, Webhook};

impl Account {
    /// Whether an endpoint of this format is the callback of the account's app. A faithful account
    /// has no other endpoints in Meta's format.
    pub fn is_app_callback(&self, format: Format) -> bool {
        format == Format::Whatsapp && self.emulator.is_some_and(|kind| kind.faithful)
    }
}

/// The result of [`change_clock`](crate::Store::change_clock).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeClockOutcome {
    /// The clock after the change.
    Changed(Clock),
    /// The clock stays as it is.
    Refused(ClockRefusal),
    /// The account is not an emulator.
    NotAnEmulator,
}

/// The result of [`apply_due_steps`](crate::Store::apply_due_steps).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueSteps {
    /// How many steps changed a template; skipped ones do not count.
    pub applied: u64,
    /// Whether more steps are due.
    pub has_more: bool,
}

/// The app of an emulator account, to which clients subscribe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulatedApp {
    /// The secret that signs its webhooks, if one was chosen.
    pub secret: Option<StoredSecret>,
    /// The address with which a client of a faithful account wants to override the app's callback.
    pub callback_override: Option<String>,
}

/// The result of [`create_fault`](crate::Store::create_fault).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateFaultOutcome {
    /// The fault was added.
    Created(Box<StoredFault>),
    /// The account has [`MAX_FAULTS`](galley_domain::emulator::faults::MAX_FAULTS) faults that can
    /// still strike.
    TooMany,
    /// The account is not an emulator.
    NotAnEmulator,
}

/// A fault of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFault {
    /// Its number in the account.
    pub number: u64,
    /// The fault, and how many calls it has matched.
    pub counted: CountedFault,
    /// When it was created, in real time.
    pub created_at: Timestamp,
}

/// A message that the sandbox accepts.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The account that sends it.
    pub account: AccountId,
    /// The phone number that sends it.
    pub phone: String,
    /// The recipient: the digits of a phone number.
    pub to: String,
    /// The template.
    pub template: TemplateId,
    /// The version that was live.
    pub version: u64,
    /// The category of the template.
    pub category: Category,
    /// The texts that the recipient reads, as JSON.
    pub texts: String,
    /// The code with which it fails after it was sent.
    pub failure: Option<u32>,
    /// What the client wants to get back with each status.
    pub callback_data: Option<String>,
    /// The real time.
    pub at: Timestamp,
}

/// A message of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its id.
    pub id: MessageId,
    /// The phone number that sent it.
    pub phone: String,
    /// The recipient: the digits of a phone number.
    pub to: String,
    /// The template.
    pub template: TemplateId,
    /// What lists show of the template. `None` if the store does not have it any more, and in the
    /// result of [`add_message`](crate::Store::add_message).
    pub sent_template: Option<SentTemplate>,
    /// The version that was live.
    pub version: u64,
    /// The category that the template had.
    pub category: Category,
    /// The texts that the recipient reads, as JSON.
    pub texts: String,
    /// The code with which it fails after it was sent.
    pub failure: Option<u32>,
    /// When it was sent, on the account's clock.
    pub sent_at: Timestamp,
    /// Its status at the time of the account's clock.
    pub status: MessageStatus,
}

/// The template of a message, which may have been deleted since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentTemplate {
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Whether it was deleted.
    pub is_deleted: bool,
}

/// Up to which message an endpoint has got each status, by the position of the status in the
/// [timeline](galley_domain::emulator::messages::timeline) of a message.
///
/// The messages of an account are numbered in the order of their times, and each position comes at
/// the same time after the send. So the statuses at one position are due in the order of the
/// messages, and one number tells how many of them were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCursor {
    /// The last message of which `sent` was sent.
    pub sent: u64,
    /// The last message of which `delivered` or `failed` was sent.
    pub delivered: u64,
    /// The last message of which `read` was sent, or that has none.
    pub read: u64,
}

/// The result of [`lease_statuses`](crate::Store::lease_statuses).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusLease {
    /// The caller holds the lease on these statuses.
    Due(Box<DueStatuses>),
    /// Nothing is due; statuses may be due at this real time.
    NothingDue(Option<Timestamp>),
}

/// Statuses that one worker has leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueStatuses {
    /// The endpoint to send to.
    pub webhook: Webhook,
    /// The statuses, in the order of their times; those of one message in their order.
    pub statuses: Vec<DueStatus>,
}

/// A status to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueStatus {
    /// The message.
    pub message: MessageId,
    /// The phone number that sent it.
    pub phone: String,
    /// The recipient: the digits of a phone number.
    pub to: String,
    /// The category that the template had.
    pub category: Category,
    /// The status.
    pub status: MessageStatus,
    /// The code of a failure.
    pub code: Option<u32>,
    /// When it happened, on the account's clock.
    pub at: Timestamp,
    /// What the client wanted to get back.
    pub callback_data: Option<String>,
    /// The cursor of the endpoint once this status was sent.
    pub cursor: StatusCursor,
}
