//! Previews of authentication templates, whose texts Meta writes.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::emulator::authentication::{
    AuthenticationTexts, LANGUAGES, MAX_EXPIRATION_MINUTES,
};

use super::{
    caller::Caller,
    parameters::{Query, invalid_parameter},
};
use crate::{
    api::{auth::Read, json, problem::Problem},
    app::App,
    json_writer::ObjectWriter,
};

pub(super) async fn list(
    State(_): State<App>,
    _: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    let category = query.text("category").unwrap_or_default();
    if !category.eq_ignore_ascii_case("AUTHENTICATION") {
        let problem = "must be AUTHENTICATION: Meta writes the texts of these templates only";
        return Err(invalid_parameter("category", problem));
    }
    let parameters = Parameters::read(&query)?;
    let previews: Vec<String> =
        parameters.languages.iter().map(|language| parameters.preview(language)).collect();
    Ok(json(StatusCode::OK, format!(r#"{{"data":[{}]}}"#, previews.join(","))))
}

/// What a preview shows.
struct Parameters {
    languages: Vec<String>,
    has_security: bool,
    expiration_minutes: Option<u32>,
    has_button: bool,
}

impl Parameters {
    fn read(query: &Query) -> Result<Self, Problem> {
        // Meta's page about the call uses both names.
        let languages = match query.list("languages")? {
            Some(languages) => Some(languages),
            None => query.list("language")?,
        };
        let all = || LANGUAGES.iter().map(|&it| it.to_owned()).collect();
        let languages: Vec<String> = languages.unwrap_or_else(all);
        if let Some(unknown) = languages.iter().find(|it| !LANGUAGES.contains(&&***it)) {
            let unknown: String = unknown.chars().take(40).collect();
            let problem = format!("contains `{unknown}`, which is not a language of WhatsApp");
            return Err(invalid_parameter("languages", &problem));
        }
        let minutes = query.text("code_expiration_minutes");
        let expiration_minutes = minutes.map(|text| {
            let minutes = text.parse().ok().filter(|it| (1..=MAX_EXPIRATION_MINUTES).contains(it));
            minutes.ok_or_else(|| {
                let problem = format!("must be a whole number from 1 to {MAX_EXPIRATION_MINUTES}");
                invalid_parameter("code_expiration_minutes", &problem)
            })
        });
        let button_types = query.list("button_types")?.unwrap_or_default();
        if !button_types.iter().all(|it| it.eq_ignore_ascii_case("OTP")) {
            return Err(invalid_parameter("button_types", "must be OTP"));
        }
        let has_security = query.text("add_security_recommendation");
        Ok(Self {
            languages,
            has_security: has_security.is_some_and(|it| it.eq_ignore_ascii_case("true")),
            expiration_minutes: expiration_minutes.transpose()?,
            has_button: !button_types.is_empty(),
        })
    }

    fn preview(&self, language: &str) -> String {
        let texts = AuthenticationTexts::in_language(language);
        let mut out = String::new();
        let mut object = ObjectWriter::open(&mut out);
        object.string("body", &texts.body(self.has_security));
        if self.has_button {
            let mut button = String::new();
            let mut labels = ObjectWriter::open(&mut button);
            labels.string("autofill_text", texts.autofill());
            labels.string("text", texts.copy_code());
            labels.close();
            object.raw("buttons", &format!("[{button}]"));
        }
        if let Some(minutes) = self.expiration_minutes {
            object.string("footer", &texts.footer(minutes));
        }
        object.unescaped("language", language);
        object.close();
        out
    }
}
