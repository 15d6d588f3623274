//! The texts that Meta gives authentication templates, as its documentation shows them: in English
//! and Spanish. Other languages get the English texts, because Meta does not publish theirs.

use crate::validation::languages::whatsapp;

/// The languages of authentication templates.
pub const LANGUAGES: &[&str] = whatsapp::CODES;

/// The sample of a code.
pub const SAMPLE_CODE: &str = "123456";

/// The longest time until a code expires, in minutes.
pub const MAX_EXPIRATION_MINUTES: u32 = 90;

/// The texts in one language.
struct Language {
    body: &'static str,
    security: &'static str,
    /// Before the number of minutes.
    expires_in: &'static str,
    minute: &'static str,
    minutes: &'static str,
    copy_code: &'static str,
    autofill: &'static str,
}

static ENGLISH: Language = Language {
    body: "*{{1}}* is your verification code.",
    security: " For your security, do not share this code.",
    expires_in: "This code expires in ",
    minute: " minute.",
    minutes: " minutes.",
    copy_code: "Copy code",
    autofill: "Autofill",
};

static SPANISH: Language = Language {
    body: "Tu código de verificación es *{{1}}*.",
    security: " Por tu seguridad, no lo compartas.",
    expires_in: "Este código caduca en ",
    minute: " minuto.",
    minutes: " minutos.",
    copy_code: "Copiar código",
    autofill: "Autocompletar",
};

/// The texts of an authentication template in a language.
#[derive(Clone, Copy)]
pub struct AuthenticationTexts(&'static Language);

impl AuthenticationTexts {
    /// The texts in the language with this code.
    pub fn in_language(code: &str) -> Self {
        let language = code.split('_').next().unwrap_or_default();
        Self(if language == "es" { &SPANISH } else { &ENGLISH })
    }

    /// The body, in which the code is `{{1}}`.
    pub fn body(self, add_security_recommendation: bool) -> String {
        let security = if add_security_recommendation { self.0.security } else { "" };
        format!("{}{security}", self.0.body)
    }

    /// The footer.
    pub fn footer(self, expiration_minutes: u32) -> String {
        let unit = if expiration_minutes == 1 { self.0.minute } else { self.0.minutes };
        format!("{}{expiration_minutes}{unit}", self.0.expires_in)
    }

    /// The label of a button that copies the code.
    pub fn copy_code(self) -> &'static str {
        self.0.copy_code
    }

    /// The label of a button that lets the device fill in the code.
    pub fn autofill(self) -> &'static str {
        self.0.autofill
    }
}

/// The URL of a one-time code button, as Meta shows it.
pub fn button_url(otp_type: &str, expiration_minutes: Option<u32>, code: &str) -> String {
    let expiration = expiration_minutes
        .map_or_else(String::new, |minutes| format!("&code_expiration_minutes={minutes}"));
    format!("https://www.whatsapp.com/otp/code/?otp_type={otp_type}{expiration}&code=otp{code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_metas_documentation() {
        let english = AuthenticationTexts::in_language("en_US");
        let body = "*{{1}}* is your verification code. For your security, do not share this code.";
        assert_eq!(english.body(true), body);
        assert_eq!(english.footer(10), "This code expires in 10 minutes.");
        assert_eq!(english.footer(1), "This code expires in 1 minute.");
        let spanish = AuthenticationTexts::in_language("es_ES");
        let body = "Tu código de verificación es *{{1}}*. Por tu seguridad, no lo compartas.";
        assert_eq!(spanish.body(true), body);
        assert_eq!(spanish.body(false), "Tu código de verificación es *{{1}}*.");
        assert_eq!((spanish.copy_code(), spanish.autofill()), ("Copiar código", "Autocompletar"));
        assert_eq!(
            AuthenticationTexts::in_language("es").footer(1),
            "Este código caduca en 1 minuto."
        );
        assert_eq!(AuthenticationTexts::in_language("et").copy_code(), "Copy code");
    }

    #[test]
    fn a_button_links_to_the_page_that_copies_the_code() {
        assert_eq!(
            button_url("COPY_CODE", Some(5), "{{1}}"),
            "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code_expiration_minutes=5&code=otp{{1}}"
        );
        assert_eq!(
            button_url("COPY_CODE", None, SAMPLE_CODE),
            "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp123456"
        );
    }
}
