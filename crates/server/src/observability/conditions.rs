//! What is wrong with this instance, as `/readyz` reports it: conditions that workers set and clear.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

/// How serious a condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The instance still serves all requests.
    Warning,
    /// The instance should receive no requests: `/readyz` responds with 503.
    Failure,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) detail: String,
    #[serde(skip)]
    pub(crate) severity: Severity,
}

/// The current conditions of this instance, at most one for each name.
#[derive(Default)]
pub(crate) struct Conditions(Mutex<BTreeMap<&'static str, Condition>>);

impl Conditions {
    /// Sets the condition with this name. Returns whether it is new or has changed, so that the
    /// caller can log it once.
    pub(crate) fn set(&self, name: &'static str, severity: Severity, detail: String) -> bool {
        let mut conditions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let condition = Condition { name, detail, severity };
        let former = conditions.insert(name, condition.clone());
        former.is_none_or(|it| it.severity != severity || it.detail != condition.detail)
    }

    /// Sets the condition with this name unless it is set already. Returns whether it is new.
    pub(crate) fn set_if_absent(
        &self,
        name: &'static str,
        severity: Severity,
        detail: &str,
    ) -> bool {
        let mut conditions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !conditions.contains_key(name);
        conditions.entry(name).or_insert_with(|| Condition {
            name,
            detail: detail.to_owned(),
            severity,
        });
        is_new
    }

    /// Removes the condition with this name. Returns whether it was set.
    pub(crate) fn clear(&self, name: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// All conditions of a severity, by name.
    pub(crate) fn all(&self, severity: Severity) -> Vec<Condition> {
        let conditions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.values().filter(|it| it.severity == severity).cloned().collect()
    }
}
