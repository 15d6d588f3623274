//! Fuzz target: arbitrary bytes as render values.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::values, input));
