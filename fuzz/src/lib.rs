//! What is fuzzed, as functions that take bytes; `fuzz_targets/` hands them to LLVM's fuzzer, and a
//! test of `galley-server` runs the seeds through them.

#[path = "../../crates/server/tests/api/setup.rs"]
mod setup;
// By its path, as the test has it: its own modules lie beside it then.
#[path = "targets.rs"]
pub mod targets;
