//! Members that no field reads: unknown ones, and known ones that have no effect where they are.

use super::characters;
use crate::{
    document::suggest,
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, TaggedList, TaggedObject, VariantContent,
    },
    violation::{TextWarning, WarningRule},
};

/// What the tags of an object say about its schema.
#[derive(Clone, Copy)]
pub(crate) enum ResolvedSchema {
    /// The object has this schema.
    Object(&'static ObjectSchema),
    /// The object may have any of these schemas: its tag is missing or invalid.
    AnyOf(&'static TaggedObject),
}

/// The fields that an object may have.
pub(super) struct KnownFields {
    root: &'static ObjectSchema,
    tagged: Option<&'static TaggedObject>,
    title: String,
    names: Vec<&'static str>,
}

impl KnownFields {
    pub(super) fn new(
        root: &'static ObjectSchema,
        tagged: Option<&'static TaggedObject>,
        resolved: ResolvedSchema,
    ) -> Self {
        let mut names = Vec::new();
        let mut add = |tags: &[&'static TaggedObject], schema: &'static ObjectSchema| {
            let is_possible = match resolved {
                ResolvedSchema::Object(object) => std::ptr::eq(object, schema),
                ResolvedSchema::AnyOf(tagged) => tags.iter().any(|tag| std::ptr::eq(*tag, tagged)),
            };
            for name in field_names(tags, schema).filter(|_| is_possible) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        };
        match (tagged, resolved) {
            (Some(tagged), _) | (None, ResolvedSchema::AnyOf(tagged)) => {
                visit_variants(tagged, &mut Vec::new(), &mut add);
            }
            (None, ResolvedSchema::Object(schema)) => add(&[], schema),
        }
        let title = match resolved {
            ResolvedSchema::Object(schema) => schema.title.to_owned(),
            ResolvedSchema::AnyOf(tagged) => format!("a {}", tagged.title),
        };
        Self { root, tagged, title, names }
    }

    /// Whether the object may have a field of this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// The warning about a member that is none of the fields.
    pub(super) fn warning(&self, name: &str) -> TextWarning {
        let users = self.users(name);
        if !users.is_empty() {
            let message = format!("is not used by {}: neither checked nor stored", self.title);
            let hint = format!("leave it out; it belongs to {}", join_titles(&users));
            return TextWarning::new(WarningRule::UnusedField, message, hint);
        }
        // A name that differs from a known one only by an invisible character looks correct.
        let invisible = characters::check(name, "").into_iter().next();
        let cause = invisible.map_or(String::new(), |it| format!(" (its name {})", it.message));
        let message =
            format!("is not a field of {}{cause}: neither checked nor stored", self.title);
        let hint = match suggest::nearest(name, self.names.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("leave it out; the fields are `{}`", self.names.join("`, `")),
        };
        TextWarning::new(WarningRule::UnknownField, message, hint)
    }

    /// The titles of the objects that have a field of this name: those with the same tag, or else any
    /// in the document.
    fn users(&self, name: &str) -> Vec<&'static str> {
        let mut users = Vec::new();
        // A schema can appear in several locations.
        let add = |users: &mut Vec<&'static str>,
                   tags: &[&'static TaggedObject],
                   schema: &'static ObjectSchema| {
            if field_names(tags, schema).any(|it| it == name) && !users.contains(&schema.title) {
                users.push(schema.title);
            }
        };
        if let Some(tagged) = self.tagged {
            visit_variants(tagged, &mut Vec::new(), &mut |tags, schema| {
                add(&mut users, tags, schema);
            });
        }
        if users.is_empty() {
            visit_objects(self.root, &[], &mut |tags, schema| add(&mut users, tags, schema));
        }
        users
    }
}

/// The warning about samples for a text without placeholders.
pub(super) fn unused_samples() -> TextWarning {
    let message = "is not used without placeholders: neither checked nor stored";
    TextWarning::new(
        WarningRule::UnusedField,
        message,
        "leave it out, or write `{{1}}` where a value belongs",
    )
}

/// Called with each schema and the tags that select it.
type Visitor<'f> = &'f mut dyn FnMut(&[&'static TaggedObject], &'static ObjectSchema);

/// The names of the tags and fields of an object.
fn field_names(
    tags: &[&'static TaggedObject],
    schema: &'static ObjectSchema,
) -> impl Iterator<Item = &'static str> {
    let fields = schema.fields.iter().map(|field| field.name);
    let inlined = schema.fields.iter().flat_map(Field::inlined_fields).map(|field| field.name);
    tags.iter().map(|tag| tag.tag).chain(fields).chain(inlined)
}

/// Visits the schema of every variant of a tagged object.
fn visit_variants(
    tagged: &'static TaggedObject,
    tags: &mut Vec<&'static TaggedObject>,
    visitor: Visitor<'_>,
) {
    tags.push(tagged);
    for variant in tagged.variants {
        match variant.content {
            VariantContent::Fields(schema) => visitor(tags, schema),
            VariantContent::Tagged(inner) => visit_variants(inner, tags, visitor),
        }
    }
    tags.pop();
}

/// Visits `schema` and every schema nested in it.
fn visit_objects(
    schema: &'static ObjectSchema,
    tags: &[&'static TaggedObject],
    visitor: Visitor<'_>,
) {
    visitor(tags, schema);
    for field in schema.fields {
        match &field.field_type {
            FieldType::Object(inner)
            | FieldType::Map(inner)
            | FieldType::ObjectList(ObjectList { item: inner, .. }) => {
                visit_objects(inner, &[], visitor);
            }
            FieldType::TaggedObject(tagged)
            | FieldType::TaggedList(TaggedList { item: tagged, .. }) => {
                visit_variants(tagged, &mut Vec::new(), &mut |tags, inner| {
                    visit_objects(inner, tags, visitor);
                });
            }
            _ => {}
        }
    }
}

/// The first few titles, separated by commas.
fn join_titles(titles: &[&str]) -> String {
    const MAX_TITLES: usize = 3;
    let ellipsis = if titles.len() > MAX_TITLES { " …" } else { "" };
    format!("{}{ellipsis}", titles[..titles.len().min(MAX_TITLES)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::Rulebook;

    /// The reader counts the fields of an object to see whether it has other members.
    #[test]
    fn no_object_has_two_fields_of_the_same_name() {
        for rulebook in Rulebook::ALL {
            visit_objects(rulebook.template, &[], &mut |tags, schema| {
                let tags = tags.iter().map(|tag| tag.tag);
                let names: Vec<&str> = tags.chain(schema.fields.iter().map(|it| it.name)).collect();
                for (index, name) in names.iter().enumerate() {
                    assert!(!names[..index].contains(name), "{name} of {}", schema.title);
                }
            });
        }
    }
}
