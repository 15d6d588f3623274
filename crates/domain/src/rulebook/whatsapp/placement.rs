//! Elements that are restricted to certain categories, or to certain other elements.

use super::{
    Category::{self, Authentication, Marketing, Utility},
    MAX_BODY_CHARS, Rule,
};
use crate::{
    document::text::longer_than,
    rulebook::view::{DocumentView, ObjectView},
    violation::{Span, TextViolation, ViolationCollector},
};

/// The restrictions of an element: a component, a header or a button.
struct PlacementRule {
    position: Position,
    /// Its `type`, or the `format` of a header.
    value: &'static str,
    categories: &'static [Category],
    /// A field of the document, and header formats, which make MARKETING an allowed category.
    marketing_with: Option<(&'static str, &'static [&'static str])>,
    /// The allowed header formats; `None` for all.
    headers: Option<&'static [&'static str]>,
    /// The allowed components; `None` for all.
    components: Option<&'static [&'static str]>,
    /// Whether it has to be the only button.
    only_button: bool,
    /// Whether it requires a header.
    requires_header: bool,
    /// The maximum length of the body, in characters.
    max_body: usize,
}

/// The position of an element in a template.
enum Position {
    Component,
    Header,
    Button,
}

const fn allowed_in(
    position: Position,
    value: &'static str,
    categories: &'static [Category],
) -> PlacementRule {
    let (headers, components) = (None, None);
    PlacementRule {
        position,
        value,
        categories,
        marketing_with: None,
        headers,
        components,
        only_button: false,
        requires_header: false,
        max_body: MAX_BODY_CHARS,
    }
}

const PLACEMENT_RULES: &[PlacementRule] = &[
    PlacementRule {
        components: Some(&["BODY", "CAROUSEL"]),
        ..allowed_in(Position::Component, "CAROUSEL", &[Marketing])
    },
    PlacementRule {
        headers: Some(&["IMAGE", "VIDEO"]),
        components: Some(&["HEADER", "BODY", "BUTTONS", "LIMITED_TIME_OFFER"]),
        max_body: 600,
        ..allowed_in(Position::Component, "LIMITED_TIME_OFFER", &[Marketing])
    },
    allowed_in(Position::Component, "CALL_PERMISSION_REQUEST", &[Utility, Marketing]),
    allowed_in(Position::Header, "LOCATION", &[Utility, Marketing]),
    allowed_in(Position::Header, "PRODUCT", &[Marketing]),
    allowed_in(Position::Header, "GIF", &[Marketing]),
    allowed_in(Position::Button, "OTP", &[Authentication]),
    allowed_in(Position::Button, "COPY_CODE", &[Marketing, Utility]),
    PlacementRule {
        headers: Some(&[]),
        only_button: true,
        ..allowed_in(Position::Button, "CATALOG", &[Marketing])
    },
    PlacementRule {
        headers: Some(&["TEXT"]),
        only_button: true,
        requires_header: true,
        ..allowed_in(Position::Button, "MPM", &[Marketing])
    },
    PlacementRule {
        headers: Some(&["PRODUCT"]),
        max_body: 160,
        ..allowed_in(Position::Button, "SPM", &[Marketing])
    },
    PlacementRule {
        // In a MARKETING template, the header shows what is being bought.
        marketing_with: Some(("display_format", &["IMAGE", "VIDEO"])),
        ..allowed_in(Position::Button, "ORDER_DETAILS", &[Utility])
    },
];

impl PlacementRule {
    /// The first element of a document to which the rule applies.
    fn find<'d>(&self, document: &DocumentView<'d>) -> Option<ObjectView<'d>> {
        match self.position {
            Position::Component => document.component(self.value),
            Position::Header => {
                document.component("HEADER").filter(|it| it.field_equals("format", self.value))
            }
            Position::Button => document.button(self.value),
        }
    }
}

/// Applies the placement rules. Authentication templates have a stricter check of their own.
pub(super) fn check(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    if document.category == Some(Authentication) {
        return;
    }
    for rule in PLACEMENT_RULES {
        if let Some(element) = rule.find(document) {
            check_category(rule, element, document, violations);
            check_components(rule, document, violations);
            if rule.only_button && document.buttons().nth(1).is_some() {
                element.report(violations, || {
                    let message =
                        format!("is of type {}, which must be the only button", rule.value);
                    TextViolation::new(Rule::ButtonAlone, message).hint("remove the other buttons")
                });
            }
            if rule.requires_header && document.component("HEADER").is_none() {
                element.report(violations, || {
                    let message = format!("is of type {}, which requires a header", rule.value);
                    let formats = rule.headers.unwrap_or_default().join(" or ");
                    let hint = format!("add a HEADER of format {formats}");
                    TextViolation::new(Rule::HeaderMissing, message).hint(hint)
                });
            }
        }
    }
}

fn check_category(
    rule: &PlacementRule,
    element: ObjectView<'_>,
    document: &DocumentView<'_>,
    violations: &mut ViolationCollector,
) {
    let Some(category) = document.category else { return };
    let header = document.component("HEADER");
    let allows_marketing = rule.marketing_with.is_some_and(|(field, formats)| {
        let matches =
            |header: ObjectView<'_>| formats.iter().any(|it| header.field_equals("format", it));
        document.root.has(field) || header.is_some_and(matches)
    });
    if rule.categories.contains(&category) || (allows_marketing && category == Marketing) {
        return;
    }
    element.report(violations, || {
        let (value, found) = (rule.value, category.as_str());
        let allowed: Vec<&str> = rule.categories.iter().map(|it| it.as_str()).collect();
        let message = format!("is of type {value}, which {found} templates do not support");
        let mut hint = format!("remove it, or change the category to {}", allowed.join(" or "));
        if let Some((field, formats)) = rule.marketing_with.filter(|_| category == Marketing) {
            let formats = formats.join(" or ");
            hint = format!("{hint}, or add `{field}` or a HEADER of format {formats}");
        }
        TextViolation::new(Rule::CategoryUnfit, message).hint(hint)
    });
}

/// Checks the components next to the element, and the length of the body.
fn check_components(
    rule: &PlacementRule,
    document: &DocumentView<'_>,
    violations: &mut ViolationCollector,
) {
    let reject = |object: ObjectView<'_>,
                  what: &str,
                  allowed: &[&str],
                  violations: &mut ViolationCollector| {
        object.report(violations, || {
            let message = format!("is of type {what}, which {} does not allow", rule.value);
            let hint = match allowed {
                [] => "remove it".to_owned(),
                allowed => format!("remove it; allowed: {}", allowed.join(", ")),
            };
            TextViolation::new(Rule::ComponentUnfit, message).hint(hint)
        });
    };
    for component in document.components() {
        let Some(component_type) = component.text("type") else { continue };
        let format = component.text("format").filter(|_| component.is("HEADER"));
        let is_in =
            |allowed: &[&str], value: &str| allowed.iter().any(|it| it.eq_ignore_ascii_case(value));
        match (rule.components, rule.headers, format) {
            (Some(allowed), ..) if !is_in(allowed, component_type) => {
                reject(component, component_type, allowed, violations);
            }
            (_, Some(allowed), Some(format)) if !is_in(allowed, format) => {
                reject(component, &format!("HEADER {format}"), allowed, violations);
            }
            _ => {}
        }
    }
    check_body_length(rule, document, violations);
}

fn check_body_length(
    rule: &PlacementRule,
    document: &DocumentView<'_>,
    violations: &mut ViolationCollector,
) {
    let max = rule.max_body;
    let Some(body) = document.component("BODY").filter(|_| max < MAX_BODY_CHARS) else { return };
    let Some(text) = body.text("text").filter(|text| longer_than(text, max)) else { return };
    body.report_field("text", violations, || {
        let length = text.chars().count();
        let message =
            format!("has {length} characters; at most {max} are allowed with {}", rule.value);
        let hint = format!("shorten it to {max} characters");
        TextViolation::new(Rule::TooLong, message).hint(hint).at(Span { start: max, end: length })
    });
}

/// Requires a PRODUCT header and an SPM button to appear together; a card may have a URL button
/// instead.
pub(super) fn check_products(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    for (number, holder) in document.component_owners().enumerate() {
        // The first holder is the message itself.
        let is_card = number > 0;
        let header = holder.component("HEADER").filter(|it| it.field_equals("format", "PRODUCT"));
        let buttons = || holder.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
        let is_spm = |it: &ObjectView<'_>| it.is("SPM");
        if let Some(button) = buttons().find(is_spm).filter(|_| header.is_none()) {
            button.report(violations, || {
                let message = "is an SPM button without a HEADER of format PRODUCT";
                TextViolation::new(Rule::ProductHeader, message)
                    .hint("add a HEADER of format PRODUCT")
            });
        }
        let shows_product = |it: ObjectView<'_>| is_spm(&it) || (is_card && it.is("URL"));
        if let Some(header) = header.filter(|_| !buttons().any(shows_product)) {
            header.report(violations, || {
                let message = "is a PRODUCT header without a button for the product";
                TextViolation::new(Rule::ProductHeader, message).hint("add an SPM button")
            });
        }
        if is_card && header.is_some() {
            check_product_card(holder, violations);
        }
    }
}

/// Requires that a product card has one button and no body.
fn check_product_card(card: ObjectView<'_>, violations: &mut ViolationCollector) {
    if let Some(body) = card.component("BODY") {
        body.report(violations, || {
            let message = "is a BODY, which product cards do not support";
            TextViolation::new(Rule::ComponentUnfit, message).hint("remove it")
        });
    }
    let mut buttons = card.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
    if let Some(second) = buttons.nth(1) {
        second.report(violations, || {
            let message = "is a second button on a product card";
            TextViolation::new(Rule::ButtonAlone, message).hint("keep one button, SPM or URL")
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{document::Document, rulebook::WHATSAPP, template::Template};

    /// The rules that a template with these components breaks.
    fn broken(category: Category, components: &[Value]) -> Vec<Rule> {
        let document = json!({"name": "n", "language": "en", "category": category.as_str(),
            "components": components})
        .to_string();
        let result = Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
        result.err().map(|it| it.listed().iter().map(|it| it.rule).collect()).unwrap_or_default()
    }

    fn header(format: &str) -> Value {
        match format {
            "TEXT" => json!({"type": "HEADER", "format": format, "text": "h"}),
            "LOCATION" | "PRODUCT" => json!({"type": "HEADER", "format": format}),
            _ => json!({"type": "HEADER", "format": format, "example": {"header_handle": "h"}}),
        }
    }

    /// The component that contains the restricted element.
    fn component(rule: &PlacementRule) -> Value {
        match rule.position {
            Position::Component => json!({"type": rule.value}),
            Position::Header => header(rule.value),
            Position::Button => json!({"type": "BUTTONS", "buttons": [{"type": rule.value}]}),
        }
    }

    fn body(length: usize) -> Value {
        json!({"type": "BODY", "text": "b".repeat(length)})
    }

    #[test]
    fn each_rule_restricts_categories_body_length_and_buttons() {
        for rule in PLACEMENT_RULES {
            let (value, component) = (rule.value, component(rule));
            for category in [Marketing, Utility] {
                let rules = broken(category, &[body(1), component.clone()]);
                let unfit = !rule.categories.contains(&category);
                assert_eq!(rules.contains(&Rule::CategoryUnfit), unfit, "{value} {category:?}");
            }
            let bodies = |length| broken(Marketing, &[body(length), component.clone()]);
            assert!(!bodies(rule.max_body).contains(&Rule::TooLong), "{value}");
            assert!(bodies(rule.max_body + 1).contains(&Rule::TooLong), "{value}");
            let lacks_header = |rules: Vec<Rule>| rules.contains(&Rule::HeaderMissing);
            assert_eq!(lacks_header(bodies(1)), rule.requires_header, "{value}");
            if let Position::Button = rule.position {
                let reply = json!({"type": "QUICK_REPLY", "text": "t"});
                let two = json!({"type": "BUTTONS", "buttons": [component["buttons"][0], reply]});
                let rejected = broken(Marketing, &[body(1), two]).contains(&Rule::ButtonAlone);
                assert_eq!(rejected, rule.only_button, "{value}");
            }
        }
    }

    #[test]
    fn each_rule_restricts_headers_and_components() {
        const FORMATS: [&str; 7] =
            ["TEXT", "IMAGE", "VIDEO", "DOCUMENT", "GIF", "LOCATION", "PRODUCT"];
        for rule in PLACEMENT_RULES.iter().filter(|it| !matches!(it.position, Position::Header)) {
            let (value, component) = (rule.value, component(rule));
            let allows = |component: &str| rule.components.is_none_or(|it| it.contains(&component));
            for format in FORMATS {
                let rules = broken(Marketing, &[body(1), header(format), component.clone()]);
                // `product-header` violations are not part of this rule.
                let fits = rule.headers.is_none_or(|it| it.contains(&format)) && allows("HEADER");
                assert_eq!(!rules.contains(&Rule::ComponentUnfit), fits, "{value} {format}");
            }
            let footer = json!({"type": "FOOTER", "text": "f"});
            let rules = broken(Marketing, &[body(1), footer, component]);
            assert_eq!(!rules.contains(&Rule::ComponentUnfit), allows("FOOTER"), "{value}");
        }
    }
}
