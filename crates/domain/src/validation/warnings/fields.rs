//! Members that nobody reads: unknown ones, and known ones in a place that does not use them.

use super::characters;
use crate::violation::{TextWarning, WarningRule};
use crate::{
    document::suggest,
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, TaggedList, TaggedObject, VariantContent,
    },
};

/// How far the tags of an object told what it is.
#[derive(Clone, Copy)]
pub(crate) enum Reached {
    /// All the way: these are its fields.
    Object(&'static ObjectSchema),
    /// Up to this tag, which is missing or no word that anybody knows.
    Fork(&'static TaggedObject),
}

/// What is known of one object.
pub(super) struct Known {
    root: &'static ObjectSchema,
    tagged: Option<&'static TaggedObject>,
    title: String,
    names: Vec<&'static str>,
}

impl Known {
    pub(super) fn new(
        root: &'static ObjectSchema,
        tagged: Option<&'static TaggedObject>,
        reached: Reached,
    ) -> Self {
        let mut names = Vec::new();
        let mut add = |tags: &[&'static TaggedObject], part: &'static ObjectSchema| {
            let reached = match reached {
                Reached::Object(it) => std::ptr::eq(it, part),
                Reached::Fork(fork) => tags.iter().any(|tag| std::ptr::eq(*tag, fork)),
            };
            for name in names_of(tags, part).filter(|_| reached) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        };
        match (tagged, reached) {
            (Some(tagged), _) => kinds(tagged, &mut Vec::new(), &mut add),
            (None, Reached::Object(part)) => add(&[], part),
            (None, Reached::Fork(fork)) => kinds(fork, &mut Vec::new(), &mut add),
        }
        let title = match reached {
            Reached::Object(part) => part.title.to_owned(),
            Reached::Fork(fork) => format!("a {}", fork.title),
        };
        Self { root, tagged, title, names }
    }

    /// Whether the object may have a member of this name, as far as its tags tell.
    pub(super) fn may_hold(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// What there is to say about a member that it may not have.
    pub(super) fn note(&self, name: &str) -> TextWarning {
        let users = self.users(name);
        if !users.is_empty() {
            let message = format!("is not used by {}: neither checked nor kept", self.title);
            let hint = format!("leave it out; it belongs to {}", listed(&users));
            return TextWarning::new(WarningRule::UnusedField, message, hint);
        }
        // A name that looks right is told with what makes it wrong.
        let hidden = characters::look(name, "").into_iter().next();
        let hidden = hidden.map_or(String::new(), |it| format!(", as its name {}", it.message));
        let message = format!("is unknown to {}{hidden}: neither checked nor kept", self.title);
        let hint = match suggest::nearest(name, self.names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("leave it out; known here: `{}`", self.names.join("`, `")),
        };
        TextWarning::new(WarningRule::UnknownField, message, hint)
    }

    /// Which objects do use a field of this name: the kin of this one, else any of the document.
    fn users(&self, name: &str) -> Vec<&'static str> {
        let mut users = Vec::new();
        // Some kinds of objects stand in several places.
        let add = |users: &mut Vec<&'static str>,
                   tags: &[&'static TaggedObject],
                   part: &'static ObjectSchema| {
            if names_of(tags, part).any(|it| it == name) && !users.contains(&part.title) {
                users.push(part.title);
            }
        };
        if let Some(tagged) = self.tagged {
            kinds(tagged, &mut Vec::new(), &mut |tags, part| add(&mut users, tags, part));
        }
        if users.is_empty() {
            parts(self.root, &[], &mut |tags, part| add(&mut users, tags, part));
        }
        users
    }
}

/// What there is to say about samples of a text without placeholders.
pub(super) fn samples_of_nothing() -> TextWarning {
    let message = "is not used without placeholders: neither checked nor kept";
    TextWarning::new(
        WarningRule::UnusedField,
        message,
        "leave it out, or write `{{1}}` where a value belongs",
    )
}

/// What is done with each kind of object: the tags that lead to it, and what it holds.
type Each<'f> = &'f mut dyn FnMut(&[&'static TaggedObject], &'static ObjectSchema);

/// The members of an object of that kind.
fn names_of(
    tags: &[&'static TaggedObject],
    part: &'static ObjectSchema,
) -> impl Iterator<Item = &'static str> {
    let fields = part.fields.iter().map(|field| field.name);
    let inlined = part.fields.iter().flat_map(Field::inlined_fields).map(|field| field.name);
    tags.iter().map(|tag| tag.tag).chain(fields).chain(inlined)
}

/// Every kind of object that tags tell apart.
fn kinds(tagged: &'static TaggedObject, tags: &mut Vec<&'static TaggedObject>, each: Each<'_>) {
    tags.push(tagged);
    for variant in tagged.variants {
        match variant.content {
            VariantContent::Fields(part) => each(tags, part),
            VariantContent::Tagged(inner) => kinds(inner, tags, each),
        }
    }
    tags.pop();
}

/// Every kind of object in a document that begins with `part`.
fn parts(part: &'static ObjectSchema, tags: &[&'static TaggedObject], each: Each<'_>) {
    each(tags, part);
    for field in part.fields {
        match &field.field_type {
            FieldType::Object(inner)
            | FieldType::Map(inner)
            | FieldType::ObjectList(ObjectList { item: inner, .. }) => {
                parts(inner, &[], each);
            }
            FieldType::TaggedObject(tagged)
            | FieldType::TaggedList(TaggedList { item: tagged, .. }) => {
                kinds(tagged, &mut Vec::new(), &mut |tags, inner| parts(inner, tags, each));
            }
            _ => {}
        }
    }
}

fn listed(titles: &[&str]) -> String {
    const FEW: usize = 3;
    let more = if titles.len() > FEW { " …" } else { "" };
    format!("{}{more}", titles[..titles.len().min(FEW)].join(", "))
}
