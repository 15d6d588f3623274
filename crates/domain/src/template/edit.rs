//! Edits: what may change of a template, read once at the door.

use crate::{
    document::{Document, Json, Member},
    rulebook::{Category, Rulebook},
    template::{Template, is_content},
    validation::reader::Reader,
    violation::{
        Rule, TextWarning, Violation, ViolationCollector, Violations, WarningRule, Warnings,
    },
};

/// A change of a template that met every rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// New components, a new category, or both; what is left out stays.
    Replace {
        /// The new content, in the form of [`Template::content`].
        content: Option<String>,
        /// The new category.
        category: Option<Category>,
    },
    /// An older version comes back, as a new one.
    Restore(u64),
}

impl Edit {
    /// Reads a document that edits `template`: an edit, or everything that is wrong with it.
    pub fn read(
        document: &Document<'_>,
        rulebook: &Rulebook,
        template: &Template,
    ) -> Result<Self, Violations> {
        const BESIDE_CONTENT: [&str; 2] = ["category", "restore_version"];
        if !rulebook.checks.is_empty() {
            return judged_as_whole(document, rulebook, template);
        }
        let root = document.root();
        let kept = |name: &str| !BESIDE_CONTENT.contains(&name);
        let content = Reader::read(
            document,
            rulebook.edit,
            |field| kept(field.name),
            |report| {
                if matches!(root, Json::Object(_)) {
                    unchangeable(root, template, report);
                    whole(root, report);
                }
            },
        )?;
        if let Some(version) = root.get("restore_version").and_then(Json::as_u64) {
            return Ok(Self::Restore(version));
        }
        let category = root.get("category").and_then(Json::as_str).and_then(Category::parse);
        Ok(Self::Replace { content: (content != "{}").then_some(content), category })
    }

    /// Reads it likewise, and also answers what is worth a warning in what was sent.
    pub fn check(
        document: &Document<'_>,
        rulebook: &Rulebook,
        template: &Template,
    ) -> (Result<Self, Violations>, Warnings) {
        let mut warnings = Template::check(document, rulebook).warnings;
        // Some fields only edits have.
        let of_edits = |pointer: &str| {
            let field = pointer.strip_prefix('/').unwrap_or_default();
            rulebook.edit.fields.iter().any(|it| it.name == field)
        };
        warnings.retract(|it| it.rule == WarningRule::UnknownField && of_edits(&it.pointer));
        if !rulebook.checks.is_empty() {
            passed_over(document.root(), template, &mut warnings);
        }
        (Self::read(document, rulebook, template), warnings)
    }
}

/// Where an edit passes over what never changes, whoever wants it otherwise is told so.
fn passed_over(root: &Json<'_>, template: &Template, warnings: &mut Warnings) {
    for (field, fixed) in [("name", template.name()), ("language", template.language())] {
        if root.get(field).is_some_and(|value| value.as_str() != Some(fixed)) {
            let message = "never changes after creation: an edit passes it over";
            let note = TextWarning::new(
                WarningRule::UnusedField,
                message,
                "leave it out, or create another template",
            );
            warnings.add(|| note.into_warning(format!("/{field}")));
        }
    }
}

/// Where rules are about several fields at once, an edit is as good as the template it makes: what
/// it leaves out is taken from the template, and the whole is judged. Fields that an edit does
/// not have are passed over.
fn judged_as_whole(
    document: &Document<'_>,
    rulebook: &Rulebook,
    template: &Template,
) -> Result<Edit, Violations> {
    let root = document.root();
    let Json::Object(sent) = root else {
        // Neither a template nor an edit, and refused as such.
        return Template::read(document, rulebook)
            .map(|_| Edit::Replace { content: None, category: None });
    };
    let given = |name: &str| {
        let editable = rulebook.edit.fields.iter().any(|field| field.name == name);
        root.get(name).filter(|_| editable)
    };
    let fields = rulebook.template.fields;
    if !fields.iter().any(|field| given(field.name).is_some()) {
        let names: Vec<&str> = rulebook.edit.fields.iter().map(|field| field.name).collect();
        let hint = format!("send at least one of `{}`", names.join("`, `"));
        return Err(nothing(hint).into());
    }
    let kept = Document::parse(template.content().as_bytes()).ok();
    let kept = kept.as_ref().map_or(&Json::Null, Document::root);
    let members = fields.iter().filter_map(|field| {
        let value = match field.name {
            "name" => Json::String(template.name().into()),
            "language" => Json::String(template.language().into()),
            "allow_category_change" => Json::Bool(template.allow_category_change()),
            name => match given(name) {
                Some(value) => value.clone(),
                None if name == "category" => Json::String(template.category().as_str().into()),
                None => kept.get(name)?.clone(),
            },
        };
        Some(Member { key: field.name.into(), value, repeated: false })
    });
    let repeated = sent.iter().filter(|member| member.repeated).cloned();
    let whole =
        Document::from_members(members.chain(repeated).collect(), document.has_duplicates());
    let edited = Template::read(&whole, rulebook)?;
    let changes_content = fields.iter().any(|it| is_content(it) && given(it.name).is_some());
    Ok(Edit::Replace {
        content: changes_content.then(|| edited.content().to_owned()),
        category: given("category").map(|_| edited.category()),
    })
}

fn nothing(hint: String) -> Violation {
    Violation {
        pointer: String::new(),
        rule: Rule::NothingToEdit,
        message: "changes nothing".to_owned(),
        hint: Some(hint),
        span: None,
    }
}

/// Whoever sends back what was read may leave the fixed fields in, as they are.
fn unchangeable(root: &Json<'_>, template: &Template, report: &mut ViolationCollector) {
    let fixed = [("name", template.name()), ("language", template.language())];
    for (field, fixed) in fixed {
        if root.get(field).is_some_and(|value| value.as_str() != Some(fixed)) {
            report.add(|| fixed_field(field));
        }
    }
    let flag = root.get("allow_category_change");
    let same = |value: &Json<'_>| matches!(value, Json::Bool(flag) if *flag == template.allow_category_change());
    if flag.is_some_and(|value| !same(value)) {
        report.add(|| fixed_field("allow_category_change"));
    }
}

fn fixed_field(field: &str) -> Violation {
    Violation {
        pointer: format!("/{field}"),
        rule: Rule::Unchangeable,
        message: "never changes after creation".to_owned(),
        hint: Some("leave it out, or create another template".to_owned()),
        span: None,
    }
}

/// An edit changes something, and in one way.
fn whole(root: &Json<'_>, report: &mut ViolationCollector) {
    let replaces = ["components", "category"].iter().any(|field| root.get(field).is_some());
    let (rule, pointer, message, hint) = match (root.get("restore_version").is_some(), replaces) {
        (true, true) => (
            Rule::RestoreAlone,
            "/restore_version",
            "stands beside components or a category",
            "send it by itself; edit the restored version afterwards",
        ),
        (false, false) => (
            Rule::NothingToEdit,
            "",
            "changes nothing",
            "send `components`, `category` or `restore_version`",
        ),
        _ => return,
    };
    report.add(|| Violation {
        pointer: pointer.to_owned(),
        rule,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}
