//! The tests of the domain's public interface, in one executable, because each is linked on its
//! own. `cargo test -p galley-domain --test domain render::` runs one module.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod completeness;
mod convert;
mod edit;
mod emulator;
mod pages;
mod proof;
mod properties;
mod render;
mod render_properties;
mod render_whatsapp;
mod render_whatsapp_properties;
mod rules;
mod send;
mod suggestions;
mod token;
mod upstream_properties;
mod warnings;
mod webhook;
mod whatsapp;
mod whatsapp_edit;
mod whatsapp_properties;
mod whatsapp_warnings;
