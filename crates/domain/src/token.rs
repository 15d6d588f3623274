//! The document that creates an access token over the API.

use jiff::{SignedDuration, Timestamp};

use crate::{
    account::{MAX_CREDENTIAL_NAME_CHARS, NameError, Scope, Scopes, check_characters},
    document::{Document, Json},
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule},
    validation::{reader::Reader, timestamp},
    violation::{Rule, Violation, ViolationCollector, Violations},
};

const fn string(max: usize, format: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, format })
}

/// The schema of the document that creates a token.
pub static TOKEN: ObjectSchema = ObjectSchema {
    title: "a token",
    fields: &[
        Field {
            name: "name",
            presence: Presence::Required,
            field_type: string(MAX_CREDENTIAL_NAME_CHARS, StringFormat::Name),
            about: "What the token is for. Events, versions and the audit feed show it beside the token's id.",
        },
        Field {
            name: "scopes",
            presence: Presence::Required,
            field_type: FieldType::ChoiceList(Scope::VALUES),
            about: "What the token permits: at least one scope, and only scopes that the calling token has.",
        },
        Field {
            name: "expires_in",
            presence: Presence::Optional,
            field_type: FieldType::PositiveInteger,
            about: "The lifetime of the token in seconds.",
        },
        Field {
            name: "expires_at",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Timestamp),
            about: "When the token expires.",
        },
    ],
};

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// What it permits.
    pub scopes: Scopes,
    /// When it expires, if it does; with the precision of the store.
    pub expires_at: Option<Timestamp>,
}

impl NewToken {
    /// Reads a document at the time `now`. Returns the token or all violations.
    pub fn read(document: &Document<'_>, now: Timestamp) -> Result<Self, Violations> {
        let root = document.root();
        let expiry = expiry(root, now);
        Reader::read(
            document,
            &TOKEN,
            |_| true,
            |violations| {
                if let Some(error) = wrong_name(root) {
                    let hint = "choose another name";
                    report(violations, "/name", Rule::TokenName, &error.to_string(), hint);
                }
                if matches!(root.get("scopes"), Some(Json::Array(scopes)) if scopes.is_empty()) {
                    let hint = format!("list some of {}", Scope::VALUES.join(", "));
                    report(violations, "/scopes", Rule::TokenScopes, "has no scope", &hint);
                }
                if let Err((pointer, message, hint)) = expiry {
                    report(violations, pointer, Rule::TokenExpiry, message, hint);
                }
            },
        )?;
        Ok(Self {
            name: root.get("name").and_then(Json::as_str).unwrap_or_default().to_owned(),
            scopes: scopes(root),
            expires_at: expiry.unwrap_or_default(),
        })
    }
}

/// Why the name is refused, apart from violations that the schema reports.
fn wrong_name(root: &Json<'_>) -> Option<NameError> {
    let name = root.get("name").and_then(Json::as_str).filter(|name| !name.trim().is_empty())?;
    let error = check_characters(name).err()?;
    Some(error).filter(|it| !matches!(it, NameError::Control(found) if found.is_control()))
}

/// Where an expiry is wrong, what is wrong, and how to fix it.
type WrongExpiry = (&'static str, &'static str, &'static str);

/// When the token expires. Values of a wrong type count as absent: the schema reports them.
fn expiry(root: &Json<'_>, now: Timestamp) -> Result<Option<Timestamp>, WrongExpiry> {
    let seconds = root.get("expires_in").and_then(Json::as_positive_integer);
    let at = root.get("expires_at").and_then(Json::as_str).and_then(timestamp::parse);
    let (pointer, expiry) = match (seconds, at) {
        (Some(_), Some(_)) => {
            return Err(("", "has both `expires_in` and `expires_at`", "send only one of them"));
        }
        (None, None) => return Ok(None),
        (None, Some(at)) => ("/expires_at", Some(at)),
        (Some(seconds), None) => {
            let lifetime = i64::try_from(seconds).ok().map(SignedDuration::from_secs);
            ("/expires_in", lifetime.and_then(|lifetime| now.checked_add(lifetime).ok()))
        }
    };
    let expiry = expiry.ok_or((pointer, "is too long", "send fewer seconds, or no expiry"))?;
    let expiry = Timestamp::from_millisecond(expiry.as_millisecond()).unwrap_or(expiry);
    if expiry <= now {
        return Err((pointer, "is not in the future", "send a later time, or no expiry"));
    }
    Ok(Some(expiry))
}

fn scopes(root: &Json<'_>) -> Scopes {
    let Some(Json::Array(names)) = root.get("scopes") else { return Scopes::of([]) };
    Scopes::of(names.iter().filter_map(|name| name.as_str().and_then(Scope::parse)))
}

fn report(
    violations: &mut ViolationCollector,
    pointer: &str,
    rule: Rule,
    message: &str,
    hint: &str,
) {
    violations.add(|| Violation {
        pointer: pointer.to_owned(),
        rule,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}
