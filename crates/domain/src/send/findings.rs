//! Collects the violations of a message and brings them into document order.

use super::{
    position::Position,
    refusal::{Refusal, RefusalCode, SendViolation},
};
use crate::{document::Json, violation::MAX_LISTED};

/// The violations found so far.
#[derive(Default)]
pub(super) struct Findings {
    found: Vec<Finding>,
    omitted: usize,
}

struct Finding {
    violation: SendViolation,
    /// Whether something is missing at the end of the list or object at the pointer.
    is_at_end: bool,
}

impl Findings {
    /// Adds a violation at a position. The message is written only if it will be listed.
    pub(super) fn add(
        &mut self,
        at: &Position<'_>,
        code: RefusalCode,
        message: impl FnOnce() -> String,
    ) {
        self.push(&at.pointer, false, code, message);
    }

    /// Adds a violation about something that the list or object at a position lacks.
    pub(super) fn add_at_end(
        &mut self,
        of: &Position<'_>,
        code: RefusalCode,
        message: impl FnOnce() -> String,
    ) {
        self.push(&of.pointer, true, code, message);
    }

    /// Adds violations that were found elsewhere.
    pub(super) fn extend(&mut self, violations: impl IntoIterator<Item = SendViolation>) {
        let finding = |violation| Finding { violation, is_at_end: false };
        self.found.extend(violations.into_iter().map(finding));
    }

    pub(super) fn count_omitted(&mut self, count: usize) {
        self.omitted += count;
    }

    fn push(
        &mut self,
        pointer: &str,
        is_at_end: bool,
        code: RefusalCode,
        message: impl FnOnce() -> String,
    ) {
        if self.found.len() >= MAX_LISTED {
            self.omitted += 1;
            return;
        }
        let violation = SendViolation { pointer: pointer.to_owned(), code, message: message() };
        self.found.push(Finding { violation, is_at_end });
    }

    /// `value` if nothing was found, otherwise the refusal. `root` is the message.
    pub(super) fn into_result<T>(
        mut self,
        root: &Json<'_>,
        value: Option<T>,
    ) -> Result<T, Refusal> {
        self.found.sort_by_cached_key(|it| order(root, it));
        self.omitted += self.found.len().saturating_sub(MAX_LISTED);
        self.found.truncate(MAX_LISTED);
        let violations: Vec<_> = self.found.into_iter().map(|it| it.violation).collect();
        match (value, violations.first()) {
            (Some(value), None) => Ok(value),
            (_, first) => {
                let (code, details) = first.map_or_else(
                    || (RefusalCode::ParameterInvalid, "the message is invalid".to_owned()),
                    |first| (first.code, first.message.clone()),
                );
                Err(Refusal { code, details, violations, omitted: self.omitted })
            }
        }
    }
}

/// The path to a violation as the indices of members and items. What is absent comes last.
fn order(root: &Json<'_>, finding: &Finding) -> Vec<usize> {
    let mut path = Vec::new();
    let mut value = Some(root);
    for segment in finding.violation.pointer.split('/').skip(1) {
        let found = match value {
            Some(Json::Object(members)) => {
                let index = members.iter().position(|member| member.key == segment);
                index.map(|index| (index, &members[index].value))
            }
            Some(Json::Array(items)) => {
                let index = segment.parse::<usize>().ok();
                index.and_then(|index| Some((index, items.get(index)?)))
            }
            _ => None,
        };
        path.push(found.map_or(usize::MAX, |(index, _)| index));
        value = found.map(|(_, value)| value);
    }
    if finding.is_at_end {
        path.push(usize::MAX);
    }
    path
}
