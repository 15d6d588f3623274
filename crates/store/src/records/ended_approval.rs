//! Approvals that end because of what a provider shows.

use std::fmt;

use galley_domain::{id::TemplateId, rulebook::Category, upstream::RemoteStatus};

/// A template whose live version is not live any more, because of what the provider shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedApproval {
    /// The template of the account.
    pub template: TemplateId,
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// The version that was approved.
    pub version: u64,
    /// Why.
    pub reason: EndReason,
}

/// Why an approval ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The provider does not have the template.
    NotProvided,
    /// The provider has a content that the account does not have.
    OtherContent,
    /// The provider has the content of this earlier version.
    FormerVersion(u64),
    /// The provider has the content, and this status.
    Status(RemoteStatus),
    /// The provider has put the template into this category, which the template does not allow.
    Category(Category),
    /// The list of the provider does not show the content, so that only the import tells.
    ContentUnknown,
}

impl EndReason {
    /// The word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotProvided => "not_provided",
            Self::OtherContent => "other_content",
            Self::FormerVersion(_) => "former_version",
            Self::Status(_) => "status",
            Self::Category(_) => "category",
            Self::ContentUnknown => "content_unknown",
        }
    }
}

/// A sentence for people.
impl fmt::Display for EndReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotProvided => out.write_str("The provider does not have the template."),
            Self::OtherContent => out.write_str("The provider has other content under its name."),
            Self::FormerVersion(version) => {
                write!(out, "The provider has the content of version {version}.")
            }
            Self::Status(status) => {
                write!(out, "The provider shows the status {}.", status.as_str())
            }
            Self::Category(category) => write!(
                out,
                "The provider has changed the category to {}, which the template does not allow.",
                category.as_str()
            ),
            Self::ContentUnknown => {
                out.write_str("The provider's list does not show the content; it may differ.")
            }
        }
    }
}
