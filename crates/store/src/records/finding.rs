//! What the checks of `galley doctor` find.

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
