//! The components of a template or card by type.

use super::report_unknown;
use crate::{
    document::Json,
    render::{array_field, str_field},
    violation::ViolationCollector,
};

/// The component of each type, if there is one.
#[derive(Default)]
pub(crate) struct Components<'t, 'a> {
    pub(crate) header: Option<&'t Json<'a>>,
    pub(crate) body: Option<&'t Json<'a>>,
    pub(crate) footer: Option<&'t Json<'a>>,
    pub(crate) buttons: Option<&'t Json<'a>>,
    pub(crate) offer: Option<&'t Json<'a>>,
    pub(crate) carousel: Option<&'t Json<'a>>,
    pub(crate) call_permission: Option<&'t Json<'a>>,
}

impl<'t, 'a> Components<'t, 'a> {
    /// Whether the body is the only component.
    pub(crate) fn has_only_body(&self) -> bool {
        let Self { header, body: _, footer, buttons, offer, carousel, call_permission } = self;
        let others = [header, footer, buttons, offer, carousel, call_permission];
        others.iter().all(|it| it.is_none())
    }

    /// The components of a template or card. Reports unknown types and duplicates.
    pub(crate) fn of(parent: &'t Json<'a>, violations: &mut ViolationCollector) -> Self {
        let mut found = Self::default();
        let components = array_field(Some(parent), "components");
        if components.is_empty() {
            report_unknown("list", Some("components"), violations);
        }
        for component in components {
            let kind = str_field(component, "type");
            let slot = match kind {
                Some("HEADER") => &mut found.header,
                Some("BODY") => &mut found.body,
                Some("FOOTER") => &mut found.footer,
                Some("BUTTONS") => &mut found.buttons,
                Some("LIMITED_TIME_OFFER") => &mut found.offer,
                Some("CAROUSEL") => &mut found.carousel,
                Some("CALL_PERMISSION_REQUEST") => &mut found.call_permission,
                _ => {
                    report_unknown("component", kind, violations);
                    continue;
                }
            };
            if slot.replace(component).is_some() {
                report_unknown("component", kind, violations);
            }
        }
        found
    }
}
