//! Edits: changes of a template, validated when read.

use crate::{
    document::{Document, Json, Member},
    rulebook::{Category, Rulebook, V1},
    template::{Template, is_content, whatsapp_warnings},
    validation::reader::Reader,
    violation::{
        Rule, TextWarning, Violation, ViolationCollector, Violations, WarningRule, Warnings,
    },
};

/// A valid change of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// New content, a new category, or both. Omitted fields stay unchanged.
    Replace {
        /// The new content, in the form of [`Template::content`].
        content: Option<String>,
        /// The new category.
        category: Option<Category>,
    },
    /// Restores an older version as a new one.
    Restore(u64),
}

impl Edit {
    /// Reads a document that edits `template`. Returns the edit or all violations.
    pub fn read(
        document: &Document<'_>,
        rulebook: &Rulebook,
        template: &Template,
    ) -> Result<Self, Violations> {
        const BESIDE_CONTENT: [&str; 2] = ["category", "restore_version"];
        if rulebook.merges_edits() {
            return read_merged(document, rulebook, template);
        }
        let root = document.root();
        let is_content = |name: &str| !BESIDE_CONTENT.contains(&name);
        let content = Reader::read(
            document,
            rulebook.edit,
            |field| is_content(field.name),
            |violations| {
                if matches!(root, Json::Object(_)) {
                    check_fixed_fields(root, template, violations);
                    check_combination(root, violations);
                }
            },
        )?;
        if let Some(version) = root.get("restore_version").and_then(Json::as_positive_integer) {
            return Ok(Self::Restore(version));
        }
        let category = root.get("category").and_then(Json::as_str).and_then(Category::parse);
        Ok(Self::Replace { content: (content != "{}").then_some(content), category })
    }

    /// Reads a document like [`Edit::read`] and also collects warnings.
    pub fn check(
        document: &Document<'_>,
        rulebook: &Rulebook,
        template: &Template,
    ) -> (Result<Self, Violations>, Warnings) {
        let mut warnings = Template::check_existing(document, rulebook).warnings;
        // Some fields exist only in edits.
        let is_edit_field = |pointer: &str| {
            let field = pointer.strip_prefix('/').unwrap_or_default();
            rulebook.edit.fields.iter().any(|it| it.name == field)
        };
        warnings.retract(|it| it.rule == WarningRule::UnknownField && is_edit_field(&it.pointer));
        if rulebook.merges_edits() {
            warn_of_ignored_fields(document.root(), template, &mut warnings);
        }
        let edit = Self::read(document, rulebook, template);
        if let Ok(Self::Replace { content, category }) = &edit
            && *rulebook == V1
        {
            let mut edited = template.clone();
            edited.category = category.unwrap_or(template.category);
            if let Some(content) = content {
                edited.content.clone_from(content);
                whatsapp_warnings::check_content(&edited, &mut warnings);
            } else {
                whatsapp_warnings::check_unchanged_content(&edited, &mut warnings);
            }
        }
        (edit, warnings)
    }
}

/// Warns if an edit has new values for fixed fields, which are ignored.
fn warn_of_ignored_fields(root: &Json<'_>, template: &Template, warnings: &mut Warnings) {
    for (field, fixed) in [("name", template.name()), ("language", template.language())] {
        if root.get(field).is_some_and(|value| value.as_str() != Some(fixed)) {
            let message = "cannot change after creation and is ignored";
            let warning = TextWarning::new(
                WarningRule::UnusedField,
                message,
                "leave it out, or create a new template",
            );
            warnings.add(|| warning.into_warning(format!("/{field}")));
        }
    }
}

/// Reads an edit under a rulebook with cross-field checks: fields that it omits are taken from the
/// template, and the resulting template is validated. Fields that cannot be edited are ignored.
fn read_merged(
    document: &Document<'_>,
    rulebook: &Rulebook,
    template: &Template,
) -> Result<Edit, Violations> {
    let root = document.root();
    let Json::Object(sent) = root else {
        // Not an object: the rulebook rejects it.
        return Template::read(document, rulebook)
            .map(|_| Edit::Replace { content: None, category: None });
    };
    let sent_value = |name: &str| {
        let is_editable = rulebook.edit.fields.iter().any(|field| field.name == name);
        root.get(name).filter(|_| is_editable)
    };
    let fields = rulebook.template.fields;
    if !fields.iter().any(|field| sent_value(field.name).is_some()) {
        let names: Vec<&str> = rulebook.edit.fields.iter().map(|field| field.name).collect();
        let hint = format!("send at least one of `{}`", names.join("`, `"));
        return Err(nothing_to_edit(hint).into());
    }
    let stored = Document::parse(template.content().as_bytes()).ok();
    let stored = stored.as_ref().map_or(&Json::Null, Document::root);
    let members = fields.iter().filter_map(|field| {
        let value = match field.name {
            "name" => Json::String(template.name().into()),
            "language" => Json::String(template.language().into()),
            "allow_category_change" => Json::Bool(template.allow_category_change()),
            name => match sent_value(name) {
                Some(value) => value.clone(),
                None if name == "category" => Json::String(template.category().as_str().into()),
                None => stored.get(name)?.clone(),
            },
        };
        Some(Member { key: field.name.into(), value, repeated: false })
    });
    let repeated = sent.iter().filter(|member| member.repeated).cloned();
    let merged =
        Document::from_members(members.chain(repeated).collect(), document.has_duplicates());
    let edited = Template::read_existing(&merged, rulebook)?;
    let changes_content = fields.iter().any(|it| is_content(it) && sent_value(it.name).is_some());
    Ok(Edit::Replace {
        content: changes_content.then(|| edited.content().to_owned()),
        category: sent_value("category").map(|_| edited.category()),
    })
}

fn nothing_to_edit(hint: String) -> Violation {
    Violation {
        pointer: String::new(),
        rule: Rule::NothingToEdit,
        message: "changes nothing".to_owned(),
        hint: Some(hint),
        span: None,
    }
}

/// Reports changes of fixed fields. A client that sends back a template it read may leave them in
/// unchanged.
fn check_fixed_fields(root: &Json<'_>, template: &Template, violations: &mut ViolationCollector) {
    let fixed = [("name", template.name()), ("language", template.language())];
    for (field, fixed) in fixed {
        if root.get(field).is_some_and(|value| value.as_str() != Some(fixed)) {
            violations.add(|| fixed_field_violation(field));
        }
    }
    let flag = root.get("allow_category_change");
    let is_same = |value: &Json<'_>| matches!(value, Json::Bool(flag) if *flag == template.allow_category_change());
    if flag.is_some_and(|value| !is_same(value)) {
        violations.add(|| fixed_field_violation("allow_category_change"));
    }
}

fn fixed_field_violation(field: &str) -> Violation {
    Violation {
        pointer: format!("/{field}"),
        rule: Rule::Unchangeable,
        message: "cannot change after creation".to_owned(),
        hint: Some("leave it out, or create a new template".to_owned()),
        span: None,
    }
}

/// Reports an edit without changes, or one that both restores and replaces.
fn check_combination(root: &Json<'_>, violations: &mut ViolationCollector) {
    let replaces = ["components", "category"].iter().any(|field| root.get(field).is_some());
    let (rule, pointer, message, hint) = match (root.get("restore_version").is_some(), replaces) {
        (true, true) => (
            Rule::RestoreAlone,
            "/restore_version",
            "cannot be combined with `components` or `category`",
            "send it alone, and edit the restored version afterwards",
        ),
        (false, false) => (
            Rule::NothingToEdit,
            "",
            "changes nothing",
            "send `components`, `category` or `restore_version`",
        ),
        _ => return,
    };
    violations.add(|| Violation {
        pointer: pointer.to_owned(),
        rule,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}
