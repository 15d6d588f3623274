//! Fuzzed: any bytes as the values that templates are rendered with.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::quickly(targets::values, input));
