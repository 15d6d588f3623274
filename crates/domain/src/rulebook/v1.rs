//! The `v1` rulebook: the form of a template on API v1.0, row by row.

use super::{
    Field, Form, Kind, List, Part,
    Presence::{Optional, OptionalWithPlaceholders, Required, RequiredWithPlaceholders},
    Rulebook, Samples, Shape, Tagged, Text, Variant,
};
use crate::{template::Category, violation::Rule};

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

const fn text(max: usize, form: Form) -> Shape {
    Shape::Text(Text { max, whatsapp_max: None, multiline: false, form })
}

/// A text of which WhatsApp takes less.
const fn limited(max: usize, whatsapp_max: usize, form: Form) -> Shape {
    Shape::Text(Text { max, whatsapp_max: Some(whatsapp_max), multiline: false, form })
}

static TEMPLATE: Part = Part {
    title: "a template",
    fields: &[
        Field {
            name: "name",
            presence: Required,
            shape: text(512, Form::Name),
            about: "What the template is called. No two templates of the service share a name; names are compared exactly.",
        },
        Field {
            name: "language",
            presence: Required,
            shape: text(5, Form::Language),
            about: "The language it is written in, as `language_REGION`: an ISO 639-1 code, `_`, an ISO 3166-1 alpha-2 region.",
        },
        Field {
            name: "category",
            presence: Required,
            shape: Shape::Choice(Category::WORDS),
            about: "What it is sent for.",
        },
        Field {
            name: "allow_category_change",
            presence: Required,
            shape: Shape::Flag,
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

const COMPONENTS: Shape =
    Shape::List(List { min: 0, max: 20, item: &COMPONENT, unique: true, needs: Some("BODY") });

static EDIT: Part = Part {
    title: "an edit",
    fields: &[
        Field {
            name: "category",
            presence: Optional,
            shape: Shape::Choice(Category::WORDS),
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
            shape: Shape::Number,
            about: "An older version whose components and category come back, as a new version. Stands alone.",
        },
    ],
};

static COMPONENT: Tagged = Tagged {
    title: "component",
    tag: "type",
    about: "Which piece of the message this is.",
    variants: &[
        Variant { word: "HEADER", kind: Kind::Tagged(&HEADER) },
        Variant { word: "BODY", kind: Kind::Part(&BODY) },
        Variant { word: "FOOTER", kind: Kind::Part(&FOOTER) },
        Variant { word: "BUTTONS", kind: Kind::Part(&BUTTONS) },
    ],
};

static HEADER: Tagged = Tagged {
    title: "header",
    tag: "format",
    about: "Whether the header is a text or an attachment.",
    variants: &[
        Variant { word: "TEXT", kind: Kind::Part(&TEXT_HEADER) },
        Variant { word: "MEDIA", kind: Kind::Part(&MEDIA_HEADER) },
    ],
};

static TEXT_HEADER: Part = Part {
    title: "a HEADER of format TEXT",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: limited(1_024, 60, Form::WithPlaceholders),
            about: "The headline; may hold placeholders.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            shape: Shape::Object(&TEXT_HEADER_EXAMPLE),
            about: "Samples for its placeholders.",
        },
    ],
};

static TEXT_HEADER_EXAMPLE: Part = Part {
    title: "the example of a text header",
    fields: &[Field {
        name: "header_text",
        presence: OptionalWithPlaceholders,
        shape: Shape::Samples(Samples::Plain),
        about: "One sample value for each different placeholder, in their order.",
    }],
};

static MEDIA_HEADER: Part = Part {
    title: "a HEADER of format MEDIA",
    fields: &[Field {
        name: "example",
        presence: Required,
        shape: Shape::Object(&MEDIA_HEADER_EXAMPLE),
        about: "A sample of the attachment.",
    }],
};

static MEDIA_HEADER_EXAMPLE: Part = Part {
    title: "the example of a media header",
    fields: &[Field {
        name: "media_url",
        presence: Required,
        shape: text(2_000, Form::Url),
        about: "Where the attachment is found. Nothing is fetched from there.",
    }],
};

static BODY: Part = Part {
    title: "a BODY component",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: Shape::Text(Text {
                max: 4_096,
                whatsapp_max: Some(1_024),
                multiline: true,
                form: Form::WithPlaceholders,
            }),
            about: "The message itself; may hold placeholders.",
        },
        Field {
            name: "example",
            presence: RequiredWithPlaceholders,
            shape: Shape::Object(&BODY_EXAMPLE),
            about: "Samples for its placeholders.",
        },
    ],
};

static BODY_EXAMPLE: Part = Part {
    title: "the example of a body",
    fields: &[Field {
        name: "body_text",
        presence: RequiredWithPlaceholders,
        shape: Shape::Samples(Samples::Nested),
        about: "A list that holds one list: one sample value for each different placeholder, in their order.",
    }],
};

static FOOTER: Part = Part {
    title: "a FOOTER component",
    fields: &[Field {
        name: "text",
        presence: Required,
        shape: limited(1_024, 60, Form::WithoutPlaceholders),
        about: "The small print below the body.",
    }],
};

static BUTTONS: Part = Part {
    title: "a BUTTONS component",
    fields: &[Field {
        name: "buttons",
        presence: Required,
        shape: Shape::List(List { min: 1, max: 20, item: &BUTTON, unique: false, needs: None }),
        about: "The buttons, in the order they are shown.",
    }],
};

static BUTTON: Tagged = Tagged {
    title: "button",
    tag: "type",
    about: "What the button does.",
    variants: &[
        Variant { word: "QUICK_REPLY", kind: Kind::Part(&QUICK_REPLY) },
        Variant { word: "URL", kind: Kind::Part(&URL) },
        Variant { word: "PHONE_NUMBER", kind: Kind::Part(&PHONE_NUMBER) },
        Variant { word: "COPY_CODE", kind: Kind::Part(&COPY_CODE) },
    ],
};

const LABEL: Field = Field {
    name: "text",
    presence: Required,
    shape: limited(128, 25, Form::WithoutPlaceholders),
    about: "The label of the button.",
};

static QUICK_REPLY: Part = Part { title: "a QUICK_REPLY button", fields: &[LABEL] };

static URL: Part = Part {
    title: "a URL button",
    fields: &[
        LABEL,
        Field {
            name: "url",
            presence: Required,
            shape: text(2_000, Form::UrlWithSuffix),
            about: "Where the button leads; may end in `{{1}}`.",
        },
        Field {
            name: "example",
            presence: OptionalWithPlaceholders,
            shape: Shape::Samples(Samples::Single),
            about: "A sample for `{{1}}`: a string, or a list with one string.",
        },
    ],
};

static PHONE_NUMBER: Part = Part {
    title: "a PHONE_NUMBER button",
    fields: &[
        LABEL,
        Field {
            name: "phone_number",
            presence: Required,
            shape: text(16, Form::Phone),
            about: "The number that is called, with its country code.",
        },
    ],
};

static COPY_CODE: Part = Part {
    title: "a COPY_CODE button",
    fields: &[Field {
        name: "example",
        presence: Required,
        // WhatsApp's pages say 15 in one place and 20 in another; the newer one is taken.
        shape: limited(128, 20, Form::Free),
        about: "A sample of the code that is copied.",
    }],
};
