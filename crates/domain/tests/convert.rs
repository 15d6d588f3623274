//! Converting documents between the rulebooks: a minimal document with each issue and the closest one
//! without it, the results, and properties for arbitrary documents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod convert {
    pub(crate) mod fixture;
    mod properties;
    mod results;
    mod table;
}
