//! The buttons. A new button type needs an [`ObjectSchema`], an entry in [`BUTTON`], and a row in
//! `placement` if it is restricted to certain categories or components.

use super::{
    DefaultsTo, Field, FieldType, MAX_BUTTONS, MAX_COUPON_CHARS, ObjectSchema,
    OnlyWithPlaceholders, Required, RequiredOrInlined, StringFormat, TaggedList, TaggedObject,
    Variant, VariantContent, optional, required, string, text,
};
use crate::rulebook::ObjectList;

pub(super) static BUTTONS: ObjectSchema = ObjectSchema {
    title: "a BUTTONS component",
    fields: &[required(
        "buttons",
        FieldType::TaggedList(TaggedList {
            min: 1,
            max: MAX_BUTTONS,
            item: &BUTTON,
            unique: false,
            required: None,
        }),
        "The buttons, in display order. Quick replies are either all before or all after the other buttons.",
    )],
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
        Variant { value: "OTP", content: VariantContent::Tagged(&OTP) },
        Variant { value: "FLOW", content: VariantContent::Fields(&FLOW) },
        Variant { value: "CATALOG", content: VariantContent::Fields(&CATALOG) },
        Variant { value: "MPM", content: VariantContent::Fields(&MPM) },
        Variant { value: "SPM", content: VariantContent::Fields(&SPM) },
        Variant { value: "VOICE_CALL", content: VariantContent::Fields(&VOICE_CALL) },
        Variant { value: "ORDER_DETAILS", content: VariantContent::Fields(&ORDER_DETAILS) },
        Variant {
            value: "REQUEST_CONTACT_INFO",
            content: VariantContent::Fields(&REQUEST_CONTACT_INFO),
        },
    ],
};

/// The buttons that are allowed on a card.
pub(super) static CARD_BUTTON: TaggedObject = TaggedObject {
    title: "button",
    tag: "type",
    about: "The type of the button.",
    variants: &[
        Variant { value: "QUICK_REPLY", content: VariantContent::Fields(&QUICK_REPLY) },
        Variant { value: "URL", content: VariantContent::Fields(&URL) },
        Variant { value: "PHONE_NUMBER", content: VariantContent::Fields(&PHONE_NUMBER) },
        Variant { value: "SPM", content: VariantContent::Fields(&SPM) },
        Variant { value: "ORDER_DETAILS", content: VariantContent::Fields(&ORDER_DETAILS) },
    ],
};

/// Button types for which WhatsApp always shows the same label.
pub(super) const FIXED_LABELS: &[(&str, &str)] = &[
    ("COPY_CODE", COUPON_LABEL),
    ("CATALOG", CATALOG_LABEL),
    ("MPM", MPM_LABEL),
    ("SPM", SPM_LABEL),
];

const COUPON_LABEL: &str = "Copy offer code";
const CATALOG_LABEL: &str = "View catalog";
const MPM_LABEL: &str = "View items";
const SPM_LABEL: &str = "View";

/// The maximum number of buttons of a type in a message or on a card, if lower than that of the list.
pub(super) const MAX_PER_TYPE: &[(&str, usize)] = &[
    ("URL", 2),
    ("PHONE_NUMBER", 1),
    ("COPY_CODE", 1),
    ("OTP", 1),
    ("CATALOG", 1),
    ("MPM", 1),
    ("SPM", 1),
    ("VOICE_CALL", 1),
    ("ORDER_DETAILS", 1),
    ("REQUEST_CONTACT_INFO", 1),
];

const LABEL_TEXT: FieldType = text(25, StringFormat::Label);

const LABEL: Field = Field {
    name: "text",
    presence: Required,
    field_type: LABEL_TEXT,
    about: "The label of the button.",
};

/// A label for which WhatsApp has a default; the default is stored like any other label.
const fn default_label(default: &'static str) -> Field {
    Field {
        name: "text",
        presence: DefaultsTo(default),
        field_type: LABEL_TEXT,
        about: "The label of the button. Defaults to WhatsApp's label.",
    }
}

static QUICK_REPLY: ObjectSchema = ObjectSchema { title: "a QUICK_REPLY button", fields: &[LABEL] };

static URL: ObjectSchema = ObjectSchema {
    title: "a URL button",
    fields: &[
        LABEL,
        required(
            "url",
            text(2_000, StringFormat::Link),
            "The URL that the button opens. May end in one placeholder.",
        ),
        Field {
            name: "example",
            presence: OnlyWithPlaceholders,
            field_type: FieldType::SingleString(string(2_000, false, StringFormat::Free)),
            about: "A sample value for the placeholder, or a sample of the complete URL.",
        },
        optional(
            "app_deep_link",
            FieldType::Object(&APP_DEEP_LINK),
            "The app that the button opens, if it is installed.",
        ),
    ],
};

static APP_DEEP_LINK: ObjectSchema = ObjectSchema {
    title: "an app deep link",
    fields: &[
        required(
            "meta_app_id",
            FieldType::Id(string(64, false, StringFormat::Free)),
            "The id of the app at Meta.",
        ),
        required(
            "android_deep_link",
            text(2_000, StringFormat::Free),
            "The deep link that opens the app on Android.",
        ),
        optional(
            "android_fallback_playstore_url",
            text(2_000, StringFormat::Link),
            "The URL that opens if the app is not installed. May end in one placeholder.",
        ),
    ],
};

static PHONE_NUMBER: ObjectSchema = ObjectSchema {
    title: "a PHONE_NUMBER button",
    fields: &[
        LABEL,
        required(
            "phone_number",
            text(20, StringFormat::DialledPhone),
            "The phone number to call, including the country code.",
        ),
    ],
};

static COPY_CODE: ObjectSchema = ObjectSchema {
    title: "a COPY_CODE button",
    fields: &[
        default_label(COUPON_LABEL),
        required(
            "example",
            FieldType::SingleString(string(MAX_COUPON_CHARS, false, StringFormat::Free)),
            "A sample of the code that the button copies.",
        ),
    ],
};

static OTP: TaggedObject = TaggedObject {
    title: "OTP button",
    tag: "otp_type",
    about: "How the recipient transfers the code to the app or website.",
    variants: &[
        Variant { value: "COPY_CODE", content: VariantContent::Fields(&OTP_COPY_CODE) },
        Variant { value: "ONE_TAP", content: VariantContent::Fields(&OTP_ONE_TAP) },
        Variant { value: "ZERO_TAP", content: VariantContent::Fields(&OTP_ZERO_TAP) },
    ],
};

const COPY_LABEL: Field = default_label("Copy code");
const AUTOFILL_LABEL: Field =
    optional("autofill_text", LABEL_TEXT, "The label of the autofill button.");
const SUPPORTED_APPS: Field = Field {
    name: "supported_apps",
    // Older versions of the API supported one app, whose fields were on the button itself.
    presence: RequiredOrInlined,
    field_type: FieldType::ObjectList(ObjectList {
        min: 1,
        max: 5,
        title: "app",
        item: &SUPPORTED_APP,
    }),
    about: "The apps that can receive the code.",
};

static OTP_COPY_CODE: ObjectSchema =
    ObjectSchema { title: "an OTP button of type COPY_CODE", fields: &[COPY_LABEL] };

static OTP_ONE_TAP: ObjectSchema = ObjectSchema {
    title: "an OTP button of type ONE_TAP",
    fields: &[COPY_LABEL, AUTOFILL_LABEL, SUPPORTED_APPS],
};

static OTP_ZERO_TAP: ObjectSchema = ObjectSchema {
    title: "an OTP button of type ZERO_TAP",
    fields: &[
        COPY_LABEL,
        AUTOFILL_LABEL,
        required(
            "zero_tap_terms_accepted",
            FieldType::Bool,
            "Whether you accept WhatsApp's terms for zero-tap buttons. Must be `true`.",
        ),
        SUPPORTED_APPS,
    ],
};

static SUPPORTED_APP: ObjectSchema = ObjectSchema {
    title: "an app",
    fields: &[
        required(
            "package_name",
            text(224, StringFormat::AndroidPackage),
            "The Android package name of the app.",
        ),
        required(
            "signature_hash",
            text(11, StringFormat::SignatureHash),
            "The hash of the key with which the app is signed.",
        ),
    ],
};

static FLOW: ObjectSchema = ObjectSchema {
    title: "a FLOW button",
    fields: &[
        LABEL,
        optional(
            "flow_id",
            FieldType::Id(string(64, false, StringFormat::Free)),
            "The id of the flow. Exactly one of `flow_id`, `flow_name` and `flow_json` is required.",
        ),
        optional("flow_name", text(200, StringFormat::Free), "The name of the flow."),
        optional(
            "flow_json",
            FieldType::String(string(200_000, true, StringFormat::Free)),
            "The definition of the flow, as a JSON document in a string.",
        ),
        optional(
            "flow_action",
            FieldType::Choice(&["NAVIGATE", "DATA_EXCHANGE"]),
            "How the flow starts.",
        ),
        optional("navigate_screen", text(200, StringFormat::Free), "The first screen of the flow."),
        optional(
            "icon",
            FieldType::Choice(&["DOCUMENT", "PROMOTION", "REVIEW"]),
            "The icon next to the label.",
        ),
    ],
};

static CATALOG: ObjectSchema =
    ObjectSchema { title: "a CATALOG button", fields: &[default_label(CATALOG_LABEL)] };
static MPM: ObjectSchema =
    ObjectSchema { title: "an MPM button", fields: &[default_label(MPM_LABEL)] };
static SPM: ObjectSchema =
    ObjectSchema { title: "an SPM button", fields: &[default_label(SPM_LABEL)] };
static VOICE_CALL: ObjectSchema = ObjectSchema { title: "a VOICE_CALL button", fields: &[LABEL] };
static ORDER_DETAILS: ObjectSchema =
    ObjectSchema { title: "an ORDER_DETAILS button", fields: &[default_label("Review and Pay")] };
static REQUEST_CONTACT_INFO: ObjectSchema = ObjectSchema {
    title: "a REQUEST_CONTACT_INFO button",
    fields: &[Field {
        name: "text",
        presence: DefaultsTo("Share Contact Info"),
        field_type: FieldType::Choice(&["Share Contact Info"]),
        about: "The label of the button, which is fixed.",
    }],
};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        document::Document,
        rulebook::WHATSAPP,
        template::Template,
        violation::{Rule, Violations},
    };

    /// The pointers of the `button-count` violations.
    fn button_count_violations(components: &Value) -> Vec<String> {
        let document = json!({"name": "n", "language": "en", "category": "MARKETING",
            "components": components})
        .to_string();
        let violations =
            Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).err();
        let listed = violations.iter().flat_map(Violations::listed);
        listed.filter(|it| it.rule == Rule::ButtonCount).map(|it| it.pointer.clone()).collect()
    }

    #[test]
    fn buttons_of_each_type_are_limited_per_message_and_per_card() {
        for (button_type, max) in MAX_PER_TYPE {
            let component = |count: usize| {
                let buttons = vec![json!({"type": button_type, "text": "t"}); count];
                json!({"type": "BUTTONS", "buttons": buttons})
            };
            assert_eq!(
                button_count_violations(&json!([component(*max)])),
                [""; 0],
                "{button_type}"
            );
            let extra = format!("/components/0/buttons/{max}");
            assert_eq!(
                button_count_violations(&json!([component(max + 1)])),
                [extra],
                "{button_type}"
            );
            let cards = |count| {
                let card = json!({"components": [component(count)]});
                json!([{"type": "CAROUSEL", "cards": [{"components": [component(1)]}, card]}])
            };
            let extra = format!("/components/0/cards/1/components/0/buttons/{max}");
            assert_eq!(button_count_violations(&cards(*max)), [""; 0], "{button_type}");
            assert_eq!(button_count_violations(&cards(max + 1)), [extra], "{button_type}");
        }
    }
}
