//! The category of a template.

use crate::string_enum::string_enum;

string_enum!(
    /// What a template is sent for.
    Category {
        /// Offers, news, invitations.
        Marketing "MARKETING",
        /// Something the customer asked for or is in the middle of.
        Utility "UTILITY",
        /// One-time codes.
        Authentication "AUTHENTICATION",
    }
);
