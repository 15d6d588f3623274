//! Converting documents between the rulebooks: a minimal document with each issue and the closest one
//! without it, the results, and properties for arbitrary documents.

pub(crate) mod fixture;
mod properties;
mod results;
mod table;
