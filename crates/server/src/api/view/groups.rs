//! The JSON form of templates that are grouped by name.

use std::sync::Arc;

use galley_domain::template::Status;
use galley_store::LanguageSummary;

use super::{ObjectWriter, Paging, page, upstream};
use crate::api::at_provider::{AllAtProvider, AtProvider};

/// A page of names, each with the templates that have it.
pub(crate) fn groups(
    groups: &[Arc<[LanguageSummary]>],
    all: &AllAtProvider,
    paging: &Paging,
) -> String {
    page(groups, paging, |out, templates| write_group(out, templates, all))
}

fn write_group(out: &mut String, templates: &[LanguageSummary], all: &AllAtProvider) {
    let name = templates.first().map_or("", |first| &*first.name);
    let mut object = ObjectWriter::open(out);
    object.string("name", name);
    out.push_str(",\"templates\":[");
    for (index, stored) in templates.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_item(out, stored, all.get(stored.id));
    }
    out.push_str("]}");
}

/// A template without its content.
fn write_item(out: &mut String, stored: &LanguageSummary, at: Option<&AtProvider>) {
    let state = &stored.state;
    let mut object = ObjectWriter::open(out);
    object.unescaped("id", itoa::Buffer::new().format(stored.id.get()));
    object.unescaped("language", &stored.language);
    object.unescaped("status", state.status().as_str());
    object.unescaped("category", stored.category.as_str());
    object.number("version", state.version);
    if let Some(live) = state.live_version() {
        object.number("live_version", live);
    }
    if let Some(reason) = stored.reason.as_ref().filter(|_| state.newest_status == Status::Rejected)
    {
        object.string("reason", reason);
    }
    object.timestamp("created_at", stored.created_at);
    object.timestamp("updated_at", stored.updated_at);
    if let Some(at) = at {
        upstream::write_member(&mut object, at);
    }
    object.close();
}
