//! The values that [`Store`](crate::Store) methods take and return.

mod account;
mod audit;
mod emulator;
mod ended_approval;
mod event;
mod list;
mod mirror;
mod operation;
mod sample_link;
mod session;
mod statistics;
mod template;
mod trace_context;
mod upload;
mod upstream;
mod webhook;

use jiff::Timestamp;

pub use account::*;
pub use audit::*;
pub use emulator::*;
pub use ended_approval::*;
pub use event::*;
pub use list::*;
pub use mirror::*;
pub use operation::*;
pub use sample_link::*;
pub use session::*;
pub use statistics::*;
pub use template::*;
pub use trace_context::*;
pub use upload::*;
pub use upstream::*;
pub use webhook::*;

/// What has work now, and when more is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWork<T> {
    /// Work now.
    pub now: Vec<T>,
    /// The earliest real time at which more work is due.
    pub next_at: Option<Timestamp>,
}

impl<T> DueWork<T> {
    /// Sorts what has work at some time by whether that has come.
    pub(crate) fn at(
        at: Timestamp,
        work: impl IntoIterator<Item = (T, Option<Timestamp>)>,
    ) -> Self {
        let mut due = Self::default();
        for (it, due_at) in work {
            match due_at {
                Some(due_at) if due_at <= at => due.now.push(it),
                Some(later) => due.next_at = Some(due.next_at.map_or(later, |it| it.min(later))),
                None => {}
            }
        }
        due
    }
}

impl<T> Default for DueWork<T> {
    fn default() -> Self {
        Self { now: Vec::new(), next_at: None }
    }
}

/// The result of one check by `galley doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub subject: &'static str,
    /// What the check found.
    pub detail: String,
    /// Whether the check passed.
    pub ok: bool,
    /// Whether the store is sound, but a setting can lose writes or hide damage.
    pub is_note: bool,
}

impl Finding {
    /// A check that passed or failed.
    pub fn checked(subject: &'static str, detail: impl Into<String>, ok: bool) -> Self {
        Self { subject, detail: detail.into(), ok, is_note: false }
    }

    /// A check that counted rows of which there must be none.
    pub(crate) fn counted(subject: &'static str, count: u64, noun: &str, problem: &str) -> Self {
        let plural = if count == 1 { "" } else { "s" };
        Self::checked(subject, format!("{count} {noun}{plural} {problem}"), count == 0)
    }

    /// Says what to do, if the check failed.
    pub(crate) fn with_advice(mut self, advice: &str) -> Self {
        if !self.ok {
            self.detail.push_str(": ");
            self.detail.push_str(advice);
        }
        self
    }

    /// A check that passed or, if `is_note`, found a setting that the operator should know of.
    pub fn noted(subject: &'static str, detail: impl Into<String>, is_note: bool) -> Self {
        Self { subject, detail: detail.into(), ok: true, is_note }
    }
}

/// A check that counts rows.
pub(crate) struct IntegrityCheck {
    /// Counts the rows.
    pub(crate) statement: String,
    /// What their number tells.
    pub(crate) finding: fn(u64) -> Finding,
}
