//! Converting: a document of one rulebook as a document of the other, and a report of what that
//! changes, loses or leaves to be completed.
//!
//! What comes out is judged by the rulebook it is meant for. Whatever that still refuses stands in
//! the report, too: limits and forms are told there, and nowhere twice.

mod ledger;
mod piece;
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
use ledger::Ledger;
use piece::{Piece, member, text};

/// From which rulebook to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From `v1` to `whatsapp`.
    ToWhatsapp,
    /// From `whatsapp` to `v1`.
    ToV1,
}

impl Direction {
    /// The way from one rulebook to another, if there is one.
    pub fn between(from: &Rulebook, to: &Rulebook) -> Option<Self> {
        [Self::ToWhatsapp, Self::ToV1].into_iter().find(|it| *it.from() == *from && *it.to() == *to)
    }

    /// The rulebook that the document was written for.
    pub fn from(self) -> &'static Rulebook {
        match self {
            Self::ToWhatsapp => &V1,
            Self::ToV1 => &WHATSAPP,
        }
    }

    /// The rulebook that it is converted for.
    pub fn to(self) -> &'static Rulebook {
        match self {
            Self::ToWhatsapp => &WHATSAPP,
            Self::ToV1 => &V1,
        }
    }
}

/// A converted document, and all there is to say about it.
#[derive(Debug)]
pub struct Conversion {
    /// The document for the other rulebook.
    pub document: Document<'static>,
    /// What was changed, lost, or left to be completed, in the order it was found.
    pub notes: Vec<Note>,
    /// How many more of the last kind there are.
    pub more: usize,
}

/// One thing that the other rulebook does not have, has otherwise, or wants beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// RFC 6901 pointer to the place in the source; empty for the document itself.
    pub pointer: String,
    /// The stable id: that of an [`Issue`], or of the rule that the result breaks.
    pub id: &'static str,
    /// What it means for the result.
    pub level: Level,
    /// What there is to say.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Which characters of the string at `pointer`, where a part of it is meant.
    pub span: Option<Span>,
}

string_enum!(
    /// What a note means for the result.
    Level {
        /// The other rulebook cannot say it: it is gone.
        Lost "lost",
        /// Something is missing that only people can add.
        Incomplete "incomplete",
        /// It is there, in another form.
        Changed "changed",
    }
);

id_catalogue! {
    /// What a conversion can report. Ids are stable: programs may depend on them.
    pub enum Issue with level: Level;

    NameChanged "name-changed" Changed
        "WhatsApp's names are made of lower-case letters, digits and `_`: the name is written so.";
    LanguageChanged "language-changed" Changed
        "The other side has no such language code: the nearest one is taken.";
    PlaceholdersNumbered "placeholders-numbered" Changed
        "`v1` has numbered placeholders only: names become numbers, in the order they appear.";
    ButtonReplaced "button-replaced" Changed
        "WhatsApp's AUTHENTICATION templates hand over their code by an OTP button.";
    MediaKindUntold "media-kind-untold" Changed
        "`v1` knows the kind of an attachment by the ending of its address alone, and this one has another or none.";
    MediaFormatUnknown "media-format-unknown" Incomplete
        "WhatsApp wants to know whether an attachment is an IMAGE, a VIDEO or a DOCUMENT, and the ending of the address does not tell.";
    SampleUpload "sample-upload" Incomplete
        "WhatsApp takes the handle of an uploaded sample; until then its address stands there.";
    SampleAddress "sample-address" Incomplete
        "`v1` takes the address of a sample, and a handle is none.";
    TextMissing "text-missing" Incomplete
        "WhatsApp writes the text of AUTHENTICATION templates itself, so that there is none to take over.";
    TextOfWhatsapp "text-of-whatsapp" Lost
        "WhatsApp writes the text of AUTHENTICATION templates itself, so that one's own is left out.";
    ComponentLost "component-lost" Lost
        "The other side has no such component, or none of that format, or not in this category.";
    ButtonLost "button-lost" Lost "The other side has no such button, or not in this category.";
    LabelLost "label-lost" Lost "On `v1` the label of a `COPY_CODE` button cannot be chosen.";
    SettingLost "setting-lost" Lost "`v1` has no such setting.";
    FieldLost "field-lost" Lost
        "Its own rulebook does not know the field, and passes it over; often it is misspelt. What services tell of a template beside its document, such as its `id`, is not meant.";
}

/// What services tell of a template beside its document.
const OF_ANSWERS: [&str; 16] = [
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

/// Converts a document, or says what its own rulebook refuses.
///
/// What that rulebook passes over is not taken along; fields that nobody knows are told.
pub fn convert(document: &Document<'_>, direction: Direction) -> Result<Conversion, Violations> {
    let Checked { template, warnings } = Template::check(document, direction.from());
    let template = template?;
    let content = Document::parse(template.content().as_bytes()).ok();
    let content = content.as_ref().map_or(&Json::Null, Document::root);
    let source = Piece::root(content, document.root());
    let mut ledger = Ledger::default();
    fields(&warnings, &mut ledger);
    let (name, language) = match direction {
        Direction::ToWhatsapp => (
            to_whatsapp::name(template.name(), &mut ledger),
            to_whatsapp::language(template.language(), &mut ledger),
        ),
        Direction::ToV1 => {
            (template.name().to_owned(), to_v1::language(template.language(), &mut ledger))
        }
    };
    let components = match direction {
        Direction::ToWhatsapp => to_whatsapp::components(&source, template.category(), &mut ledger),
        Direction::ToV1 => to_v1::components(&source, &mut ledger),
    };
    let document = Document::from_members(
        vec![
            member("name", text(name)),
            member("language", text(language)),
            member("category", text(template.category().as_str())),
            member("allow_category_change", Json::Bool(template.allow_category_change())),
            member("components", Json::Array(components)),
        ],
        false,
    );
    let more = remaining(&document, direction.to(), &mut ledger);
    Ok(Conversion { document, notes: ledger.notes, more })
}

/// Points at every field that nobody knows.
fn fields(warnings: &Warnings, ledger: &mut Ledger) {
    let unknown = warnings.listed().iter().filter(|it| it.rule == WarningRule::UnknownField);
    for Warning { pointer, message, hint, .. } in unknown {
        if !pointer.strip_prefix('/').is_some_and(|field| OF_ANSWERS.contains(&field)) {
            ledger.note(Issue::FieldLost, pointer.clone(), message.clone(), hint.clone());
        }
    }
}

/// Adds what the other rulebook refuses of the result; answers how much more there is.
fn remaining(document: &Document<'_>, to: &Rulebook, ledger: &mut Ledger) -> usize {
    let Err(violations) = Template::read(document, to) else { return 0 };
    for violation in violations.listed() {
        let Violation { rule, message, hint, span, .. } = violation.clone();
        let pointer = ledger.in_source(&violation.pointer);
        // What is known to be missing has been told better.
        if rule == Rule::Required && ledger.misses(&pointer) {
            continue;
        }
        let level = Level::Incomplete;
        ledger.notes.push(Note { pointer, id: rule.id(), level, message, hint, span });
    }
    violations.omitted()
}
