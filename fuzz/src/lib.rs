//! Fuzz targets as functions of bytes. `fuzz_targets/` passes them to LLVM's fuzzer, and a test of
//! `galley-server` runs them on the seeds.

#[path = "../../crates/server/tests/harness/setup.rs"]
mod setup;
// Included by path, as in that test, so that its submodules are found next to it.
#[path = "targets.rs"]
pub mod targets;
