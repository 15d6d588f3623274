//! Buttons, row by row. A new kind is a part, a row among the kinds, and a row among the special
//! pieces if it may not stand everywhere.

use super::{
    Field, Form, Kind, List, OnlyWithPlaceholders, Otherwise, Part, Required, Shape, Tagged,
    Variant, optional, required, row, text,
};
use crate::rulebook::Parts;

pub(super) static BUTTONS: Part = Part {
    title: "a BUTTONS component",
    fields: &[required(
        "buttons",
        Shape::List(List { min: 1, max: 10, item: &BUTTON, unique: false, needs: None }),
        "The buttons, in the order they are shown; quick replies all before or all behind the others.",
    )],
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
        Variant { word: "OTP", kind: Kind::Tagged(&OTP) },
        Variant { word: "FLOW", kind: Kind::Part(&FLOW) },
        Variant { word: "CATALOG", kind: Kind::Part(&CATALOG) },
        Variant { word: "MPM", kind: Kind::Part(&MPM) },
        Variant { word: "SPM", kind: Kind::Part(&SPM) },
        Variant { word: "VOICE_CALL", kind: Kind::Part(&VOICE_CALL) },
        Variant { word: "ORDER_DETAILS", kind: Kind::Part(&ORDER_DETAILS) },
        Variant { word: "REQUEST_CONTACT_INFO", kind: Kind::Part(&REQUEST_CONTACT_INFO) },
    ],
};

/// The buttons that a card may have.
pub(super) static CARD_BUTTON: Tagged = Tagged {
    title: "button",
    tag: "type",
    about: "What the button does.",
    variants: &[
        Variant { word: "QUICK_REPLY", kind: Kind::Part(&QUICK_REPLY) },
        Variant { word: "URL", kind: Kind::Part(&URL) },
        Variant { word: "PHONE_NUMBER", kind: Kind::Part(&PHONE_NUMBER) },
        Variant { word: "SPM", kind: Kind::Part(&SPM) },
    ],
};

/// How many of a kind one template may have, where that is less than the list takes.
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

const LABEL_TEXT: Shape = text(25, Form::Plain);

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

static QUICK_REPLY: Part = Part { title: "a QUICK_REPLY button", fields: &[LABEL] };

static URL: Part = Part {
    title: "a URL button",
    fields: &[
        LABEL,
        required(
            "url",
            text(2_000, Form::Link),
            "Where the button leads; may end in one placeholder.",
        ),
        Field {
            name: "example",
            presence: OnlyWithPlaceholders,
            shape: Shape::One(row(2_000, false, Form::Free)),
            about: "A sample for the placeholder, or the whole address with one.",
        },
        optional(
            "app_deep_link",
            Shape::Object(&APP_DEEP_LINK),
            "Where it leads on a device that has the app.",
        ),
    ],
};

static APP_DEEP_LINK: Part = Part {
    title: "a link into an app",
    fields: &[
        optional("meta_app_id", Shape::Id(row(64, false, Form::Free)), "The app's id at Meta."),
        optional("android_deep_link", text(2_000, Form::Free), "The place in the app."),
        optional(
            "android_fallback_playstore_url",
            text(2_000, Form::Url),
            "Where the app is found by those who do not have it.",
        ),
    ],
};

static PHONE_NUMBER: Part = Part {
    title: "a PHONE_NUMBER button",
    fields: &[
        LABEL,
        required(
            "phone_number",
            text(20, Form::Phone),
            "The number that is called, with its country code.",
        ),
    ],
};

static COPY_CODE: Part = Part {
    title: "a COPY_CODE button",
    fields: &[
        usual_label("Copy offer code"),
        required(
            "example",
            // WhatsApp's pages say 15 in one place and 20 in another; the newer one is taken.
            Shape::One(row(20, false, Form::Free)),
            "A sample of the code that is copied.",
        ),
    ],
};

static OTP: Tagged = Tagged {
    title: "OTP button",
    tag: "otp_type",
    about: "How the code gets to where it is asked for.",
    variants: &[
        Variant { word: "COPY_CODE", kind: Kind::Part(&OTP_COPY_CODE) },
        Variant { word: "ONE_TAP", kind: Kind::Part(&OTP_ONE_TAP) },
        Variant { word: "ZERO_TAP", kind: Kind::Part(&OTP_ZERO_TAP) },
    ],
};

const COPY_LABEL: Field = usual_label("Copy code");
const AUTOFILL_LABEL: Field =
    optional("autofill_text", LABEL_TEXT, "The label where the code is filled in by itself.");
const SUPPORTED_APPS: Field = required(
    "supported_apps",
    Shape::Parts(Parts { min: 1, max: 5, title: "app", item: &SUPPORTED_APP }),
    "The apps that take the code.",
);

static OTP_COPY_CODE: Part =
    Part { title: "an OTP button of type COPY_CODE", fields: &[COPY_LABEL] };

static OTP_ONE_TAP: Part = Part {
    title: "an OTP button of type ONE_TAP",
    fields: &[COPY_LABEL, AUTOFILL_LABEL, SUPPORTED_APPS],
};

static OTP_ZERO_TAP: Part = Part {
    title: "an OTP button of type ZERO_TAP",
    fields: &[
        COPY_LABEL,
        AUTOFILL_LABEL,
        required(
            "zero_tap_terms_accepted",
            Shape::Flag,
            "That the terms of zero-tap are accepted: `true`.",
        ),
        SUPPORTED_APPS,
    ],
};

static SUPPORTED_APP: Part = Part {
    title: "an app",
    fields: &[
        required("package_name", text(224, Form::Package), "The Android package of the app."),
        required(
            "signature_hash",
            text(11, Form::Signature),
            "The hash of the key that the app is signed with.",
        ),
    ],
};

static FLOW: Part = Part {
    title: "a FLOW button",
    fields: &[
        LABEL,
        optional(
            "flow_id",
            Shape::Id(row(64, false, Form::Free)),
            "The flow by its id; either this, `flow_name` or `flow_json`.",
        ),
        optional("flow_name", text(200, Form::Free), "The flow by its name."),
        optional(
            "flow_json",
            Shape::Text(row(200_000, true, Form::Free)),
            "The flow itself, as the text of a JSON document.",
        ),
        optional(
            "flow_action",
            Shape::Choice(&["NAVIGATE", "DATA_EXCHANGE"]),
            "How the flow begins.",
        ),
        optional("navigate_screen", text(200, Form::Free), "The screen it begins with."),
        optional(
            "icon",
            Shape::Choice(&["DOCUMENT", "PROMOTION", "REVIEW"]),
            "The picture beside the label.",
        ),
    ],
};

static CATALOG: Part = Part { title: "a CATALOG button", fields: &[usual_label("View catalog")] };
static MPM: Part = Part { title: "an MPM button", fields: &[usual_label("View items")] };
static SPM: Part = Part { title: "an SPM button", fields: &[usual_label("View")] };
static VOICE_CALL: Part = Part { title: "a VOICE_CALL button", fields: &[LABEL] };
static ORDER_DETAILS: Part =
    Part { title: "an ORDER_DETAILS button", fields: &[usual_label("Review and Pay")] };
static REQUEST_CONTACT_INFO: Part =
    Part { title: "a REQUEST_CONTACT_INFO button", fields: &[usual_label("Share Contact Info")] };
