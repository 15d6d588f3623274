//! Fuzzed: any bytes as the body of what clients of WhatsApp's API send.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::quickly(targets::form_body, input));
