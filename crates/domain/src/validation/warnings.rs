//! Collects warnings: findings that do not prevent a template from being created but are likely
//! to cause problems later.

pub(crate) mod characters;
mod fields;
pub(crate) mod links;
mod text;

use std::fmt::Write as _;

use crate::{
    document::{
        Json,
        byte_classes::{BRACE, ByteClasses},
        text::has_pair,
    },
    rulebook::{ObjectSchema, StringFormat, StringRule, TaggedObject},
    violation::{TextWarning, Warnings, pluralized},
};

pub(crate) use fields::ResolvedSchema;

/// Collects warnings while a document is read.
pub(crate) struct WarningCollector {
    root: &'static ObjectSchema,
    warnings: Warnings,
    /// Whether the text or URL last read in this object contains no placeholder. False if it is
    /// missing or invalid, because placeholders may be intended.
    lacks_placeholders: bool,
}

impl WarningCollector {
    pub(crate) fn new(root: &'static ObjectSchema) -> Self {
        Self { root, warnings: Warnings::default(), lacks_placeholders: false }
    }

    pub(crate) fn into_warnings(self) -> Warnings {
        self.warnings
    }

    /// Starts a new object.
    pub(crate) fn begin_object(&mut self) {
        self.lacks_placeholders = false;
    }

    /// Checks the string of a field, which has these `classes` of bytes.
    pub(crate) fn text(
        &mut self,
        rule: &StringRule,
        text: &str,
        classes: ByteClasses,
        pointer: impl Fn() -> String,
    ) {
        if matches!(rule.format, StringFormat::WithPlaceholders | StringFormat::UrlWithSuffix) {
            self.lacks_placeholders = !(classes.has(BRACE) && has_pair(text, b'{'));
        }
        if !text::is_plain(rule, text, classes) {
            self.add(text::check(rule, text), pointer);
        }
    }

    /// Checks a string that is none of the choices of its field.
    pub(crate) fn choice(&mut self, text: &str, pointer: impl Fn() -> String) {
        self.add(characters::check(text, "remove it"), pointer);
    }

    /// Warns of samples for a text without placeholders.
    pub(crate) fn unused_samples(&mut self, pointer: impl FnOnce() -> String) {
        if self.lacks_placeholders {
            self.warnings.add(|| fields::unused_samples().into_warning(pointer()));
        }
    }

    /// Warns of the members of an object that no field reads. `$schema` of a document tells an editor
    /// which schema to use.
    pub(crate) fn members(
        &mut self,
        object: &Json<'_>,
        tagged: Option<&'static TaggedObject>,
        resolved: ResolvedSchema,
        pointer: impl Fn(&str) -> String,
    ) {
        let Json::Object(members) = object else { return };
        let known = fields::KnownFields::new(self.root, tagged, resolved);
        let is_root = matches!(resolved, ResolvedSchema::Object(it) if std::ptr::eq(it, self.root));
        for member in members {
            let is_ignored = member.repeated || matches!(member.value, Json::Null);
            let is_for_editors = is_root && member.key == "$schema";
            if !is_ignored && !is_for_editors && !known.contains(&member.key) {
                let warning = || known.warning(&member.key).into_warning(pointer(&member.key));
                self.warnings.add(warning);
            }
        }
    }

    /// Warns of an unknown field name in a list of `key` and `value` pairs.
    pub(crate) fn unknown_key(&mut self, name: &str, resolved: ResolvedSchema, pointer: String) {
        let warning = fields::KnownFields::new(self.root, None, resolved).warning(name);
        self.warnings.add(|| warning.into_warning(pointer));
    }

    fn add(&mut self, warnings: Vec<TextWarning>, pointer: impl Fn() -> String) {
        for warning in warnings {
            self.warnings.add(|| warning.into_warning(pointer()));
        }
    }
}

/// Creates a warning for each of the first few findings in a string and counts the rest in the
/// last message, so that a repeated finding does not crowd out all others.
fn limited<T>(
    mut findings: impl Iterator<Item = T>,
    warning: impl Fn(T) -> TextWarning,
) -> Vec<TextWarning> {
    const MAX_LISTED_PER_TEXT: usize = 5;
    let listed = findings.by_ref().take(MAX_LISTED_PER_TEXT);
    let mut warnings: Vec<TextWarning> = listed.map(warning).collect();
    let omitted = findings.count();
    if let Some(last) = warnings.last_mut().filter(|_| omitted > 0) {
        let _ = write!(last.message, " (and {} in this text)", pluralized(omitted, "more time"));
    }
    warnings
}
