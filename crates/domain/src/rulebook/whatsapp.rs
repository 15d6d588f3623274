//! The `whatsapp` rulebook: the template format of WhatsApp's Business Platform.
//!
//! The rules follow Meta's published documentation and observed responses of its API. Where these
//! leave a rule unclear, Galley accepts the document.

mod authentication;
mod buttons;
mod cards;
mod checks;
mod features;
mod placement;
mod warnings;

use super::{
    Field, FieldType, ObjectSchema,
    Presence::{
        DefaultsTo, Forbidden, OnlyWithPlaceholders, Optional, Required, RequiredOrInlined,
    },
    Rulebook, SampleFormat, SampleRule, StringFormat, StringRule, TaggedList, TaggedObject,
    Variant, VariantContent,
    view::{MAX_BUTTONS, MAX_CARDS, MAX_COMPONENTS},
};
use crate::{document::MAX_LIST_ITEMS, rulebook::Category, violation::Rule};

/// The rulebook of WhatsApp's Business Platform.
pub static WHATSAPP: Rulebook = Rulebook {
    name: "whatsapp",
    template: &TEMPLATE,
    edit: &EDIT,
    checks: checks::ALL,
    creation_checks: checks::CREATION,
    collect_warnings: Some(warnings::collect),
    rules: RULES,
    // Names are unique per account and language. The key starts with a control character, which no
    // name contains, so it never equals a `v1` key.
    unique_key: |account, name, language| format!("\u{1}{account}/{name}/{language}"),
    supports_translations: true,
};

/// The shared document rules that apply to this rulebook, and the rules specific to it.
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

const fn text(max: usize, format: StringFormat) -> FieldType {
    FieldType::String(string(max, false, format))
}

const fn string(max: usize, multiline: bool, format: StringFormat) -> StringRule {
    StringRule { max, whatsapp_max: None, multiline, format }
}

const fn optional(name: &'static str, field_type: FieldType, about: &'static str) -> Field {
    Field { name, presence: Optional, field_type, about }
}

const fn required(name: &'static str, field_type: FieldType, about: &'static str) -> Field {
    Field { name, presence: Required, field_type, about }
}

/// The maximum of `message_send_ttl_seconds`; the limit of the category can be lower.
const MAX_TTL_SECONDS: i64 = 2_592_000;

/// The maximum length of a body; other elements of the template can lower it.
pub(crate) const MAX_BODY_CHARS: usize = 1_024;

/// The maximum length of a coupon code. Meta's documentation says both 15 and 20; 20 is the newer
/// statement.
pub(crate) const MAX_COUPON_CHARS: usize = 20;
/// The maximum length of a coupon code in a limited-time offer, for which 15 is documented.
pub(crate) const MAX_OFFER_COUPON_CHARS: usize = 15;

/// The maximum size of an option that Galley stores without validating it.
const MAX_OPTION_BYTES: usize = 4_096;

// A list with omitted items is too long for an option, which would be stored without them.
const _: () = assert!(2 * MAX_LIST_ITEMS >= MAX_OPTION_BYTES);

/// Each component type appears at most once, so there are no more components than types.
const _: () = assert!(COMPONENT.variants.len() == MAX_COMPONENTS);

const CATEGORY: FieldType = FieldType::Choice(Category::VALUES);
const TTL: FieldType = FieldType::Integer(-1, MAX_TTL_SECONDS);
const COMPONENTS: FieldType = FieldType::TaggedList(TaggedList {
    min: 0,
    max: MAX_COMPONENTS,
    item: &COMPONENT,
    unique: true,
    required: Some("BODY"),
});

const TTL_ABOUT: &str = "How long WhatsApp tries to deliver a message, in seconds: 30 to 900 for AUTHENTICATION, 30 to 43200 for UTILITY, 43200 to 2592000 for MARKETING. For AUTHENTICATION and UTILITY, `-1` means 30 days.";
const TRACKING_ABOUT: &str = "Whether click tracking is disabled for the URLs of the template.";

const FEATURES: Field = optional(
    "degrees_of_freedom_spec",
    FieldType::Object(&features::SPECIFICATION),
    "The automatic optimisations that WhatsApp may apply.",
);

/// A delivery option that Galley stores without validating it.
const fn unvalidated(name: &'static str, about: &'static str) -> Field {
    optional(name, FieldType::AnyJson(MAX_OPTION_BYTES), about)
}

static TEMPLATE: ObjectSchema = ObjectSchema {
    title: "a template",
    fields: &[
        required(
            "name",
            text(512, StringFormat::Identifier),
            "The name of the template: lower-case letters, digits and `_`. Unique per account and language.",
        ),
        required(
            "language",
            text(8, StringFormat::Locale),
            "The language of the template: a language code that WhatsApp supports, such as `en_US`, `de` or `pt_BR`.",
        ),
        required("category", CATEGORY, "The purpose of the template."),
        optional(
            "allow_category_change",
            FieldType::Bool,
            "Whether the category may change after creation. Defaults to `true`.",
        ),
        Field {
            name: "parameter_format",
            presence: DefaultsTo("POSITIONAL"),
            field_type: FieldType::ParameterFormat,
            about: "How placeholders are written: POSITIONAL for `{{1}}`, `{{2}}` …, NAMED for `{{first_name}}`.",
        },
        optional(
            "sub_category",
            FieldType::Choice(&["ORDER_DETAILS", "ORDER_STATUS", "RICH_ORDER_STATUS", "CUSTOM"]),
            "The subtype of the category.",
        ),
        optional(
            "display_format",
            FieldType::Choice(&["ORDER_DETAILS"]),
            "Allows a template with an ORDER_DETAILS button to be MARKETING with any header.",
        ),
        optional("message_send_ttl_seconds", TTL, TTL_ABOUT),
        optional("cta_url_link_tracking_opted_out", FieldType::Bool, TRACKING_ABOUT),
        FEATURES,
        unvalidated("product_set_id", "The set of catalogue products that the template is about."),
        unvalidated("send_type", "How messages with the template are sent."),
        unvalidated("bid_spec", "The bid for the delivery of messages."),
        unvalidated("optimization_spec", "The goal that the delivery is optimised for."),
        unvalidated("creative_sourcing_spec", "The permitted sources of images and texts."),
        unvalidated(
            "is_primary_device_delivery_only",
            "Whether messages are delivered only to the recipient's primary device.",
        ),
        Field {
            name: "library_template_name",
            presence: Forbidden(Rule::NotCovered),
            field_type: FieldType::AnyJson(MAX_OPTION_BYTES),
            about: "Not supported. Omit it and send the components of the template instead.",
        },
        required(
            "components",
            COMPONENTS,
            "The components of the message, in any order: exactly one BODY, and at most one of each other type.",
        ),
    ],
};

static EDIT: ObjectSchema = ObjectSchema {
    title: "an edit",
    fields: &[
        optional("category", CATEGORY, "The new category of the template."),
        optional(
            "parameter_format",
            FieldType::ParameterFormat,
            "How placeholders are written from now on. Defaults to the current format.",
        ),
        optional("message_send_ttl_seconds", TTL, TTL_ABOUT),
        optional("cta_url_link_tracking_opted_out", FieldType::Bool, TRACKING_ABOUT),
        FEATURES,
        optional(
            "components",
            COMPONENTS,
            "The new components. They replace all existing components.",
        ),
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
        Variant { value: "BUTTONS", content: VariantContent::Fields(&buttons::BUTTONS) },
        Variant { value: "CAROUSEL", content: VariantContent::Fields(&cards::CAROUSEL) },
        Variant { value: "LIMITED_TIME_OFFER", content: VariantContent::Fields(&OFFER) },
        Variant {
            value: "CALL_PERMISSION_REQUEST",
            content: VariantContent::Fields(&CALL_PERMISSION),
        },
    ],
};

static HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "The type of the header: a text, an attachment, a location or a product.",
    variants: &[
        Variant { value: "TEXT", content: VariantContent::Fields(&TEXT_HEADER) },
        Variant { value: "IMAGE", content: VariantContent::Fields(&IMAGE_HEADER) },
        Variant { value: "VIDEO", content: VariantContent::Fields(&VIDEO_HEADER) },
        Variant { value: "DOCUMENT", content: VariantContent::Fields(&DOCUMENT_HEADER) },
        Variant { value: "GIF", content: VariantContent::Fields(&GIF_HEADER) },
        Variant { value: "LOCATION", content: VariantContent::Fields(&LOCATION_HEADER) },
        Variant { value: "PRODUCT", content: VariantContent::Fields(&PRODUCT_HEADER) },
    ],
};

static TEXT_HEADER: ObjectSchema = ObjectSchema {
    title: "a HEADER of format TEXT",
    fields: &[
        required(
            "text",
            text(60, StringFormat::Headline),
            "The header text. May contain one placeholder.",
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
            field_type: FieldType::Samples(SampleRule::one_line(SampleFormat::LenientFlat)),
            about: "With POSITIONAL: the sample value of `{{1}}`.",
        },
        named_samples("header_text_named_params", false),
    ],
};

/// The sample values of a text: required if the text contains placeholders, otherwise rejected.
const fn samples(schema: &'static ObjectSchema) -> Field {
    Field {
        name: "example",
        presence: OnlyWithPlaceholders,
        field_type: FieldType::Object(schema),
        about: "Sample values for the placeholders.",
    }
}

const fn named_samples(name: &'static str, multiline: bool) -> Field {
    Field {
        name,
        presence: OnlyWithPlaceholders,
        field_type: FieldType::Samples(SampleRule { format: SampleFormat::Named, multiline }),
        about: "With NAMED: an object with `param_name` and `example` for each placeholder.",
    }
}

const ATTACHMENT: Field =
    required("example", FieldType::Object(&ATTACHMENT_EXAMPLE), "A sample of the attachment.");

static ATTACHMENT_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of an attachment",
    fields: &[required(
        "header_handle",
        // The handle of a file that was uploaded in several chunks has several lines.
        FieldType::SingleString(string(8_192, true, StringFormat::Handle)),
        "The handle that the upload of the sample returned.",
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
            FieldType::String(string(MAX_BODY_CHARS, true, StringFormat::Message)),
            "The message text. May contain placeholders. Required, except in an AUTHENTICATION template, where it is not allowed.",
        ),
        samples(&BODY_EXAMPLE),
        optional(
            "add_security_recommendation",
            FieldType::Bool,
            "AUTHENTICATION only: whether the message advises the recipient to keep the code secret.",
        ),
    ],
};

static BODY_EXAMPLE: ObjectSchema = ObjectSchema {
    title: "the example of a body",
    fields: &[
        Field {
            name: "body_text",
            presence: OnlyWithPlaceholders,
            field_type: FieldType::Samples(SampleRule::multiline(SampleFormat::LenientNested)),
            about: "With POSITIONAL: a list that contains one list with one sample value for each distinct placeholder, in numerical order. For a single placeholder, a list with one string and a string are accepted too.",
        },
        named_samples("body_text_named_params", true),
    ],
};

static FOOTER: ObjectSchema = ObjectSchema {
    title: "a FOOTER component",
    fields: &[
        optional(
            "text",
            text(60, StringFormat::Plain),
            "The text below the body, in small print. Required, except in an AUTHENTICATION template, where it is not allowed.",
        ),
        optional(
            "code_expiration_minutes",
            FieldType::Integer(1, 90),
            "AUTHENTICATION only: the number of minutes until the code expires.",
        ),
        Field {
            name: "example",
            presence: Forbidden(Rule::SamplesNotAllowed),
            field_type: FieldType::AnyJson(MAX_OPTION_BYTES),
            about: "Omit it: a footer has no placeholders.",
        },
    ],
};

static OFFER: ObjectSchema = ObjectSchema {
    title: "a LIMITED_TIME_OFFER component",
    fields: &[required(
        "limited_time_offer",
        FieldType::Object(&OFFER_DETAILS),
        "The name of the offer, and whether it expires.",
    )],
};

static OFFER_DETAILS: ObjectSchema = ObjectSchema {
    title: "a limited-time offer",
    fields: &[
        required("text", text(16, StringFormat::WithoutPlaceholders), "The name of the offer."),
        optional(
            "has_expiration",
            FieldType::Bool,
            "Whether the message shows when the offer expires.",
        ),
    ],
};

static CALL_PERMISSION: ObjectSchema =
    ObjectSchema { title: "a CALL_PERMISSION_REQUEST component", fields: &[] };
