//! Random histories of a template and what the provider does with it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::documents::{choice, code, message};

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The account edits the template: the component with this index, or else all of it.
    Edit(Value, usize),
    /// The account restores the version before the newest one.
    Restore,
    /// A call is made for the newest version, if one is needed: it may be lost before or after it.
    Call { planned_from: PlannedFrom, is_made: bool, is_answered: bool },
    /// Galley looks whether a lost call was made.
    Probe,
    /// The provider shows the template, perhaps as it was before the last change.
    Look { look: Look, is_late: bool },
    /// The provider reviews what it has.
    Review(&'static str),
    /// A person accepts what the provider has.
    Accept,
    /// Another author edits it at the provider, in a way that a read shows.
    Outside(Value, &'static str),
    /// After that has been seen, the other author makes it look like the newest version, with another
    /// app that receives the codes.
    Imitation,
    /// A person decides to replace what the provider has.
    Push,
}

/// How a template is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// On a page without its content.
    Header,
    /// By a read.
    Read,
    /// By a read that shows no content.
    ReadWithoutContent,
}

/// What is known of the template when a call is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedFrom {
    /// It was just read.
    Read,
    /// It was read, and the provider showed it as it was before the last change.
    LateRead,
    /// It was seen recently, and there is no reason to read it.
    Row,
}

fn status() -> impl Strategy<Value = &'static str> {
    choice(&["PENDING", "APPROVED", "REJECTED"])
}

fn event(content: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Event> {
    let outside = (0..3_u8, status()).prop_map(|(it, status)| {
        let footer = json!({"type": "FOOTER", "text": "x", "code_expiration_minutes": it});
        let content = json!({"components": [{"type": "BODY", "text": "Other"}, footer]});
        Event::Outside(content, status)
    });
    let planned_from =
        prop::sample::select(&[PlannedFrom::Read, PlannedFrom::LateRead, PlannedFrom::Row][..]);
    let call = (planned_from, prop::bool::weighted(0.8), prop::bool::weighted(0.8)).prop_map(
        |(planned_from, is_made, is_answered)| Event::Call { planned_from, is_made, is_answered },
    );
    let look = prop::sample::select(&[Look::Header, Look::Read, Look::ReadWithoutContent][..]);
    prop_oneof![
        3 => (content, 0..4_usize).prop_map(|(content, index)| Event::Edit(content, index)),
        2 => Just(Event::Restore),
        4 => call,
        3 => Just(Event::Probe),
        6 => (look, any::<bool>()).prop_map(|(look, is_late)| Event::Look { look, is_late }),
        3 => status().prop_map(Event::Review),
        2 => Just(Event::Accept),
        2 => outside,
        1 => Just(Event::Imitation),
        1 => Just(Event::Push),
    ]
}

pub(super) fn history() -> impl Strategy<Value = (Value, Vec<Event>)> {
    prop_oneof![
        (message(), prop::collection::vec(event(message()), 1..40)),
        (code(), prop::collection::vec(event(code()), 1..40)),
    ]
}
