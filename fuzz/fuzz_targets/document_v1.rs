//! Fuzzed: any bytes as the document of a template under the rulebook `v1`.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::quickly(targets::document_v1, input));
