//! Fuzz target: arbitrary text as a cursor or another parameter of a list.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::cursors, input));
