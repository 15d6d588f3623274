//! Connected accounts: what an observation of the provider and an operation change, and what an import
//! would end.

mod content;
mod observe;
mod operation;
mod preview;
mod submission;

pub use self::preview::ImportPreview;
pub(crate) use self::{
    content::imported_content,
    observe::{
        FormerVersion, Import, LocalChange, OWN_APPROVALS, Observation, Source, UNSENT, absent,
        postponed,
    },
    operation::{
        DUE_FIRST, EXPIRED_OPERATIONS, FIRST_OPERATIONS, OPERATION_COLUMNS, OpenCall,
        OpenOperation, Release, SHOWN_OPERATIONS, TemplateIdentity, VERSION_OPERATIONS, called,
        operation, operation_cutoff,
    },
    submission::{PlannedAction, Provided, UNFINISHED_OPERATIONS, acted, plan_action},
};
