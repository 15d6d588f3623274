//! Fuzz target: arbitrary bytes as a request body of the WhatsApp surface.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::form_body, input));
