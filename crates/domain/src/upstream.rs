//! Accounts that are connected to a provider, Meta or a service with the same API: why calls fail,
//! what the provider shows, whether contents are equal, what becomes of an operation, how complete a
//! sweep was, and how many calls are left. This module holds the pure decisions.

pub mod budget;
pub mod content;
pub mod failure;
pub mod hints;
pub mod observation;
pub mod operation;
pub mod plan;
pub mod samples;
pub mod sweep;

use crate::document::Json;

pub use budget::CallBudget;
pub use content::{ComparableContent, comparable};
pub use failure::{
    CallFailure, CallKind, GraphErrorBody, ProviderError, Usage, classify, refused_for,
};
pub use hints::{Hint, HookError, read_hook, read_hook_accounts};
pub use observation::{
    Created, ReadError, RemoteId, RemoteStatus, RemoteTemplate, ShownState, TemplateSource,
};
pub use operation::{
    CallDone, HeldReason, LostCall, Operation, OperationKind, OperationState, ProbeResult, Replaced,
};
pub use plan::PlanState;
pub use sweep::{PageSize, SweepProgress, SweepVerdict};

/// The longest text of a provider that Galley keeps, such as the message of an error.
const MAX_TEXT_CHARS: usize = 300;

/// A text of a provider for people, on one line and without an excessive length.
fn bounded(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(MAX_TEXT_CHARS).map(printable).collect()
}

/// The string in a member of an object.
fn text<'j>(object: &'j Json<'_>, key: &str) -> Option<&'j str> {
    object.get(key).and_then(Json::as_str)
}

/// The string in a member of an object, bounded; `None` if it is absent or empty.
fn bounded_text(object: &Json<'_>, key: &str) -> Option<String> {
    text(object, key).filter(|text| !text.trim().is_empty()).map(bounded)
}

/// The items of a list in a member of an object.
fn items<'j, 'a>(object: &'j Json<'a>, key: &str) -> &'j [Json<'a>] {
    match object.get(key) {
        Some(Json::Array(items)) => Json::kept(items),
        _ => &[],
    }
}
