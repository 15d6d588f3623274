//! The components of a template, each in its place.

use super::unknown;
use crate::{
    document::Json,
    render::{list, word},
    violation::ViolationCollector,
};

/// What there is of each kind.
#[derive(Default)]
pub(super) struct Parts<'t, 'a> {
    pub(super) header: Option<&'t Json<'a>>,
    pub(super) body: Option<&'t Json<'a>>,
    pub(super) footer: Option<&'t Json<'a>>,
    pub(super) buttons: Option<&'t Json<'a>>,
    pub(super) offer: Option<&'t Json<'a>>,
    pub(super) carousel: Option<&'t Json<'a>>,
    pub(super) call_permission: Option<&'t Json<'a>>,
}

impl<'t, 'a> Parts<'t, 'a> {
    /// Whether there is nothing but a body.
    pub(super) fn only_body(&self) -> bool {
        let Self { header, body: _, footer, buttons, offer, carousel, call_permission } = self;
        let others = [header, footer, buttons, offer, carousel, call_permission];
        others.iter().all(|it| it.is_none())
    }

    /// Sorts the components of a template or of a card. One of an unknown kind, or a second one of
    /// a kind, is told.
    pub(super) fn of(holder: &'t Json<'a>, report: &mut ViolationCollector) -> Self {
        let mut parts = Self::default();
        let components = list(Some(holder), "components");
        if components.is_empty() {
            unknown("list", Some("components"), report);
        }
        for component in components {
            let kind = word(component, "type");
            let place = match kind {
                Some("HEADER") => &mut parts.header,
                Some("BODY") => &mut parts.body,
                Some("FOOTER") => &mut parts.footer,
                Some("BUTTONS") => &mut parts.buttons,
                Some("LIMITED_TIME_OFFER") => &mut parts.offer,
                Some("CAROUSEL") => &mut parts.carousel,
                Some("CALL_PERMISSION_REQUEST") => &mut parts.call_permission,
                _ => {
                    unknown("component", kind, report);
                    continue;
                }
            };
            if place.replace(component).is_some() {
                unknown("component", kind, report);
            }
        }
        parts
    }
}
