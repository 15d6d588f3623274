//! Error codes of WhatsApp's Graph API for violations: code, subcode, and a title by Galley. The
//! first matching row of one table applies.
//!
//! The subcode of a rule depends on the location: it differs between a header and a body. The
//! location follows from the violation's pointer and the document.

use crate::{
    document::Json,
    violation::{Rule, Violation},
};

/// An error of the Graph API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphError {
    /// `error.code`.
    pub code: u32,
    /// `error.error_subcode`, where one is known.
    pub subcode: Option<u32>,
    /// `error.error_user_title`.
    pub title: &'static str,
}

/// The location of a violation, as far as the codes depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Name,
    Header,
    Body,
    Footer,
    /// Any other component.
    Component,
    /// The label of a button.
    Label,
    /// The URL of a button.
    Url,
    /// Any other field of a button.
    Button,
    /// Sample values.
    Example,
    /// Anything else.
    Document,
}

struct Row {
    rules: &'static [Rule],
    /// Empty for all locations.
    locations: &'static [Location],
    error: GraphError,
}

const fn row(
    rules: &'static [Rule],
    locations: &'static [Location],
    subcode: u32,
    title: &'static str,
) -> Row {
    Row {
        rules,
        locations,
        error: GraphError { code: INVALID_PARAMETER, subcode: Some(subcode), title },
    }
}

/// The Graph API's code for an invalid parameter.
const INVALID_PARAMETER: u32 = 100;

const OTHER: GraphError =
    GraphError { code: INVALID_PARAMETER, subcode: None, title: "The template is not valid" };

/// The rules about the characters and placeholders of a text.
const TEXT_RULES: &[Rule] = &[
    Rule::ControlCharacter,
    Rule::Empty,
    Rule::Formatting,
    Rule::Emoji,
    Rule::PlaceholderNotAllowed,
    Rule::PlaceholderSyntax,
    Rule::PlaceholderName,
    Rule::PlaceholderCount,
];

const TABLE: &[Row] = &[
    row(&[Rule::TooLong], &[], 2_388_040, "A text is too long"),
    row(
        &[Rule::NameForm, Rule::ControlCharacter, Rule::Empty],
        &[Location::Name],
        2_388_046,
        "The name contains invalid characters",
    ),
    Row {
        rules: &[Rule::PhoneForm],
        locations: &[],
        error: GraphError { code: 192, subcode: None, title: "The phone number is not valid" },
    },
    Row {
        rules: &[Rule::NotCovered],
        locations: &[],
        error: GraphError { title: "Meta's template library is not supported", ..OTHER },
    },
    row(&[Rule::PlaceholderGap], &[], 2_388_037, "Variables are not numbered consecutively from 1"),
    row(
        &[Rule::PlaceholderAtStart, Rule::PlaceholderAtEnd],
        &[],
        2_388_299,
        "The body starts or ends with a variable",
    ),
    row(&[Rule::TooFewWords], &[], 2_388_293, "The body has too many variables for its length"),
    row(&[Rule::WhatsappLink], &[], 2_388_081, "A button links to WhatsApp"),
    row(
        &[Rule::SamplesCount, Rule::SamplesFlat, Rule::SamplesNotAllowed, Rule::SampleName],
        &[],
        2_388_043,
        "The example does not match the text",
    ),
    row(&[Rule::HandleForm], &[], 2_388_273, "The media handle is not valid"),
    row(
        &[Rule::SampleUnknown, Rule::SampleUnfit],
        &[],
        2_388_043,
        "The sample file does not exist or has the wrong type",
    ),
    row(
        &[Rule::Required, Rule::WrongType, Rule::Empty, Rule::ControlCharacter],
        &[Location::Example],
        2_388_043,
        "The example does not match the text",
    ),
    row(
        &[
            Rule::UrlScheme,
            Rule::UrlHost,
            Rule::UrlUserInfo,
            Rule::UrlWhiteSpace,
            Rule::PlaceholderNotAllowed,
            Rule::ControlCharacter,
        ],
        &[Location::Url],
        2_388_052,
        "The URL of a button is not valid",
    ),
    row(
        &[Rule::Required, Rule::Empty, Rule::FlowSource, Rule::TermsNotAccepted],
        &[Location::Label, Location::Url, Location::Button],
        2_388_050,
        "A required field of a button is missing",
    ),
    row(TEXT_RULES, &[Location::Header], 2_388_047, "The header text is not valid"),
    row(TEXT_RULES, &[Location::Body], 2_388_072, "The body text is not valid"),
    row(TEXT_RULES, &[Location::Footer], 2_388_073, "The footer text is not valid"),
    row(TEXT_RULES, &[Location::Label], 2_388_060, "A button label is not valid"),
    row(
        &[Rule::NotAChoice],
        &[Location::Label],
        2_388_060,
        "A button label is not the required one",
    ),
    row(
        &[
            Rule::Required,
            Rule::WrongType,
            Rule::Empty,
            Rule::AuthenticationText,
            Rule::AuthenticationOnly,
        ],
        &[Location::Header, Location::Body, Location::Footer, Location::Component],
        2_388_043,
        "A component has a missing or unexpected field",
    ),
    row(
        &[Rule::BodyMissing, Rule::CardIncomplete, Rule::HeaderMissing],
        &[],
        2_388_043,
        "A component is missing",
    ),
];

/// The error with which the Graph API would report a violation of this document.
pub fn for_violation(violation: &Violation, document: &Json<'_>) -> GraphError {
    // The Graph API accepts unclosed braces; WhatsApp rejects them only in its review.
    let only_braces = violation.span.is_some_and(|span| span.end - span.start == 2);
    if only_braces && [Rule::PlaceholderSyntax, Rule::PlaceholderName].contains(&violation.rule) {
        return OTHER;
    }
    let location = location(&violation.pointer, document);
    let matches = |row: &&Row| {
        row.rules.contains(&violation.rule)
            && (row.locations.is_empty() || row.locations.contains(&location))
    };
    TABLE.iter().find(matches).map_or(OTHER, |row| row.error)
}

/// Finds the location of a pointer from the objects on its path.
fn location(pointer: &str, document: &Json<'_>) -> Location {
    let mut value = Some(document);
    let mut location = Location::Document;
    let mut list = "";
    for token in pointer.split('/').skip(1) {
        let parent = value;
        value = match value {
            Some(Json::Array(items)) => token.parse().ok().and_then(|at: usize| items.get(at)),
            Some(object) => object.get(token),
            None => None,
        };
        location = match (list, token, location) {
            ("components", ..) => component_location(value),
            ("buttons", ..) => Location::Button,
            (_, "name", Location::Document) => Location::Name,
            (_, "example", Location::Button | Location::Header | Location::Body) => {
                example_location(parent, location)
            }
            (_, "text" | "autofill_text", Location::Button) => Location::Label,
            (_, "url", Location::Button) => Location::Url,
            _ => location,
        };
        list = token;
    }
    location
}

/// The location of an `example` field. Only the sample values of texts and URLs count as
/// [`Location::Example`]; the attachment of a header and the code of a button are ordinary fields.
fn example_location(parent: Option<&Json<'_>>, location: Location) -> Location {
    let is = |field: &str, value: &str| {
        let text = parent.and_then(|it| it.get(field)).and_then(Json::as_str);
        text.is_some_and(|text| text.eq_ignore_ascii_case(value))
    };
    match location {
        Location::Header if !is("format", "TEXT") => Location::Component,
        Location::Button if is("type", "COPY_CODE") => Location::Button,
        _ => Location::Example,
    }
}

fn component_location(value: Option<&Json<'_>>) -> Location {
    let found = value.and_then(|it| it.get("type")).and_then(Json::as_str).unwrap_or_default();
    let locations =
        [("HEADER", Location::Header), ("BODY", Location::Body), ("FOOTER", Location::Footer)];
    let known = locations.iter().find(|(known, _)| known.eq_ignore_ascii_case(found));
    known.map_or(Location::Component, |(_, location)| *location)
}

/// The table as Markdown, for the rules page.
pub(crate) fn markdown() -> String {
    let line = |row: &Row| {
        let rules: Vec<String> = row.rules.iter().map(|rule| format!("`{}`", rule.id())).collect();
        let locations: Vec<String> =
            row.locations.iter().map(|location| format!("{location:?}").to_lowercase()).collect();
        let locations = if locations.is_empty() { "any".to_owned() } else { locations.join(", ") };
        let GraphError { code, subcode, title } = row.error;
        let subcode = subcode.map_or("–".to_owned(), |it| it.to_string());
        format!("| {} | {locations} | {code} | {subcode} | {title} |\n", rules.join(", "))
    };
    let rows: String = TABLE.iter().map(line).collect();
    let GraphError { code, title, .. } = OTHER;
    format!(
        "| rules | location | code | subcode | title |\n|---|---|---|---|---|\n{rows}| any other | any | {code} | – | {title} |\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::Document, rulebook::WHATSAPP, template::Template};

    /// The code and subcode (or 0) of each violation of a document.
    fn codes(components: &str) -> Vec<(u32, u32)> {
        let text = format!(
            r#"{{"name":"Bad name","language":"en","category":"MARKETING","components":[{components}]}}"#
        );
        let document = Document::parse(text.as_bytes()).unwrap();
        let violations = Template::read(&document, &WHATSAPP).unwrap_err();
        let code = |violation| {
            let error = for_violation(violation, document.root());
            (error.code, error.subcode.unwrap_or(0))
        };
        let codes: Vec<_> = violations.listed().iter().map(code).collect();
        assert_eq!(codes[0], (100, 2_388_046), "the name is always wrong here");
        codes[1..].to_vec()
    }

    #[test]
    fn the_code_of_a_violation_depends_on_its_location() {
        let body = r#"{"type":"BODY","text":"b"}"#;
        for (component, code) in [
            (r#"{"type":"header","format":"text","text":"*b*"}"#, 2_388_047),
            (r#"{"type":"footer","text":"*b*"}"#, 2_388_073),
            (r#"{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY","text":"*b*"}]}"#, 2_388_060),
            (r#"{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY"}]}"#, 2_388_050),
            (r#"{"type":"BUTTONS","buttons":[{"type":"URL","text":"b","url":"x"}]}"#, 2_388_052),
            (
                r#"{"type":"BUTTONS","buttons":[{"type":"URL","text":"b","url":"https://wa.me/1"}]}"#,
                2_388_081,
            ),
            (r#"{"type":"HEADER","format":"IMAGE"}"#, 2_388_043),
            (r#"{"type":"FOOTER"}"#, 2_388_043),
            (r#"{"type":"FOOTER","text":"f","example":{}}"#, 2_388_043),
            (r#"{"type":"BUTTONS","buttons":[{"type":"COPY_CODE"}]}"#, 2_388_050),
            (
                r#"{"type":"BUTTONS","buttons":[{"type":"REQUEST_CONTACT_INFO","text":"b"}]}"#,
                2_388_060,
            ),
        ] {
            assert_eq!(codes(&format!("{body},{component}")), [(100, code)], "{component}");
        }
        for (text, code) in [
            ("one \\u0000", 2_388_072),
            ("one {{x}} two three", 2_388_072),
            ("one {{ two three", 0),
            ("one {{2}} two three", 2_388_037),
            ("{{1}} one two three", 2_388_299),
            ("one {{1}} two", 2_388_293),
        ] {
            let example = if text.contains("{{") { r#","example":{"body_text":"a"}"# } else { "" };
            let body = format!(r#"{{"type":"BODY","text":"{text}"{example}}}"#);
            assert_eq!(codes(&body), [(100, code)], "{text}");
        }
        let phone = r#"{"type":"BUTTONS","buttons":[{"type":"PHONE_NUMBER","text":"b","phone_number":"x"}]}"#;
        assert_eq!(codes(&format!("{body},{phone}")), [(192, 0)]);
        assert_eq!(codes(r#"{"type":"BODY","text":"b","example":{}}"#), [(100, 2_388_043)]);
        assert_eq!(codes(&format!("{body},{body}")), [(100, 0)]);
    }

    #[test]
    fn locations_inside_a_card_are_found() {
        let document = Document::parse(
            br#"{"components":[{"type":"CAROUSEL","cards":[{"components":[{"type":"BODY"},{"type":"BUTTONS"}]}]}]}"#,
        )
        .unwrap();
        for (pointer, expected) in [
            ("", Location::Document),
            ("/name", Location::Name),
            ("/components", Location::Document),
            ("/components/0/cards/0", Location::Component),
            ("/components/0/cards/0/components/0/text", Location::Body),
            ("/components/0/cards/0/components/0/example/body_text", Location::Example),
            ("/components/0/cards/0/components/1/buttons/0/text", Location::Label),
            ("/components/7/text", Location::Component),
        ] {
            assert_eq!(location(pointer, document.root()), expected, "{pointer}");
        }
    }
}
