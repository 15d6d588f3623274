//! The `v1` rulebook: the template format of API v1.0.

use super::{
    Field, FieldType, ObjectSchema,
    Presence::{Optional, OptionalWithPlaceholders, Required, RequiredWithPlaceholders},
    Rulebook, SampleFormat, SampleRule, StringFormat, StringRule, TaggedList, TaggedObject,
    Variant, VariantContent,
};
use crate::{rulebook::Category, violation::Rule};

/// The rulebook of API v1.0.
pub static V1: Rulebook = Rulebook {
    name: "v1",
    template: &TEMPLATE,
    edit: &EDIT,
    checks: &[],
    creation_checks: &[],
    collect_warnings: None,
    rules: Rule::DOCUMENT,
    // Names are unique across the whole service, regardless of account and language.
    unique_key: |_, name, _| name.to_owned(),
    supports_translations: false,
};

const fn text(max: usize, format: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, format })
}

/// A text with a lower limit on WhatsApp.
const fn limited(max: usize, whatsapp_max: usize, format: StringFormat) -> FieldType {
    FieldType::String(StringRule {
        max,
        whatsapp_max: Some(whatsapp_max),
        multiline: false,
        format,
    })
}

static TEMPLATE: ObjectSchema = ObjectSchema {
    title: "a template",
    fields: &[
        Field {
            name: "name",
            presence: Required,
            field_type: text(512, StringFormat::Name),
            about: "The name of the template, unique across the whole service. Names are case-sensitive.",
        },
        Field {
            name: "language",
            presence: Required,
            field_type: text(5, StringFormat::Language),
            about: "The language of the template as `language_REGION`: an ISO 639-1 language code, `_`, and an ISO 3166-1 alpha-2 region code.",
        },
        Field {
            name: "category",
            presence: Required,
            field_type: FieldType::Choice(Category::VALUES),
            about: "The purpose of the template.",
        },
        Field {
            name: "allow_category_change",
            presence: Required,
            field_type: FieldType::Bool,
            about: "Whether an edit may change the category.",
        },
        Field {
            name: "components",
            presence: Required,
            field_type: COMPONENTS,
            about: "The components of the message, in any order: exactly one BODY, and at most one each of HEADER, FOOTER and BUTTONS.",
        },
    ],
};

const COMPONENTS: FieldType = FieldType::TaggedList(TaggedList {
    min: 0,
    max: 20,
    item: &COMPONENT,
    unique: true,
    required: Some("BODY"),
});

static EDIT: ObjectSchema = ObjectSchema {
    title: "an edit",
    fields: &[
        Field {
            name: "category",
            presence: Optional,
            field_type: FieldType::Choice(Category::VALUES),
            about: "The new category. Requires `allow_category_change` to be true.",
        },
        Field {
            name: "components",
            presence: Optional,
            field_type: COMPONENTS,
            about: "The new components. They replace all existing components.",
        },
        Field {
            name: "restore_version",
            presence: Optional,
            field_type: FieldType::PositiveInteger,
            about: "The number of an earlier version, whose components and category become a new version. Cannot be combined with other fields.",
        },
    ],
};

static COMPONENT: TaggedObject = TaggedObject {
    title: "component",
    tag: "type",
    about: "The type of the component.",
    variants: &[
        Variant { value: "HEADER", content: VariantContent::Tagged(&HEADER) },
        Variant { value: "BODY", content: VariantContent::Fields(&BODY) },
        Variant { value: "FOOTER", content: VariantContent::Fields(&FOOTER) },
        Variant { value: "BUTTONS", content: VariantContent::Fields(&BUTTONS) },
    ],
};

static HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "The type of the header: a text or an attachment.",
    variants: &[
        Variant { value: "TEXT", content: VariantContent::Fields(&TEXT_HEADER) },
        Variant { value: "MEDIA", content: VariantContent::Fields(&MEDIA_HEADER) },
    ],
};

static TEXT_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format TEXT",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            field_type: limited(1_024, 60, StringFormat::WithPlaceholders),
            about: "The header text. May contain placeholders.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            field_type: FieldType::Object(&TEXT_HEADER_EXAMPLE),
            about: "Sample values for the placeholders.",
        },
    ],
};

static TEXT_HEADER_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a text header",
    fields: &[Field {
        name: "header_text",
        presence: OptionalWithPlaceholders,
        field_type: FieldType::Samples(SampleRule::one_line(SampleFormat::Flat)),
        about: "One sample value for each distinct placeholder, in numerical order.",
    }],
};

static MEDIA_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format MEDIA",
    fields: &[Field {
        name: "example",
        presence: Required,
        field_type: FieldType::Object(&MEDIA_HEADER_EXAMPLE),
        about: "A sample of the attachment.",
    }],
};

static MEDIA_HEADER_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a media header",
    fields: &[Field {
        name: "media_url",
        presence: Required,
        field_type: text(2_000, StringFormat::Url),
        about: "The URL of the attachment. Galley does not fetch it.",
    }],
};

static BODY: ObjectSchema = ObjectSchema {
    title: "a BODY component",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            field_type: FieldType::String(StringRule {
                max: 4_096,
                whatsapp_max: Some(1_024),
                multiline: true,
                format: StringFormat::WithPlaceholders,
            }),
            about: "The message text. May contain placeholders.",
        },
        Field {
            name: "example",
            presence: RequiredWithPlaceholders,
            field_type: FieldType::Object(&BODY_EXAMPLE),
            about: "Sample values for the placeholders.",
        },
    ],
};

static BODY_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a body",
    fields: &[Field {
        name: "body_text",
        presence: RequiredWithPlaceholders,
        field_type: FieldType::Samples(SampleRule::one_line(SampleFormat::Nested)),
        about: "A list that contains one list with one sample value for each distinct placeholder, in numerical order.",
    }],
};

static FOOTER: ObjectSchema = ObjectSchema {
    title: "a FOOTER component",
    fields: &[Field {
        name: "text",
        presence: Required,
        field_type: limited(1_024, 60, StringFormat::WithoutPlaceholders),
        about: "The text below the body, in small print.",
    }],
};

static BUTTONS: ObjectSchema = ObjectSchema {
    title: "a BUTTONS component",
    fields: &[Field {
        name: "buttons",
        presence: Required,
        field_type: FieldType::TaggedList(TaggedList {
            min: 1,
            max: 20,
            item: &BUTTON,
            unique: false,
            required: None,
        }),
        about: "The buttons, in display order.",
    }],
};

static BUTTON: TaggedObject = TaggedObject {
    title: "button",
    tag: "type",
    about: "The type of the button.",
    variants: &[
        Variant { value: "QUICK_REPLY", content: VariantContent::Fields(&QUICK_REPLY) },
        Variant { value: "URL", content: VariantContent::Fields(&URL) },
        Variant { value: "PHONE_NUMBER", content: VariantContent::Fields(&PHONE_NUMBER) },
        Variant { value: "COPY_CODE", content: VariantContent::Fields(&COPY_CODE) },
    ],
};

const LABEL: Field = Field {
    name: "text",
    presence: Required,
    field_type: limited(128, 25, StringFormat::WithoutPlaceholders),
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
            field_type: text(2_000, StringFormat::UrlWithSuffix),
            about: "The URL that the button opens. May end in `{{1}}`.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            field_type: FieldType::Samples(SampleRule::one_line(SampleFormat::Single)),
            about: "A sample value for `{{1}}`: a string, or a list with one string.",
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
            field_type: text(16, StringFormat::Phone),
            about: "The phone number to call, including the country code.",
        },
    ],
};

static COPY_CODE: ObjectSchema = ObjectSchema {
    title: "a COPY_CODE button",
    fields: &[Field {
        name: "example",
        presence: Required,
        // Meta's documentation says both 15 and 20; 20 is the newer statement.
        field_type: limited(128, 20, StringFormat::Free),
        about: "A sample of the code that the button copies.",
    }],
};
