//! `galley config`: the settings that count, and where each comes from.

use crate::{settings::Written, table};

pub(super) fn show(written: &Written, json: bool) {
    let rows = written.rows().into_iter();
    let rows = rows.map(|(name, value, source)| vec![name.into(), value.into(), source.into()]);
    table::print(json, &["setting", "value", "from"], rows.collect());
}
