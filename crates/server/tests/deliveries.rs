//! Delivering on a clock that the test moves: the schedule, the order, rotation and disabling.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod deliveries {
    mod bench;
    mod endpoints;
    mod order;
    mod rounds;
    mod schedule;
    mod signatures;
    mod whatsapp;
}
