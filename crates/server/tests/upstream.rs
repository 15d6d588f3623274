//! Accounts that are connected to a provider. The provider is a second Galley with a faithful emulator
//! account, called in process.

mod adopt;
mod connected;
mod graph;
mod operations;
mod provider;
mod hooks;
mod sweeps;
