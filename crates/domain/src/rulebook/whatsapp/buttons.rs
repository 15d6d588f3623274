//! Buttons, row by row. A new kind is a part, a row among the kinds, and a row among the special
//! pieces if it may not stand everywhere.

use super::{
    CODE_MAX, Field, FieldType, MOST_BUTTONS, ObjectSchema, OnlyWithPlaceholders, OrItsOnlyItem,
    Otherwise, Required, StringFormat, TaggedList, TaggedObject, Variant, VariantContent, optional,
    required, row, text,
};
use crate::rulebook::ObjectList;

pub(super) static BUTTONS: ObjectSchema = ObjectSchema {
    title: "a BUTTONS component",
    fields: &[required(
        "buttons",
        FieldType::TaggedList(TaggedList {
            min: 1,
            max: MOST_BUTTONS,
            item: &BUTTON,
            unique: false,
            needs: None,
        }),
        "The buttons, in the order they are shown; quick replies all before or all behind the others.",
    )],
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
        Variant { word: "OTP", kind: VariantContent::Tagged(&OTP) },
        Variant { word: "FLOW", kind: VariantContent::Fields(&FLOW) },
        Variant { word: "CATALOG", kind: VariantContent::Fields(&CATALOG) },
        Variant { word: "MPM", kind: VariantContent::Fields(&MPM) },
        Variant { word: "SPM", kind: VariantContent::Fields(&SPM) },
        Variant { word: "VOICE_CALL", kind: VariantContent::Fields(&VOICE_CALL) },
        Variant { word: "ORDER_DETAILS", kind: VariantContent::Fields(&ORDER_DETAILS) },
        Variant {
            word: "REQUEST_CONTACT_INFO",
            kind: VariantContent::Fields(&REQUEST_CONTACT_INFO),
        },
    ],
};

/// The buttons that a card may have.
pub(super) static CARD_BUTTON: TaggedObject = TaggedObject {
    title: "button",
    tag: "type",
    about: "What the button does.",
    variants: &[
        Variant { word: "QUICK_REPLY", kind: VariantContent::Fields(&QUICK_REPLY) },
        Variant { word: "URL", kind: VariantContent::Fields(&URL) },
        Variant { word: "PHONE_NUMBER", kind: VariantContent::Fields(&PHONE_NUMBER) },
        Variant { word: "SPM", kind: VariantContent::Fields(&SPM) },
        Variant { word: "ORDER_DETAILS", kind: VariantContent::Fields(&ORDER_DETAILS) },
    ],
};

/// The labels that WhatsApp shows whatever is written.
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

/// How many of a kind one message or one card may have, where that is less than the list takes.
pub(super) const MOST: &[(&str, usize)] = &[
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
    shape: LABEL_TEXT,
    about: "The label of the button.",
};

/// A label that WhatsApp writes itself when none is given; it is read back like any other.
const fn usual_label(usual: &'static str) -> Field {
    Field {
        name: "text",
        presence: Otherwise(usual),
        shape: LABEL_TEXT,
        about: "The label of the button; WhatsApp has its own when it is left out.",
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
            "Where the button leads; may end in one placeholder.",
        ),
        Field {
            name: "example",
            presence: OnlyWithPlaceholders,
            shape: FieldType::OneString(row(2_000, false, StringFormat::Free)),
            about: "A sample for the placeholder, or the whole address with one.",
        },
        optional(
            "app_deep_link",
            FieldType::Object(&APP_DEEP_LINK),
            "Where it leads on a device that has the app.",
        ),
    ],
};

static APP_DEEP_LINK: ObjectSchema = ObjectSchema {
    title: "a link into an app",
    fields: &[
        required(
            "meta_app_id",
            FieldType::Id(row(64, false, StringFormat::Free)),
            "The app's id at Meta.",
        ),
        required("android_deep_link", text(2_000, StringFormat::Free), "The place in the app."),
        optional(
            "android_fallback_playstore_url",
            text(2_000, StringFormat::Link),
            "Where the app is found by those who do not have it; may end in one placeholder.",
        ),
    ],
};

static PHONE_NUMBER: ObjectSchema = ObjectSchema {
    title: "a PHONE_NUMBER button",
    fields: &[
        LABEL,
        required(
            "phone_number",
            text(20, StringFormat::Dialled),
            "The number that is called, with its country code.",
        ),
    ],
};

static COPY_CODE: ObjectSchema = ObjectSchema {
    title: "a COPY_CODE button",
    fields: &[
        usual_label(COUPON_LABEL),
        required(
            "example",
            FieldType::OneString(row(CODE_MAX, false, StringFormat::Free)),
            "A sample of the code that is copied.",
        ),
    ],
};

static OTP: TaggedObject = TaggedObject {
    title: "OTP button",
    tag: "otp_type",
    about: "How the code gets to where it is asked for.",
    variants: &[
        Variant { word: "COPY_CODE", kind: VariantContent::Fields(&OTP_COPY_CODE) },
        Variant { word: "ONE_TAP", kind: VariantContent::Fields(&OTP_ONE_TAP) },
        Variant { word: "ZERO_TAP", kind: VariantContent::Fields(&OTP_ZERO_TAP) },
    ],
};

const COPY_LABEL: Field = usual_label("Copy code");
const AUTOFILL_LABEL: Field =
    optional("autofill_text", LABEL_TEXT, "The label where the code is filled in by itself.");
const SUPPORTED_APPS: Field = Field {
    name: "supported_apps",
    // Older versions of the API had room for one app, on the button itself.
    presence: OrItsOnlyItem,
    shape: FieldType::ObjectList(ObjectList { min: 1, max: 5, title: "app", item: &SUPPORTED_APP }),
    about: "The apps that take the code.",
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
            "That the terms of zero-tap are accepted: `true`.",
        ),
        SUPPORTED_APPS,
    ],
};

static SUPPORTED_APP: ObjectSchema = ObjectSchema {
    title: "an app",
    fields: &[
        required(
            "package_name",
            text(224, StringFormat::Package),
            "The Android package of the app.",
        ),
        required(
            "signature_hash",
            text(11, StringFormat::Signature),
            "The hash of the key that the app is signed with.",
        ),
    ],
};

static FLOW: ObjectSchema = ObjectSchema {
    title: "a FLOW button",
    fields: &[
        LABEL,
        optional(
            "flow_id",
            FieldType::Id(row(64, false, StringFormat::Free)),
            "The flow by its id; either this, `flow_name` or `flow_json`.",
        ),
        optional("flow_name", text(200, StringFormat::Free), "The flow by its name."),
        optional(
            "flow_json",
            FieldType::String(row(200_000, true, StringFormat::Free)),
            "The flow itself, as the text of a JSON document.",
        ),
        optional(
            "flow_action",
            FieldType::Choice(&["NAVIGATE", "DATA_EXCHANGE"]),
            "How the flow begins.",
        ),
        optional("navigate_screen", text(200, StringFormat::Free), "The screen it begins with."),
        optional(
            "icon",
            FieldType::Choice(&["DOCUMENT", "PROMOTION", "REVIEW"]),
            "The picture beside the label.",
        ),
    ],
};

static CATALOG: ObjectSchema =
    ObjectSchema { title: "a CATALOG button", fields: &[usual_label(CATALOG_LABEL)] };
static MPM: ObjectSchema =
    ObjectSchema { title: "an MPM button", fields: &[usual_label(MPM_LABEL)] };
static SPM: ObjectSchema =
    ObjectSchema { title: "an SPM button", fields: &[usual_label(SPM_LABEL)] };
static VOICE_CALL: ObjectSchema = ObjectSchema { title: "a VOICE_CALL button", fields: &[LABEL] };
static ORDER_DETAILS: ObjectSchema =
    ObjectSchema { title: "an ORDER_DETAILS button", fields: &[usual_label("Review and Pay")] };
static REQUEST_CONTACT_INFO: ObjectSchema = ObjectSchema {
    title: "a REQUEST_CONTACT_INFO button",
    fields: &[Field {
        name: "text",
        presence: Otherwise("Share Contact Info"),
        shape: FieldType::Choice(&["Share Contact Info"]),
        about: "The label of the button, which is always the same.",
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

    /// Where there is a button too many.
    fn too_many(components: &Value) -> Vec<String> {
        let document = json!({"name": "n", "language": "en", "category": "MARKETING",
            "components": components})
        .to_string();
        let violations =
            Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).err();
        let told = violations.iter().flat_map(Violations::listed);
        told.filter(|it| it.rule == Rule::ButtonCount).map(|it| it.pointer.clone()).collect()
    }

    #[test]
    fn each_kind_is_counted_in_the_message_and_on_each_card() {
        for (word, most) in MOST {
            let row = |count: usize| {
                let buttons = vec![json!({"type": word, "text": "t"}); count];
                json!({"type": "BUTTONS", "buttons": buttons})
            };
            assert_eq!(too_many(&json!([row(*most)])), [""; 0], "{word}");
            let extra = format!("/components/0/buttons/{most}");
            assert_eq!(too_many(&json!([row(most + 1)])), [extra], "{word}");
            let cards = |count| {
                let card = json!({"components": [row(count)]});
                json!([{"type": "CAROUSEL", "cards": [{"components": [row(1)]}, card]}])
            };
            let extra = format!("/components/0/cards/1/components/0/buttons/{most}");
            assert_eq!(too_many(&cards(*most)), [""; 0], "{word}");
            assert_eq!(too_many(&cards(most + 1)), [extra], "{word}");
        }
    }
}
