//! `galley config`: shows the effective settings and the source of each, or all defaults.

use crate::{
    settings::{DEFAULTS, RawSettings},
    table,
};

pub(super) fn show(raw: &RawSettings, json: bool) {
    let rows = raw.rows().into_iter();
    let rows = rows.map(|(name, value, source)| vec![name.into(), value.into(), source.into()]);
    table::print(json, &["setting", "value", "from"], rows.collect());
}

/// Prints the settings file with all defaults. It works without valid settings, because it is what an
/// operator begins with.
pub(super) fn print_defaults() {
    table::print_line(DEFAULTS.trim_end());
}
