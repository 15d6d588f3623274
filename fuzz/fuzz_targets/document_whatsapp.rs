//! Fuzz target: arbitrary bytes as a template document under the rulebook `whatsapp`.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::document_whatsapp, input));
