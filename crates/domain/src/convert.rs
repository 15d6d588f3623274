//! Converts a document from one rulebook to the other and reports what is changed, lost or
//! incomplete.
//!
//! The result is validated against the target rulebook, and its violations are added to the report.
//! The conversion itself therefore does not check limits and formats.

mod report;
mod source;
mod to_v1;
mod to_whatsapp;

use crate::{
    document::{Document, Json, Member},
    id_catalogue::id_catalogue,
    rulebook::{Rulebook, V1, WHATSAPP},
    string_enum::string_enum,
    template::{Checked, Template},
    violation::{Rule, Span, Violation, Violations, Warning, WarningRule, Warnings},
};
use report::ConversionReport;
use source::{SourceObject, member, string};

/// The direction of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From `v1` to `whatsapp`.
    ToWhatsapp,
    /// From `whatsapp` to `v1`.
    ToV1,
}

impl Direction {
    /// The direction between two rulebooks; `None` if there is no such conversion.
    pub fn between(from: &Rulebook, to: &Rulebook) -> Option<Self> {
        [Self::ToWhatsapp, Self::ToV1].into_iter().find(|it| *it.from() == *from && *it.to() == *to)
    }

    /// The rulebook of the source.
    pub fn from(self) -> &'static Rulebook {
        match self {
            Self::ToWhatsapp => &V1,
            Self::ToV1 => &WHATSAPP,
        }
    }

    /// The rulebook of the result.
    pub fn to(self) -> &'static Rulebook {
        match self {
            Self::ToWhatsapp => &WHATSAPP,
            Self::ToV1 => &V1,
        }
    }
}

/// A converted document and the report of the conversion.
#[derive(Debug)]
pub struct Conversion {
    /// The document for the target rulebook.
    pub document: Document<'static>,
    /// What was changed or lost and what is incomplete, in the order of detection.
    pub notes: Vec<Note>,
    /// The number of further violations of the result, which are not listed.
    pub more: usize,
}

/// A difference between the source and the result, or a violation of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// RFC 6901 pointer into the source; empty for the document itself.
    pub pointer: String,
    /// The stable id of an [`Issue`], or of the rule that the result violates.
    pub id: &'static str,
    /// The consequence for the result.
    pub level: Level,
    /// What is different or wrong.
    pub message: String,
    /// How to handle it.
    pub hint: Option<String>,
    /// The affected characters of the string at `pointer`, if only a part is affected.
    pub span: Option<Span>,
}

string_enum!(
    /// The consequence of an issue for the result.
    Level {
        /// The target rulebook does not have it; it is dropped.
        Lost "lost",
        /// Something is missing that must be added manually.
        Incomplete "incomplete",
        /// It is in the result in another form.
        Changed "changed",
    }
);

id_catalogue! {
    /// What a conversion can report. Ids are stable: programs may depend on them.
    pub enum Issue with level: Level;

    NameChanged "name-changed" Changed
        "WhatsApp names consist of lower-case letters, digits and `_`; the name is adapted.";
    LanguageChanged "language-changed" Changed
        "The target rulebook does not have this language code; the closest one is used.";
    PlaceholdersNumbered "placeholders-numbered" Changed
        "`v1` has only numbered placeholders; names become numbers in order of appearance.";
    ButtonReplaced "button-replaced" Changed
        "WhatsApp's AUTHENTICATION templates deliver their code with an OTP button.";
    MediaKindUntold "media-kind-untold" Changed
        "`v1` derives the type of an attachment from the file extension of its URL, and this URL has another extension or none.";
    MediaFormatUnknown "media-format-unknown" Incomplete
        "WhatsApp requires the attachment type IMAGE, VIDEO or DOCUMENT, and the file extension of the URL does not determine it.";
    SampleUpload "sample-upload" Incomplete
        "WhatsApp requires the handle of an uploaded sample; the result contains its URL until you replace it.";
    SampleAddress "sample-address" Incomplete
        "`v1` requires the URL of a sample, and the source has a handle.";
    TextMissing "text-missing" Incomplete
        "WhatsApp generates the text of AUTHENTICATION templates, so the source has none to convert.";
    TextOfWhatsapp "text-of-whatsapp" Lost
        "WhatsApp generates the text of AUTHENTICATION templates, so the text of the source is dropped.";
    ComponentLost "component-lost" Lost
        "The target rulebook does not have this component, or not with this format, or not in this category.";
    ButtonLost "button-lost" Lost "The target rulebook does not have this button, or not in this category.";
    LabelLost "label-lost" Lost "In `v1`, the label of a `COPY_CODE` button cannot be set.";
    SettingLost "setting-lost" Lost "`v1` does not have this setting.";
    FieldLost "field-lost" Lost
        "The field is unknown to its own rulebook and ignored; it is often a typo. Fields that a service adds to a template, such as its `id`, are not reported.";
}

/// Fields that services add to a template in their responses.
const RESPONSE_FIELDS: [&str; 16] = [
    "created_at",
    "decided_at",
    "decided_by",
    "id",
    "last_updated_time",
    "live_version",
    "previous_category",
    "quality_score",
    "rejected_reason",
    "rejection_reason",
    "reason",
    "revision",
    "status",
    "sub_category",
    "updated_at",
    "version",
];

/// Converts a document, or returns its violations of its own rulebook.
///
/// Fields that its own rulebook ignores are dropped; unknown fields are reported.
pub fn convert(document: &Document<'_>, direction: Direction) -> Result<Conversion, Violations> {
    let Checked { template, warnings } = Template::check_existing(document, direction.from());
    let template = template?;
    let content = Document::parse(template.content().as_bytes()).ok();
    let content = content.as_ref().map_or(&Json::Null, Document::root);
    let source = SourceObject::root(content, document.root());
    let mut report = ConversionReport::default();
    report_unknown_fields(&warnings, &mut report);
    let (name, language) = match direction {
        Direction::ToWhatsapp => (
            to_whatsapp::name(template.name(), &mut report),
            to_whatsapp::language(template.language(), &mut report),
        ),
        Direction::ToV1 => {
            (template.name().to_owned(), to_v1::language(template.language(), &mut report))
        }
    };
    let components = match direction {
        Direction::ToWhatsapp => to_whatsapp::components(&source, template.category(), &mut report),
        Direction::ToV1 => to_v1::components(&source, &mut report),
    };
    let document = Document::from_members(
        vec![
            member("name", string(name)),
            member("language", string(language)),
            member("category", string(template.category().as_str())),
            member("allow_category_change", Json::Bool(template.allow_category_change())),
            member("components", Json::Array(components)),
        ],
        false,
    );
    let more = report_violations(&document, direction.to(), &mut report);
    Ok(Conversion { document, notes: report.notes, more })
}

fn report_unknown_fields(warnings: &Warnings, report: &mut ConversionReport) {
    let unknown = warnings.listed().iter().filter(|it| it.rule == WarningRule::UnknownField);
    for Warning { pointer, message, hint, .. } in unknown {
        if !pointer.strip_prefix('/').is_some_and(|field| RESPONSE_FIELDS.contains(&field)) {
            report.add(Issue::FieldLost, pointer.clone(), message.clone(), hint.clone());
        }
    }
}

/// Reports the violations of the target rulebook; returns how many are not listed.
fn report_violations(
    document: &Document<'_>,
    to: &Rulebook,
    report: &mut ConversionReport,
) -> usize {
    let Err(violations) = Template::read(document, to) else { return 0 };
    for violation in violations.listed() {
        let Violation { rule, message, hint, span, .. } = violation.clone();
        let pointer = report.source_pointer(&violation.pointer);
        // The conversion has reported it in more detail.
        if rule == Rule::Required && report.is_incomplete(&pointer) {
            continue;
        }
        if rule == Rule::HandleForm && report.has(Issue::SampleUpload) {
            continue;
        }
        let level = Level::Incomplete;
        report.notes.push(Note { pointer, id: rule.id(), level, message, hint, span });
    }
    violations.omitted()
}
