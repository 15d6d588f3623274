//! Converting documents between the rulebooks: each issue with the smallest document that has it
//! and the nearest that has not, what comes out, and properties of whatever goes in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod convert {
    pub(crate) mod fixture;
    mod properties;
    mod results;
    mod table;
}
