//! Webhook delivery with a manual clock: retry schedule, order, secret rotation and disabling.

mod endpoints;
pub(crate) mod fake_receiver;
mod order;
mod schedule;
mod scheduler;
mod signatures;
mod whatsapp;
