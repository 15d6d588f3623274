//! What WhatsApp's Graph API answers where we tell a violation: its code, its subcode, and a title
//! of ours. One table; the first row that fits is taken.
//!
//! The same fault has another subcode in a header than in a body, so that the place counts. It is
//! found by following the violation's pointer through the document.

use crate::{
    document::Json,
    violation::{Rule, Violation},
};

/// An error of the Graph API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// `error.code`.
    pub code: u32,
    /// `error.error_subcode`, where one is known.
    pub subcode: Option<u32>,
    /// `error.error_user_title`.
    pub title: &'static str,
}

/// Where a fault stands, as far as codes tell places apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    Header,
    Body,
    Footer,
    /// Another component.
    Component,
    /// The label of a button.
    Label,
    /// The address of a button.
    Address,
    /// Any other field of a button.
    Button,
    /// Samples.
    Example,
    /// Anything else.
    Document,
}

struct Row {
    rules: &'static [Rule],
    /// Nowhere named: anywhere.
    places: &'static [Place],
    graph: Graph,
}

const fn row(
    rules: &'static [Rule],
    places: &'static [Place],
    subcode: u32,
    title: &'static str,
) -> Row {
    Row { rules, places, graph: Graph { code: INVALID, subcode: Some(subcode), title } }
}

/// An invalid parameter.
const INVALID: u32 = 100;

const OTHERWISE: Graph = Graph { code: INVALID, subcode: None, title: "The template is not valid" };

/// What is wrong with how a text is written.
const WRITING: &[Rule] = &[
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
        &[Place::Name],
        2_388_046,
        "The name holds characters that it may not",
    ),
    Row {
        rules: &[Rule::PhoneForm],
        places: &[],
        graph: Graph { code: 192, subcode: None, title: "The phone number is not valid" },
    },
    Row {
        rules: &[Rule::NotCovered],
        places: &[],
        graph: Graph { title: "Meta's template library is not covered here", ..OTHERWISE },
    },
    row(&[Rule::PlaceholderGap], &[], 2_388_037, "Variables do not count from 1"),
    row(
        &[Rule::PlaceholderAtStart, Rule::PlaceholderAtEnd],
        &[],
        2_388_299,
        "A variable stands at the beginning or end",
    ),
    row(&[Rule::TooFewWords], &[], 2_388_293, "Too many variables for so short a text"),
    row(&[Rule::WhatsappLink], &[], 2_388_081, "A button leads into WhatsApp"),
    row(
        &[Rule::SamplesCount, Rule::SamplesNotAllowed, Rule::SampleName],
        &[],
        2_388_043,
        "The example does not fit the text",
    ),
    row(
        &[Rule::SampleUnknown, Rule::SampleUnfit],
        &[],
        2_388_043,
        "The sample of an attachment is not there, or of another type",
    ),
    row(
        &[Rule::Required, Rule::WrongType, Rule::Empty, Rule::ControlCharacter],
        &[Place::Example],
        2_388_043,
        "The example does not fit the text",
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
        &[Place::Address],
        2_388_052,
        "The address of a button is not valid",
    ),
    row(
        &[Rule::Required, Rule::Empty, Rule::FlowSource, Rule::TermsNotAccepted],
        &[Place::Label, Place::Address, Place::Button],
        2_388_050,
        "A button lacks a field",
    ),
    row(WRITING, &[Place::Header], 2_388_047, "The header is written in a way it may not be"),
    row(WRITING, &[Place::Body], 2_388_072, "The body is written in a way it may not be"),
    row(WRITING, &[Place::Footer], 2_388_073, "The footer is written in a way it may not be"),
    row(WRITING, &[Place::Label], 2_388_060, "A label is written in a way it may not be"),
    row(&[Rule::NotAChoice], &[Place::Label], 2_388_060, "A label is not the one it has to be"),
    row(
        &[
            Rule::Required,
            Rule::WrongType,
            Rule::Empty,
            Rule::AuthenticationText,
            Rule::AuthenticationOnly,
        ],
        &[Place::Header, Place::Body, Place::Footer, Place::Component],
        2_388_043,
        "A component lacks a field or has one too many",
    ),
    row(
        &[Rule::BodyMissing, Rule::CardIncomplete, Rule::HeaderMissing],
        &[],
        2_388_043,
        "A component is missing",
    ),
];

/// What the Graph API answers for a violation of that document.
pub fn of(violation: &Violation, document: &Json<'_>) -> Graph {
    // Braces that are not closed WhatsApp only finds when it reviews.
    let only_braces = violation.span.is_some_and(|span| span.end - span.start == 2);
    if only_braces && [Rule::PlaceholderSyntax, Rule::PlaceholderName].contains(&violation.rule) {
        return OTHERWISE;
    }
    let place = place(&violation.pointer, document);
    let fits = |row: &&Row| {
        row.rules.contains(&violation.rule)
            && (row.places.is_empty() || row.places.contains(&place))
    };
    TABLE.iter().find(fits).map_or(OTHERWISE, |row| row.graph)
}

/// Follows a pointer; what it passes on its way tells where it leads.
fn place(pointer: &str, document: &Json<'_>) -> Place {
    let mut value = Some(document);
    let mut place = Place::Document;
    let mut list = "";
    for step in pointer.split('/').skip(1) {
        let holder = value;
        value = match value {
            Some(Json::Array(items)) => step.parse().ok().and_then(|at: usize| items.get(at)),
            Some(object) => object.get(step),
            None => None,
        };
        place = match (list, step, place) {
            ("components", ..) => component(value),
            ("buttons", ..) => Place::Button,
            (_, "name", Place::Document) => Place::Name,
            (_, "example", Place::Button | Place::Header | Place::Body) => sample(holder, place),
            (_, "text" | "autofill_text", Place::Button) => Place::Label,
            (_, "url", Place::Button) => Place::Address,
            _ => place,
        };
        list = step;
    }
    place
}

/// Samples stand beside texts and addresses. What else is called so is a field like any other: the
/// attachment of a header, the code of a button.
fn sample(holder: Option<&Json<'_>>, place: Place) -> Place {
    let says = |field: &str, word: &str| {
        let text = holder.and_then(|it| it.get(field)).and_then(Json::as_str);
        text.is_some_and(|text| text.eq_ignore_ascii_case(word))
    };
    match place {
        Place::Header if !says("format", "TEXT") => Place::Component,
        Place::Button if says("type", "COPY_CODE") => Place::Button,
        _ => Place::Example,
    }
}

fn component(value: Option<&Json<'_>>) -> Place {
    let word = value.and_then(|it| it.get("type")).and_then(Json::as_str).unwrap_or_default();
    let places = [("HEADER", Place::Header), ("BODY", Place::Body), ("FOOTER", Place::Footer)];
    let known = places.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    known.map_or(Place::Component, |(_, place)| *place)
}

/// The table for people, as Markdown.
pub(crate) fn markdown() -> String {
    let line = |row: &Row| {
        let rules: Vec<String> = row.rules.iter().map(|rule| format!("`{}`", rule.id())).collect();
        let places: Vec<String> =
            row.places.iter().map(|place| format!("{place:?}").to_lowercase()).collect();
        let places = if places.is_empty() { "anywhere".to_owned() } else { places.join(", ") };
        let Graph { code, subcode, title } = row.graph;
        let subcode = subcode.map_or("–".to_owned(), |it| it.to_string());
        format!("| {} | {places} | {code} | {subcode} | {title} |\n", rules.join(", "))
    };
    let rows: String = TABLE.iter().map(line).collect();
    let Graph { code, title, .. } = OTHERWISE;
    format!(
        "| rules | where | code | subcode | title |\n|---|---|---|---|---|\n{rows}| any other | anywhere | {code} | – | {title} |\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::Document, rulebook::WHATSAPP, template::Template};

    /// The codes of everything that is wrong with a document.
    fn codes(components: &str) -> Vec<(u32, u32)> {
        let text = format!(
            r#"{{"name":"Bad name","language":"en","category":"MARKETING","components":[{components}]}}"#
        );
        let document = Document::parse(text.as_bytes()).unwrap();
        let violations = Template::read(&document, &WHATSAPP).unwrap_err();
        let code = |violation| {
            let graph = of(violation, document.root());
            (graph.code, graph.subcode.unwrap_or(0))
        };
        let codes: Vec<_> = violations.listed().iter().map(code).collect();
        assert_eq!(codes[0], (100, 2_388_046), "the name is always wrong here");
        codes[1..].to_vec()
    }

    #[test]
    fn the_same_fault_has_another_code_in_another_place() {
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
            let example =
                if text.contains("{{1}}") { r#","example":{"body_text":"a"}"# } else { "" };
            let body = format!(r#"{{"type":"BODY","text":"{text}"{example}}}"#);
            assert_eq!(codes(&body), [(100, code)], "{text}");
        }
        let phone = r#"{"type":"BUTTONS","buttons":[{"type":"PHONE_NUMBER","text":"b","phone_number":"x"}]}"#;
        assert_eq!(codes(&format!("{body},{phone}")), [(192, 0)]);
        assert_eq!(codes(r#"{"type":"BODY","text":"b","example":{}}"#), [(100, 2_388_043)]);
        assert_eq!(codes(&format!("{body},{body}")), [(100, 0)]);
    }

    #[test]
    fn a_place_inside_a_card_is_found() {
        let document = Document::parse(
            br#"{"components":[{"type":"CAROUSEL","cards":[{"components":[{"type":"BODY"},{"type":"BUTTONS"}]}]}]}"#,
        )
        .unwrap();
        for (pointer, expected) in [
            ("", Place::Document),
            ("/name", Place::Name),
            ("/components", Place::Document),
            ("/components/0/cards/0", Place::Component),
            ("/components/0/cards/0/components/0/text", Place::Body),
            ("/components/0/cards/0/components/0/example/body_text", Place::Example),
            ("/components/0/cards/0/components/1/buttons/0/text", Place::Label),
            ("/components/7/text", Place::Component),
        ] {
            assert_eq!(place(pointer, document.root()), expected, "{pointer}");
        }
    }
}
