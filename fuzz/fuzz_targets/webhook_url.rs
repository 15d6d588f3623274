//! Fuzz target: arbitrary text as the URL of a webhook endpoint.

#![no_main]

use galley_fuzz::targets;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::run_timed(targets::webhook_url, input));
