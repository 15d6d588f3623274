//! The failures of Meta's API that a fault can provoke.

/// A failure: an error response of the Graph API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `error.code`.
    pub code: u32,
    /// `error.error_subcode`.
    pub subcode: Option<u32>,
    /// The HTTP status.
    pub status: u16,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.error_user_title`.
    pub title: &'static str,
    /// `error.message` without the code, and `error.error_user_msg`.
    pub message: &'static str,
    /// `error.is_transient`: the same request can succeed later.
    pub is_transient: bool,
    /// Whether a usage header at 100 % accompanies it.
    pub is_throttling: bool,
}

/// The code of a fault that names none.
pub const DEFAULT_CODE: u32 = 2;

/// The type of most errors.
const OAUTH: &str = "OAuthException";

const fn failure(code: u32, status: u16, title: &'static str, message: &'static str) -> Failure {
    Failure {
        code,
        subcode: None,
        status,
        kind: OAUTH,
        title,
        message,
        is_transient: false,
        is_throttling: false,
    }
}

/// A failure with the code 100 and a subcode.
const fn invalid(subcode: u32, title: &'static str, message: &'static str) -> Failure {
    Failure { subcode: Some(subcode), ..failure(100, 400, title, message) }
}

impl Failure {
    const fn transient(self) -> Self {
        Self { is_transient: true, ..self }
    }

    const fn throttling(self) -> Self {
        Self { is_transient: true, is_throttling: true, ..self }
    }

    /// The number that selects it in a fault: the subcode, or else the code.
    pub fn number(&self) -> u32 {
        self.subcode.unwrap_or(self.code)
    }
}

/// The failures of template and account calls.
pub static TEMPLATE_FAILURES: &[Failure] = &[
    failure(0, 401, "Not authenticated", "The app user could not be authenticated."),
    failure(1, 500, "Unknown error", "An unknown error occurred. Reduce the amount of data you're asking for, then retry your request.").transient(),
    failure(2, 503, "Service temporarily unavailable", "The service is temporarily unavailable. Retry the request later.").transient(),
    failure(3, 500, "Capability missing", "The app does not have the capability to make this call."),
    failure(4, 400, "App call limit reached", "The app has reached its limit of calls.").throttling(),
    failure(10, 403, "Permission denied", "The app does not have permission for this action."),
    Failure { subcode: Some(2_388_185), ..failure(10, 403, "Account not entitled", "The account is not entitled to create this template.") },
    failure(100, 400, "Invalid parameter", "A parameter is not valid."),
    Failure { kind: "GraphMethodException", ..invalid(33, "Object not found", "The object does not exist, cannot be loaded due to missing permissions, or does not support this operation.") },
    invalid(2_388_019, "Template limit reached", "The account has reached its limit of templates."),
    invalid(2_388_023, "Template is being deleted", "New content for this language cannot be added while the existing content is being deleted. Try again in 4 weeks."),
    invalid(2_388_024, "Template already exists", "Content in this language already exists for this template."),
    invalid(2_388_025, "Name is being deleted", "The category cannot differ while a template of this name is being deleted."),
    invalid(2_388_037, "Variables not numbered from 1", "The variables of the text are not numbered consecutively from 1."),
    invalid(2_388_039, "Template cannot be changed", "The status of the template or its edit quota does not allow the change."),
    invalid(2_388_040, "Text too long", "A text exceeds its character limit."),
    invalid(2_388_043, "Component not valid", "A component has a missing or unexpected field."),
    invalid(2_388_046, "Name not valid", "The name may only contain lower-case letters, digits and underscores."),
    invalid(2_388_047, "Header not valid", "The format of the header is not valid."),
    invalid(2_388_050, "Button field missing", "A required field of a button is missing."),
    invalid(2_388_052, "URL not valid", "The URL of a button is not valid."),
    invalid(2_388_060, "Button label not valid", "The label of a button is not valid."),
    invalid(2_388_072, "Body not valid", "The format of the body is not valid."),
    invalid(2_388_073, "Footer not valid", "The format of the footer is not valid."),
    invalid(2_388_081, "WhatsApp link in a button", "A button must not link to WhatsApp."),
    invalid(2_388_124, "Edit quota reached", "An approved template can be edited once in 24 hours."),
    invalid(2_388_293, "Too many variables", "The body has too many variables for its length."),
    invalid(2_388_299, "Variable at start or end", "The body must not start or end with a variable."),
    failure(190, 401, "Access token not valid", "The access token has expired or is not valid."),
    failure(192, 400, "Phone number not valid", "The phone number is not valid."),
    failure(200, 403, "Permission missing", "The app or the user lacks a permission that this call requires."),
    failure(368, 403, "Temporarily blocked", "The account is restricted because of a policy violation."),
    failure(803, 404, "Unknown id", "Some of the requested ids do not exist."),
    failure(80_007, 400, "Account call limit reached", "The WhatsApp business account has reached its limit of calls.").throttling(),
    failure(80_008, 400, "Account call limit reached", "There have been too many calls to this WhatsApp business account. Wait, then try again.").throttling(),
    failure(80_012, 400, "Template call limit reached", "There have been too many calls to this template. Wait, then try again.").throttling(),
    failure(131_009, 400, "Parameter value not valid", "A parameter value is not valid."),
    failure(131_031, 403, "Account locked", "The account is restricted or disabled because of a policy violation."),
    failure(131_059, 400, "Cursor not valid", "The paging cursor is not valid or has expired. Restart without cursors."),
    failure(139_000, 400, "Blocked by integrity", "The request was blocked by an integrity check."),
    failure(200_002, 400, "Template creation failed", "The template could not be created."),
];

/// The failures of sends. Some also appear as the error of a `failed` status.
pub static SEND_FAILURES: &[Failure] = &[
    failure(
        130_429,
        400,
        "Rate limit hit",
        "The phone number has reached its throughput. Send more slowly.",
    )
    .transient(),
    failure(
        130_472,
        400,
        "Recipient is part of an experiment",
        "The message was not sent, because the recipient's number is part of an experiment.",
    ),
    failure(
        131_000,
        500,
        "Something went wrong",
        "The message was not sent because of an unknown error.",
    )
    .transient(),
    failure(131_008, 400, "Required parameter missing", "The request lacks a required parameter."),
    failure(131_016, 500, "Service unavailable", "A service is temporarily unavailable.")
        .transient(),
    failure(
        131_026,
        400,
        "Message undeliverable",
        "The message cannot be delivered to this recipient.",
    ),
    failure(
        131_047,
        400,
        "Re-engagement message",
        "More than 24 hours have passed since the recipient last replied.",
    ),
    failure(
        131_048,
        400,
        "Spam rate limit hit",
        "The phone number is restricted because many of its messages were blocked or flagged as spam.",
    ),
    failure(
        131_049,
        400,
        "Not delivered for ecosystem health",
        "The message was not delivered to maintain healthy ecosystem engagement.",
    ),
    failure(
        131_050,
        400,
        "Recipient stopped marketing messages",
        "The recipient has chosen to stop receiving marketing messages.",
    ),
    failure(131_051, 400, "Unsupported message type", "The type of the message is not supported."),
    failure(131_055, 400, "Method not allowed", "This template cannot be sent through this API."),
    failure(
        131_056,
        400,
        "Pair rate limit hit",
        "Too many messages were sent to this recipient in a short time.",
    )
    .transient(),
    failure(131_057, 500, "Account in maintenance", "The account is in maintenance mode.")
        .transient(),
    failure(
        131_063,
        400,
        "Marketing messages disabled",
        "Marketing templates are disabled on this API.",
    ),
    failure(
        131_064,
        400,
        "Classification violations",
        "The account is limited after violations of the template categories.",
    ),
    failure(
        132_000,
        400,
        "Number of parameters does not match",
        "The number of parameters does not match the template.",
    ),
    failure(
        132_001,
        404,
        "Template does not exist",
        "The template does not exist in this language or has not been approved.",
    ),
    failure(132_005, 400, "Text too long", "The filled text of the template is too long."),
    failure(132_007, 400, "Policy violated", "The content of the template violates a policy."),
    failure(
        132_008,
        400,
        "Parameter value not valid",
        "A parameter value of the template is not valid.",
    ),
    failure(
        132_012,
        400,
        "Parameter format does not match",
        "The format of a parameter does not match the template.",
    ),
    failure(132_015, 400, "Template is paused", "The template is paused because of low quality."),
    failure(
        132_016,
        400,
        "Template is disabled",
        "The template was paused too often and is disabled permanently.",
    ),
    failure(
        132_018,
        400,
        "Parameter validation failed",
        "A parameter value contains line breaks, tabs or more than four consecutive spaces.",
    ),
    failure(132_068, 400, "Flow is blocked", "The flow of the template is blocked."),
    failure(132_069, 400, "Flow is throttled", "The flow of the template is throttled."),
    failure(
        134_100,
        400,
        "Marketing messages only",
        "Only marketing templates can be sent through this API.",
    ),
    failure(
        134_101,
        400,
        "Template is being synchronised",
        "The template is being synchronised. Try again in ten minutes.",
    )
    .transient(),
    failure(134_102, 400, "Template unavailable", "The template is not available for this API."),
    failure(
        135_000,
        400,
        "Generic user error",
        "The message was not sent because of an error in the request.",
    ),
];

/// Every failure.
pub fn all() -> impl Iterator<Item = &'static Failure> {
    TEMPLATE_FAILURES.iter().chain(SEND_FAILURES)
}

/// The failure with this subcode or code. The codes from 200 to 299 share one row.
pub fn find(number: u32) -> Option<Failure> {
    let row = if (200..=299).contains(&number) { 200 } else { number };
    let found = all().find(|it| it.number() == row).copied()?;
    Some(if row == number { found } else { Failure { code: number, ..found } })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_number_selects_one_failure() {
        let mut numbers = HashSet::new();
        for failure in all() {
            assert!(numbers.insert(failure.number()), "{failure:?}");
            assert_eq!(find(failure.number()), Some(*failure));
            assert!((400..600).contains(&failure.status), "{failure:?}");
            assert!(failure.message.ends_with('.') && !failure.title.ends_with('.'), "{failure:?}");
        }
        assert_eq!(find(5), None);
        assert_eq!(find(DEFAULT_CODE).map(|it| (it.code, it.status)), Some((2, 503)));
    }

    #[test]
    fn the_failures_that_a_client_has_to_tell_apart_are_there() {
        let limits = [4, 80_007, 80_008, 80_012];
        let credentials = [0, 190, 3, 10];
        let restricted = [368, 131_031, 139_000];
        let unknown_outcome = [1, 2];
        let templates = [33, 803, 2_388_019, 2_388_023, 2_388_024, 2_388_039, 2_388_124, 131_059];
        let sends = [
            132_000, 132_001, 132_005, 132_007, 132_012, 132_015, 132_016, 132_018, 131_008,
            131_009, 131_026, 131_049, 131_051, 131_056, 130_429,
        ];
        let all = [&limits[..], &credentials, &restricted, &unknown_outcome, &templates, &sends];
        for number in all.into_iter().flatten() {
            assert!(find(*number).is_some(), "{number}");
        }
        assert!(limits.iter().all(|it| find(*it).is_some_and(|it| it.is_throttling)));
        assert!(unknown_outcome.iter().all(|it| find(*it).is_some_and(|it| it.is_transient)));
        for permission in 200..=299 {
            assert_eq!(find(permission).map(|it| (it.code, it.status)), Some((permission, 403)));
        }
        assert_eq!(find(33).map(|it| (it.code, it.subcode)), Some((100, Some(33))));
    }
}
