//! The automatic optimisations of WhatsApp, which a template can enable or disable one by one.

use super::{FieldType, ObjectSchema, optional, required};
use crate::rulebook::Field;

pub(super) static SPECIFICATION: ObjectSchema = ObjectSchema {
    title: "an optimisation specification",
    fields: &[optional(
        "creative_features_spec",
        FieldType::Map(&FEATURES),
        "The features by name. The list format that Meta's API returns is accepted too.",
    )],
};

static FEATURES: ObjectSchema = ObjectSchema {
    title: "the creative features",
    fields: &[
        feature("image_brightness_and_contrast"),
        feature("image_touchups"),
        feature("add_text_overlay"),
        feature("image_animation"),
        feature("image_background_gen"),
        feature("text_extraction_for_headline"),
        feature("text_extraction_for_tap_target"),
        feature("product_extensions"),
        feature("text_formatting_optimization"),
        feature("auto_promotion_tag"),
        feature("hyperlink_formatting"),
        feature("image_banner"),
        feature("dynamic_cta_text"),
    ],
};

const fn feature(name: &'static str) -> Field {
    optional(name, FieldType::Object(&ENROLMENT), "Whether WhatsApp may apply the feature.")
}

static ENROLMENT: ObjectSchema = ObjectSchema {
    title: "a creative feature",
    fields: &[required(
        "enroll_status",
        FieldType::Choice(&["OPT_IN", "OPT_OUT"]),
        "Whether the feature is enabled.",
    )],
};
