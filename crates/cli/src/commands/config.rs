//! `galley config`: shows the effective settings and the source of each.

use crate::{settings::RawSettings, table};

pub(super) fn show(raw: &RawSettings, json: bool) {
    let rows = raw.rows().into_iter();
    let rows = rows.map(|(name, value, source)| vec![name.into(), value.into(), source.into()]);
    table::print(json, &["setting", "value", "from"], rows.collect());
}
