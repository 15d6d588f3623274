//! Fuzz target: arbitrary bytes as the value of a request header.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::headers, input));
