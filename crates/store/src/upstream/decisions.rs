//! Connected accounts: what an observation of the provider changes, and what an import would end.

mod content;
mod observe;
mod preview;

pub use self::preview::ImportPreview;
pub(crate) use self::{
    content::imported_content,
    observe::{
        FormerVersion, Import, LocalChange, OWN_APPROVALS, Observation, Source, UNSENT, absent,
        postponed,
    },
};
