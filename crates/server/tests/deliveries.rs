//! Webhook delivery with a manual clock: retry schedule, order, secret rotation and disabling.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod deliveries {
    mod endpoints;
    mod harness;
    mod order;
    mod schedule;
    mod scheduler;
    mod signatures;
    mod whatsapp;
}
