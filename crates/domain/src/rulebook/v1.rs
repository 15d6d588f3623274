//! The `v1` rulebook: the form of a template on API v1.0, row by row.

use super::{
    Field, FieldType, ObjectSchema,
    Presence::{Optional, OptionalWithPlaceholders, Required, RequiredWithPlaceholders},
    Rulebook, SampleFormat, StringFormat, StringRule, TaggedList, TaggedObject, Variant,
    VariantContent,
};
use crate::{rulebook::Category, violation::Rule};

/// The rulebook of API v1.0.
pub static V1: Rulebook = Rulebook {
    name: "v1",
    template: &TEMPLATE,
    edit: &EDIT,
    checks: &[],
    advise: |_, _| {},
    rules: Rule::DOCUMENT,
    // Unique across the whole service: account and language play no part in it.
    claim: |_, name, _| name.to_owned(),
    names_have_languages: false,
};

const fn text(max: usize, form: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, form })
}

/// A text of which WhatsApp takes less.
const fn limited(max: usize, whatsapp_max: usize, form: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: Some(whatsapp_max), multiline: false, form })
}

static TEMPLATE: ObjectSchema = ObjectSchema {
    title: "a template",
    fields: &[
        Field {
            name: "name",
            presence: Required,
            shape: text(512, StringFormat::Name),
            about: "What the template is called. No two templates of the service share a name; names are compared exactly.",
        },
        Field {
            name: "language",
            presence: Required,
            shape: text(5, StringFormat::Language),
            about: "The language it is written in, as `language_REGION`: an ISO 639-1 code, `_`, an ISO 3166-1 alpha-2 region.",
        },
        Field {
            name: "category",
            presence: Required,
            shape: FieldType::Choice(Category::VALUES),
            about: "What it is sent for.",
        },
        Field {
            name: "allow_category_change",
            presence: Required,
            shape: FieldType::Bool,
            about: "Whether the category may be changed after creation.",
        },
        Field {
            name: "components",
            presence: Required,
            shape: COMPONENTS,
            about: "The pieces of the message, in any order: exactly one BODY, at most one each of HEADER, FOOTER and BUTTONS.",
        },
    ],
};

const COMPONENTS: FieldType = FieldType::TaggedList(TaggedList {
    min: 0,
    max: 20,
    item: &COMPONENT,
    unique: true,
    needs: Some("BODY"),
});

static EDIT: ObjectSchema = ObjectSchema {
    title: "an edit",
    fields: &[
        Field {
            name: "category",
            presence: Optional,
            shape: FieldType::Choice(Category::VALUES),
            about: "The new category, if `allow_category_change` is true.",
        },
        Field {
            name: "components",
            presence: Optional,
            shape: COMPONENTS,
            about: "The new components: they take the place of all the old ones.",
        },
        Field {
            name: "restore_version",
            presence: Optional,
            shape: FieldType::PositiveInteger,
            about: "An older version whose components and category come back, as a new version. Stands alone.",
        },
    ],
};

static COMPONENT: TaggedObject = TaggedObject {
    title: "component",
    tag: "type",
    about: "Which piece of the message this is.",
    variants: &[
        Variant { word: "HEADER", kind: VariantContent::Tagged(&HEADER) },
        Variant { word: "BODY", kind: VariantContent::Fields(&BODY) },
        Variant { word: "FOOTER", kind: VariantContent::Fields(&FOOTER) },
        Variant { word: "BUTTONS", kind: VariantContent::Fields(&BUTTONS) },
    ],
};

static HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "Whether the header is a text or an attachment.",
    variants: &[
        Variant { word: "TEXT", kind: VariantContent::Fields(&TEXT_HEADER) },
        Variant { word: "MEDIA", kind: VariantContent::Fields(&MEDIA_HEADER) },
    ],
};

static TEXT_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format TEXT",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: limited(1_024, 60, StringFormat::WithPlaceholders),
            about: "The headline; may hold placeholders.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            shape: FieldType::Object(&TEXT_HEADER_EXAMPLE),
            about: "Samples for its placeholders.",
        },
    ],
};

static TEXT_HEADER_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a text header",
    fields: &[Field {
        name: "header_text",
        presence: OptionalWithPlaceholders,
        shape: FieldType::Samples(SampleFormat::Plain),
        about: "One sample value for each different placeholder, in their order.",
    }],
};

static MEDIA_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format MEDIA",
    fields: &[Field {
        name: "example",
        presence: Required,
        shape: FieldType::Object(&MEDIA_HEADER_EXAMPLE),
        about: "A sample of the attachment.",
    }],
};

static MEDIA_HEADER_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a media header",
    fields: &[Field {
        name: "media_url",
        presence: Required,
        shape: text(2_000, StringFormat::Url),
        about: "Where the attachment is found. Nothing is fetched from there.",
    }],
};

static BODY: ObjectSchema = ObjectSchema {
    title: "a BODY component",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: FieldType::String(StringRule {
                max: 4_096,
                whatsapp_max: Some(1_024),
                multiline: true,
                form: StringFormat::WithPlaceholders,
            }),
            about: "The message itself; may hold placeholders.",
        },
        Field {
            name: "example",
            presence: RequiredWithPlaceholders,
            shape: FieldType::Object(&BODY_EXAMPLE),
            about: "Samples for its placeholders.",
        },
    ],
};

static BODY_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a body",
    fields: &[Field {
        name: "body_text",
        presence: RequiredWithPlaceholders,
        shape: FieldType::Samples(SampleFormat::Nested),
        about: "A list that holds one list: one sample value for each different placeholder, in their order.",
    }],
};

static FOOTER: ObjectSchema = ObjectSchema {
    title: "a FOOTER component",
    fields: &[Field {
        name: "text",
        presence: Required,
        shape: limited(1_024, 60, StringFormat::WithoutPlaceholders),
        about: "The small print below the body.",
    }],
};

static BUTTONS: ObjectSchema = ObjectSchema {
    title: "a BUTTONS component",
    fields: &[Field {
        name: "buttons",
        presence: Required,
        shape: FieldType::TaggedList(TaggedList {
            min: 1,
            max: 20,
            item: &BUTTON,
            unique: false,
            needs: None,
        }),
        about: "The buttons, in the order they are shown.",
    }],
};

static BUTTON: TaggedObject = TaggedObject {
    title: "button",
    tag: "type",
    about: "What the button does.",
    variants: &[
        Variant { word: "QUICK_REPLY", kind: VariantContent::Fields(&QUICK_REPLY) },
        Variant { word: "URL", kind: VariantContent::Fields(&URL) },
        Variant { word: "PHONE_NUMBER", kind: VariantContent::Fields(&PHONE_NUMBER) },
        Variant { word: "COPY_CODE", kind: VariantContent::Fields(&COPY_CODE) },
    ],
};

const LABEL: Field = Field {
    name: "text",
    presence: Required,
    shape: limited(128, 25, StringFormat::WithoutPlaceholders),
    about: "The label of the button.",
};

static QUICK_REPLY: ObjectSchema = ObjectSchema { title: "a QUICK_REPLY button", fields: &[LABEL] };

static URL: ObjectSchema = ObjectSchema {
    title: "a URL button",
    fields: &[
        LABEL,
        Field {
            name: "url",
            presence: Required,
            shape: text(2_000, StringFormat::UrlWithSuffix),
            about: "Where the button leads; may end in `{{1}}`.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            shape: FieldType::Samples(SampleFormat::Single),
            about: "A sample for `{{1}}`: a string, or a list with one string.",
        },
    ],
};

static PHONE_NUMBER: ObjectSchema = ObjectSchema {
    title: "a PHONE_NUMBER button",
    fields: &[
        LABEL,
        Field {
            name: "phone_number",
            presence: Required,
            shape: text(16, StringFormat::Phone),
            about: "The number that is called, with its country code.",
        },
    ],
};

static COPY_CODE: ObjectSchema = ObjectSchema {
    title: "a COPY_CODE button",
    fields: &[Field {
        name: "example",
        presence: Required,
        // WhatsApp's pages say 15 in one place and 20 in another; the newer one is taken.
        shape: limited(128, 20, StringFormat::Free),
        about: "A sample of the code that is copied.",
    }],
};
