//! Every rule of the `whatsapp` rulebook: the smallest document that breaks it, the nearest one
//! that does not, and where the violation is told. The rules of `v1` have theirs in `rules.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod whatsapp {
    mod fixture;
    mod forms;
    mod limits;
    mod pieces;
    mod samples;
    mod table;
    mod warnings;
}
