//! The category of a template.

use crate::string_enum::string_enum;

string_enum!(
    /// The purpose of a template.
    Category {
        /// Offers, news and invitations.
        Marketing "MARKETING",
        /// Messages about a request or transaction of the customer.
        Utility "UTILITY",
        /// One-time codes.
        Authentication "AUTHENTICATION",
    }
);
