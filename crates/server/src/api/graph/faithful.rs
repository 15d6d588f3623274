//! What only faithful emulator accounts do: Meta's forms of responses that Galley otherwise avoids.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use galley_domain::{
    document::{Document, Json},
    emulator::{
        CURSOR_LIFETIME, SAMPLE_LINK_LIFETIME,
        authentication::{self, AuthenticationTexts, SAMPLE_CODE},
    },
    id::{AccountId, TemplateId},
    template::Template,
};
use galley_store::Account;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::parameters::{Query, invalid_cursor};
use crate::{
    api::{emulated_time, media_url, problem::Problem},
    app::App,
};

/// The parameter of a link to a sample that tells when it expires on the clock of its account.
pub(super) const LINK_EXPIRY: &str = "oe";

/// A faithful account and the time of its clock.
#[derive(Clone, Copy)]
pub(super) struct Faithful {
    account: AccountId,
    now: Timestamp,
}

impl Faithful {
    /// `None` for every other account.
    pub(super) async fn of(app: &App, account: &Account) -> Result<Option<Self>, Problem> {
        if !account.emulator.is_some_and(|kind| kind.faithful) {
            return Ok(None);
        }
        let now = emulated_time::of_account(app, account).await?;
        Ok(now.map(|now| Self { account: account.id, now }))
    }

    /// Counts a call of the account. Returns the value of the header that tells its usage.
    pub(super) fn count_call(self, app: &App) -> String {
        app.call_usage().count(self.account, self.now)
    }

    /// A cursor of the list, which expires.
    pub(super) fn cursor(self, id: TemplateId) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{id}.{}", self.now.as_second()))
    }

    /// The template of a cursor that has not expired.
    pub(super) fn read_cursor(
        self,
        query: &Query,
        name: &str,
    ) -> Result<Option<TemplateId>, Problem> {
        let Some(text) = query.text(name) else { return Ok(None) };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        let cursor = text.split_once('.').and_then(|(id, issued)| {
            let issued = Timestamp::from_second(issued.parse().ok()?).ok()?;
            Some((id.parse().ok()?, issued))
        });
        let (id, issued): (TemplateId, _) = cursor.ok_or_else(|| invalid_cursor(name))?;
        let is_valid = self.now.duration_since(issued) <= CURSOR_LIFETIME;
        if is_valid { Ok(Some(id)) } else { Err(invalid_cursor(name)) }
    }

    /// The link to a sample, which expires; `None` if it was not uploaded to Galley.
    pub(super) fn sample_link(self, app: &App, handle: &str) -> Option<String> {
        let url = media_url::for_handle(app, handle)?;
        let expiry = latest_expiry(self.now);
        Some(format!("{url}?{LINK_EXPIRY}={expiry:x}"))
    }
}

/// The second at which a link to a sample expires that is issued at this time.
fn latest_expiry(now: Timestamp) -> i64 {
    now.checked_add(SAMPLE_LINK_LIFETIME).unwrap_or(Timestamp::MAX).as_second()
}

/// How far the clocks of two instances may differ.
const CLOCK_SLACK_SECONDS: i64 = 60;

/// Whether a link to a sample of a faithful account is valid on the clock of the account: it has an
/// expiry, which is ahead, and not further than that of a link that is issued now.
pub(super) async fn is_valid_link(
    app: &App,
    account: AccountId,
    query: &Query,
) -> Result<bool, Problem> {
    let expiry = query.text(LINK_EXPIRY).and_then(|text| i64::from_str_radix(text, 16).ok());
    let now = emulated_time::of_account_id(app, account).await?;
    let valid = now.map(|now| now.as_second() + 1..=latest_expiry(now) + CLOCK_SLACK_SECONDS);
    Ok(valid.zip(expiry).is_some_and(|(valid, expiry)| valid.contains(&expiry)))
}

/// What an authentication template asks Meta to write.
struct CodeMessage {
    has_security: bool,
    expiration_minutes: Option<u32>,
}

impl CodeMessage {
    fn of(components: &Json<'_>) -> Self {
        let find = |name: &str| array(Some(components)).iter().find_map(|it| it.get(name));
        let minutes = find("code_expiration_minutes").and_then(Json::as_i64);
        Self {
            has_security: matches!(find("add_security_recommendation"), Some(Json::Bool(true))),
            expiration_minutes: minutes.and_then(|minutes| u32::try_from(minutes).ok()),
        }
    }
}

/// The components of an authentication template with Meta's texts and a URL button.
pub(super) fn authentication_components(components: &Json<'_>, language: &str) -> String {
    let message = CodeMessage::of(components);
    let texts = AuthenticationTexts::in_language(language);
    let shown: Vec<Value> = array(Some(components))
        .iter()
        .filter_map(|component| match component.get("type").and_then(Json::as_str)? {
            "BODY" => Some(json!({
                "type": "BODY", "text": texts.body(message.has_security),
                "add_security_recommendation": message.has_security,
                "example": {"body_text": [[SAMPLE_CODE]]},
            })),
            "FOOTER" => message.expiration_minutes.map(|minutes| {
                json!({
                    "type": "FOOTER", "text": texts.footer(minutes),
                    "code_expiration_minutes": minutes,
                })
            }),
            "BUTTONS" => {
                let buttons = array(component.get("buttons")).iter();
                let buttons: Vec<Value> =
                    buttons.map(|button| url_button(button, texts, &message)).collect();
                Some(json!({"type": "BUTTONS", "buttons": buttons}))
            }
            _ => None,
        })
        .collect();
    serde_json::to_string(&shown).unwrap_or_default()
}

/// A one-time code button as Meta shows it.
fn url_button(button: &Json<'_>, texts: AuthenticationTexts, message: &CodeMessage) -> Value {
    let text = |name: &str| button.get(name).and_then(Json::as_str);
    let otp_type = text("otp_type").unwrap_or("COPY_CODE");
    let url = |code: &str| authentication::button_url(otp_type, message.expiration_minutes, code);
    json!({
        "type": "URL", "text": text("text").unwrap_or(texts.copy_code()),
        "url": url("{{1}}"), "example": [url(SAMPLE_CODE)],
    })
}

/// The texts of an authentication message as Meta writes them; other members stay as they are.
pub(super) fn authentication_texts(template: &Template, texts: String) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(&texts) else { return texts };
    let Ok(content) = Document::parse(template.content().as_bytes()) else { return texts };
    let message = CodeMessage::of(content.root().get("components").unwrap_or(&Json::Null));
    let meta = AuthenticationTexts::in_language(template.language());
    let code = members.get("buttons").and_then(|it| it.pointer("/0/code")).and_then(Value::as_str);
    let Some(body) = code.map(|code| meta.body(message.has_security).replace("{{1}}", code)) else {
        return texts;
    };
    members.insert("body".to_owned(), body.into());
    if let Some(minutes) = message.expiration_minutes {
        members.insert("footer".to_owned(), meta.footer(minutes).into());
    }
    Value::Object(members).to_string()
}

fn array<'d, 'j>(value: Option<&'d Json<'j>>) -> &'d [Json<'j>] {
    match value {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}
