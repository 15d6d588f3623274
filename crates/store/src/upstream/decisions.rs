//! Connected accounts: what an observation of the provider changes, when a connection has work, what
//! a sweep means, what webhooks leave behind, and how the rows are decoded.

mod connection;
mod content;
mod hints;
mod observe;
mod operation;
mod preview;
mod submission;
mod sweep;

pub use self::preview::ImportPreview;
pub(crate) use self::{
    connection::{
        CONNECTION_COLUMNS, SUSPICIOUS, connect_refusal, connection, connection_work,
        degraded_event, first_sweep_times, stored_error, work_columns,
    },
    content::imported_content,
    hints::{HintedTemplates, next_dirty},
    observe::{
        FormerVersion, Import, LocalChange, OWN_APPROVALS, Observation, Observed, Source, UNSENT,
        absent, postponed,
    },
    operation::{
        DUE_FIRST, EXPIRED_OPERATIONS, FIRST_OPERATIONS, OPERATION_COLUMNS, OpenCall,
        OpenOperation, Release, SHOWN_OPERATIONS, TemplateIdentity, VERSION_OPERATIONS, called,
        operation, operation_cutoff,
    },
    submission::{PlannedAction, Provided, UNFINISHED_OPERATIONS, acted, plan_action},
    sweep::{
        COUNT_MISSING, FORGET_GENERATED, FinishedSweep, MISSING, SEEN_BY_READS, SweptCounts,
        UNSEEN, count_swept,
    },
};
