//! Webhook delivery with a manual clock: retry schedule, order, secret rotation and disabling.

mod endpoints;
mod fake_receiver;
mod order;
mod schedule;
mod scheduler;
mod signatures;
mod whatsapp;
