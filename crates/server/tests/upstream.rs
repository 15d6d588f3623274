//! Accounts that are connected to a provider. The provider is a second Galley with a faithful emulator
//! account, called in process.

mod adopt;
mod archive;
mod budget;
mod connected;
mod crashes;
mod drift;
mod endless_lists;
mod first_import;
mod generated;
mod graph;
mod hooks;
mod lookups;
mod lost_webhooks;
mod operations;
mod pauses;
mod permissions;
mod provider;
mod reads;
mod rng;
mod samples;
mod sweeps;
mod unshown;
