//! What WhatsApp may improve of a message by itself: one switch for each feature.

use super::{FieldType, ObjectSchema, optional, required};
use crate::rulebook::Field;

pub(super) static SPECIFICATION: ObjectSchema = ObjectSchema {
    title: "what may be improved",
    fields: &[optional(
        "creative_features_spec",
        FieldType::Map(&FEATURES),
        "The features, each by its name; also as the list that they are read back in.",
    )],
};

static FEATURES: ObjectSchema = ObjectSchema {
    title: "the features",
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
    optional(name, FieldType::Object(&ENROLMENT), "Whether WhatsApp may use it.")
}

static ENROLMENT: ObjectSchema = ObjectSchema {
    title: "a feature",
    fields: &[required(
        "enroll_status",
        FieldType::Choice(&["OPT_IN", "OPT_OUT"]),
        "Whether it is wanted.",
    )],
};
