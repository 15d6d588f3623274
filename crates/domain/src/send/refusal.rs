//! The result of a send: the filled texts, or a refusal with Meta's code and every violation.

use serde::{Serialize, Serializer};

/// A message that the sandbox accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The texts that the recipient reads, as the JSON of [`crate::render::Texts`]:
    /// `{"header"?,"body"?,"footer"?,"buttons"?,"offer"?,"call_permission_request"?,"cards"?}`.
    pub texts: String,
}

/// A message that the sandbox refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("({}) {details}", .code.number())]
pub struct Refusal {
    /// Meta's code: that of the first violation.
    pub code: RefusalCode,
    /// What is wrong, for `error_data.details`: the message of the first violation.
    pub details: String,
    /// The violations in document order, at most [`crate::violation::MAX_LISTED`]; never empty.
    pub violations: Vec<SendViolation>,
    /// Number of violations beyond the listed ones.
    pub omitted: usize,
}

/// One violation of a message; as JSON `{"pointer","code","message"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SendViolation {
    /// RFC 6901 pointer into the message.
    pub pointer: String,
    /// Meta's code.
    pub code: RefusalCode,
    /// What is wrong, beginning with the component.
    pub message: String,
}

/// Meta's codes for a refused template message. In JSON it is the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// A required field or parameter is missing.
    ParameterMissing,
    /// A value is not valid.
    ParameterInvalid,
    /// The message is not a template message.
    MessageType,
    /// The number of parameters differs from the template's.
    ParameterCount,
    /// No version of the template can be sent in this language.
    TemplateUnknown,
    /// A text is too long after filling.
    TextTooLong,
    /// The type or name of a parameter differs from the template's.
    ParameterFormat,
    /// The template is paused.
    TemplatePaused,
    /// The template is disabled.
    TemplateDisabled,
    /// A value is empty or has line breaks, tabs or too many spaces.
    ParameterText,
}

impl RefusalCode {
    /// Every code, in ascending order.
    pub const ALL: &'static [Self] = &[
        Self::ParameterMissing,
        Self::ParameterInvalid,
        Self::MessageType,
        Self::ParameterCount,
        Self::TemplateUnknown,
        Self::TextTooLong,
        Self::ParameterFormat,
        Self::TemplatePaused,
        Self::TemplateDisabled,
        Self::ParameterText,
    ];

    /// The number in `error.code`.
    pub fn number(self) -> u32 {
        match self {
            Self::ParameterMissing => 131_008,
            Self::ParameterInvalid => 131_009,
            Self::MessageType => 131_051,
            Self::ParameterCount => 132_000,
            Self::TemplateUnknown => 132_001,
            Self::TextTooLong => 132_005,
            Self::ParameterFormat => 132_012,
            Self::TemplatePaused => 132_015,
            Self::TemplateDisabled => 132_016,
            Self::ParameterText => 132_018,
        }
    }
}

impl Serialize for RefusalCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.number())
    }
}

impl Refusal {
    /// The refusal of a template that cannot be sent, whatever the parameters are.
    pub(super) fn of_template(code: RefusalCode, details: String) -> Self {
        let pointer = "/template/name".to_owned();
        let violation = SendViolation { pointer, code, message: details.clone() };
        Self { code, details, violations: vec![violation], omitted: 0 }
    }
}
