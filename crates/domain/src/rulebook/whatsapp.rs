//! The `whatsapp` rulebook: the form of a template as WhatsApp's platform takes it, row by row.
//! What is known of its rules comes from its published pages and from answers that people saw;
//! where the two leave a doubt, nothing is refused.

mod authentication;
mod buttons;
mod cards;
mod checks;
mod features;
mod placement;
mod warnings;

use super::{
    Field, FieldType, ObjectSchema,
    Presence::{Never, OnlyWithPlaceholders, Optional, OrItsOnlyItem, Otherwise, Required},
    Rulebook, SampleFormat, StringFormat, StringRule, TaggedList, TaggedObject, Variant,
    VariantContent,
    view::{MOST_BUTTONS, MOST_CARDS, MOST_COMPONENTS},
};
use crate::{rulebook::Category, violation::Rule};

/// The rulebook of WhatsApp's platform.
pub static WHATSAPP: Rulebook = Rulebook {
    name: "whatsapp",
    template: &TEMPLATE,
    edit: &EDIT,
    checks: checks::ALL,
    advise: warnings::look,
    rules: RULES,
    // Unique within the account, once for each language. It begins with a character that no name
    // may hold, so that it never equals a claim that is a name.
    claim: |account, name, language| format!("\u{1}{account}/{name}/{language}"),
    names_have_languages: true,
};

/// The rules of every document that have a meaning here, and the ones of this rulebook alone.
const RULES: &[Rule] = &{
    const SHARED: &[Rule] = &[
        Rule::Required,
        Rule::WrongType,
        Rule::DuplicateKey,
        Rule::Empty,
        Rule::TooLong,
        Rule::ControlCharacter,
        Rule::TooFew,
        Rule::TooMany,
        Rule::NotAChoice,
        Rule::BodyMissing,
        Rule::ComponentRepeated,
        Rule::PlaceholderSyntax,
        Rule::PlaceholderGap,
        Rule::PlaceholderNotAllowed,
        Rule::SamplesCount,
        Rule::UrlScheme,
        Rule::UrlHost,
        Rule::UrlUserInfo,
        Rule::UrlWhiteSpace,
        Rule::PhoneForm,
    ];
    let mut rules = [Rule::Required; SHARED.len() + Rule::WHATSAPP.len()];
    let (shared, own) = rules.split_at_mut(SHARED.len());
    shared.copy_from_slice(SHARED);
    own.copy_from_slice(Rule::WHATSAPP);
    rules
};

const fn text(max: usize, form: StringFormat) -> FieldType {
    FieldType::String(row(max, false, form))
}

const fn row(max: usize, multiline: bool, form: StringFormat) -> StringRule {
    StringRule { max, whatsapp_max: None, multiline, form }
}

const fn optional(name: &'static str, shape: FieldType, about: &'static str) -> Field {
    Field { name, presence: Optional, shape, about }
}

const fn required(name: &'static str, shape: FieldType, about: &'static str) -> Field {
    Field { name, presence: Required, shape, about }
}

/// How long a message may wait for delivery, in seconds; the category narrows it further.
const LONGEST_LIFE: i64 = 2_592_000;

/// How many characters a body may have; some surroundings narrow it further.
pub(crate) const BODY_MAX: usize = 1_024;

/// How many characters a coupon may have. WhatsApp's pages say 15 in one place and 20 in another;
/// the newer one is taken, except below an offer, of which the older one speaks.
pub(crate) const CODE_MAX: usize = 20;
pub(crate) const OFFER_CODE_MAX: usize = 15;

/// How many bytes options may have that are kept unread.
const OPTION_MAX: usize = 4_096;

/// A list in which no kind repeats is no longer than there are kinds.
const _: () = assert!(COMPONENT.variants.len() == MOST_COMPONENTS);

const CATEGORY: FieldType = FieldType::Choice(Category::VALUES);
const LIFETIME: FieldType = FieldType::Integer(-1, LONGEST_LIFE);
const COMPONENTS: FieldType = FieldType::TaggedList(TaggedList {
    min: 0,
    max: MOST_COMPONENTS,
    item: &COMPONENT,
    unique: true,
    needs: Some("BODY"),
});

const LIFETIME_ABOUT: &str = "For how many seconds delivery is tried: 30 to 900 for AUTHENTICATION, 30 to 43200 for UTILITY, 43200 to 2592000 for MARKETING; `-1` means 30 days for the first two.";
const TRACKING_ABOUT: &str = "Whether clicks on its addresses are not counted.";

const FEATURES: Field = optional(
    "degrees_of_freedom_spec",
    FieldType::Object(&features::SPECIFICATION),
    "What WhatsApp may improve by itself.",
);

/// An option of sending, which only WhatsApp can judge.
const fn unread(name: &'static str, about: &'static str) -> Field {
    optional(name, FieldType::AnyJson(OPTION_MAX), about)
}

static TEMPLATE: ObjectSchema = ObjectSchema {
    title: "a template",
    fields: &[
        required(
            "name",
            text(512, StringFormat::Identifier),
            "What the template is called: lower-case letters, digits and `_`. Within an account there is one of a name in each language.",
        ),
        required(
            "language",
            text(8, StringFormat::Locale),
            "The language it is written in: one of WhatsApp's codes, such as `en_US`, `de` or `pt_BR`.",
        ),
        required("category", CATEGORY, "What it is sent for."),
        optional(
            "allow_category_change",
            FieldType::Bool,
            "Whether the category may be changed after creation; `true` when it is left out.",
        ),
        Field {
            name: "parameter_format",
            presence: Otherwise("POSITIONAL"),
            shape: FieldType::ParameterFormat,
            about: "How placeholders are written: `{{1}}`, `{{2}}` … or `{{first_name}}`.",
        },
        optional(
            "sub_category",
            FieldType::Choice(&["ORDER_DETAILS", "ORDER_STATUS", "RICH_ORDER_STATUS", "CUSTOM"]),
            "What kind of its category it is.",
        ),
        optional(
            "display_format",
            FieldType::Choice(&["ORDER_DETAILS"]),
            "Lets a template with an ORDER_DETAILS button be MARKETING, whatever its header.",
        ),
        optional("message_send_ttl_seconds", LIFETIME, LIFETIME_ABOUT),
        optional("cta_url_link_tracking_opted_out", FieldType::Bool, TRACKING_ABOUT),
        FEATURES,
        unread("product_set_id", "The products of a catalogue that it is about."),
        unread("send_type", "How it is going to be sent."),
        unread("bid_spec", "What is paid for its delivery."),
        unread("optimization_spec", "What its delivery aims at."),
        unread("creative_sourcing_spec", "Where its pictures and texts may come from."),
        unread("is_primary_device_delivery_only", "Whether it goes to the first device only."),
        Field {
            name: "library_template_name",
            presence: Never(Rule::NotCovered),
            shape: FieldType::AnyJson(OPTION_MAX),
            about: "Leave it out, and send the components themselves: Meta's library is not covered here.",
        },
        required(
            "components",
            COMPONENTS,
            "The pieces of the message, in any order: exactly one BODY, at most one of each other kind.",
        ),
    ],
};

static EDIT: ObjectSchema = ObjectSchema {
    title: "an edit",
    fields: &[
        optional("category", CATEGORY, "The new category."),
        optional(
            "parameter_format",
            FieldType::ParameterFormat,
            "How placeholders are written from now on; as before when it is left out.",
        ),
        optional("message_send_ttl_seconds", LIFETIME, LIFETIME_ABOUT),
        optional("cta_url_link_tracking_opted_out", FieldType::Bool, TRACKING_ABOUT),
        FEATURES,
        optional(
            "components",
            COMPONENTS,
            "The new components: they take the place of all the old ones.",
        ),
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
        Variant { word: "BUTTONS", kind: VariantContent::Fields(&buttons::BUTTONS) },
        Variant { word: "CAROUSEL", kind: VariantContent::Fields(&cards::CAROUSEL) },
        Variant { word: "LIMITED_TIME_OFFER", kind: VariantContent::Fields(&OFFER) },
        Variant { word: "CALL_PERMISSION_REQUEST", kind: VariantContent::Fields(&CALL_PERMISSION) },
    ],
};

static HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "Whether the header is a text, an attachment, a place or a product.",
    variants: &[
        Variant { word: "TEXT", kind: VariantContent::Fields(&TEXT_HEADER) },
        Variant { word: "IMAGE", kind: VariantContent::Fields(&IMAGE_HEADER) },
        Variant { word: "VIDEO", kind: VariantContent::Fields(&VIDEO_HEADER) },
        Variant { word: "DOCUMENT", kind: VariantContent::Fields(&DOCUMENT_HEADER) },
        Variant { word: "GIF", kind: VariantContent::Fields(&GIF_HEADER) },
        Variant { word: "LOCATION", kind: VariantContent::Fields(&LOCATION_HEADER) },
        Variant { word: "PRODUCT", kind: VariantContent::Fields(&PRODUCT_HEADER) },
    ],
};

static TEXT_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format TEXT",
    fields: &[
        required(
            "text",
            text(60, StringFormat::Headline),
            "The headline; may hold one placeholder.",
        ),
        samples(&TEXT_HEADER_EXAMPLE),
    ],
};

static TEXT_HEADER_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a text header",
    fields: &[
        Field {
            name: "header_text",
            presence: OnlyWithPlaceholders,
            shape: FieldType::Samples(SampleFormat::LoosePlain),
            about: "The sample value of `{{1}}`.",
        },
        named_samples("header_text_named_params"),
    ],
};

/// Samples of a text, which stand there exactly when the text has placeholders.
const fn samples(part: &'static ObjectSchema) -> Field {
    Field {
        name: "example",
        presence: OnlyWithPlaceholders,
        shape: FieldType::Object(part),
        about: "Samples for its placeholders.",
    }
}

const fn named_samples(name: &'static str) -> Field {
    Field {
        name,
        presence: OnlyWithPlaceholders,
        shape: FieldType::Samples(SampleFormat::Named),
        about: "Under NAMED: a `param_name` and an `example` for each placeholder.",
    }
}

const ATTACHMENT: Field =
    required("example", FieldType::Object(&ATTACHMENT_EXAMPLE), "A sample of the attachment.");

static ATTACHMENT_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of an attachment",
    fields: &[required(
        "header_handle",
        // The handle of a file that was sent in pieces has several lines.
        FieldType::OneString(row(8_192, true, StringFormat::Free)),
        "The handle that the upload of the sample answered.",
    )],
};

static IMAGE_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format IMAGE", fields: &[ATTACHMENT] };
static VIDEO_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format VIDEO", fields: &[ATTACHMENT] };
static DOCUMENT_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format DOCUMENT", fields: &[ATTACHMENT] };
static GIF_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format GIF", fields: &[ATTACHMENT] };
static LOCATION_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format LOCATION", fields: &[] };
static PRODUCT_HEADER: ObjectSchema =
    ObjectSchema { title: "a HEADER of format PRODUCT", fields: &[] };

static BODY: ObjectSchema = ObjectSchema {
    title: "a BODY component",
    fields: &[
        optional(
            "text",
            FieldType::String(row(BODY_MAX, true, StringFormat::Message)),
            "The message itself; may hold placeholders. Required, except in an AUTHENTICATION template, which has none.",
        ),
        samples(&BODY_EXAMPLE),
        optional(
            "add_security_recommendation",
            FieldType::Bool,
            "In an AUTHENTICATION template: whether it says to keep the code secret.",
        ),
    ],
};

static BODY_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a body",
    fields: &[
        Field {
            name: "body_text",
            presence: OnlyWithPlaceholders,
            shape: FieldType::Samples(SampleFormat::Loose),
            about: "Under POSITIONAL: a list that holds one list with one sample value for each different placeholder, in their order. A plain list is taken, too, and for one placeholder the value by itself.",
        },
        named_samples("body_text_named_params"),
    ],
};

static FOOTER: ObjectSchema = ObjectSchema {
    title: "a FOOTER component",
    fields: &[
        optional(
            "text",
            text(60, StringFormat::Plain),
            "The small print below the body. Required, except in an AUTHENTICATION template, which has none.",
        ),
        optional(
            "code_expiration_minutes",
            FieldType::Integer(1, 90),
            "In an AUTHENTICATION template: for how many minutes the code is good.",
        ),
        Field {
            name: "example",
            presence: Never(Rule::SamplesNotAllowed),
            shape: FieldType::AnyJson(OPTION_MAX),
            about: "Leave it out: a footer has no placeholders.",
        },
    ],
};

static OFFER: ObjectSchema = ObjectSchema {
    title: "a LIMITED_TIME_OFFER component",
    fields: &[required(
        "limited_time_offer",
        FieldType::Object(&OFFER_DETAILS),
        "What is offered, and whether it ends.",
    )],
};

static OFFER_DETAILS: ObjectSchema = ObjectSchema {
    title: "a limited-time offer",
    fields: &[
        required("text", text(16, StringFormat::WithoutPlaceholders), "What the offer is called."),
        optional("has_expiration", FieldType::Bool, "Whether the time that is left is shown."),
    ],
};

static CALL_PERMISSION: ObjectSchema =
    ObjectSchema { title: "a CALL_PERMISSION_REQUEST component", fields: &[] };
