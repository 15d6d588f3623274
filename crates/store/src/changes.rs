//! Edits, reviews and deletions of templates.

mod decisions;

pub(crate) use self::decisions::{
    ExpiredVersions, FourEyes, Initiator, MAX_EXPIRED_VERSIONS, Planned, PlannedEdit, Siblings,
    VersionAuthor, accepted_edit, deleted, done, plan, plan_deletions, plan_edit, tokens_of_person,
};
