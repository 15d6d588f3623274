//! Secrets from the environment, and how the first account of an empty store is created.

use std::path::Path;

use galley_domain::account;

use super::{RawSettings, Resolver};
use crate::secrets;

/// Secret environment variables that are not settings; their values are never shown.
pub(super) const SECRETS: [&str; 5] = [
    "GALLEY_BOOTSTRAP_KEY",
    "GALLEY_BOOTSTRAP_TOKEN",
    "GALLEY_BOOTSTRAP_PHONE",
    "GALLEY_SECRET_KEY",
    "GALLEY_WEBHOOK_SECRET",
];

/// Environment variables that name a file with the secret, as container platforms provide it.
pub(super) const SECRET_FILES: [&str; 4] = [
    "GALLEY_BOOTSTRAP_KEY_FILE",
    "GALLEY_BOOTSTRAP_TOKEN_FILE",
    "GALLEY_SECRET_KEY_FILE",
    "GALLEY_WEBHOOK_SECRET_FILE",
];

/// Environment variables that only `galley emulator` reads.
pub(super) const EMULATOR: [&str; 8] = [
    "GALLEY_EMULATOR_APP_SECRET",
    "GALLEY_EMULATOR_APP_SECRET_FILE",
    "GALLEY_EMULATOR_KEY",
    "GALLEY_EMULATOR_KEY_FILE",
    "GALLEY_EMULATOR_PHONE_NUMBER_ID",
    "GALLEY_EMULATOR_TOKEN",
    "GALLEY_EMULATOR_TOKEN_FILE",
    "GALLEY_EMULATOR_WABA_ID",
];

/// How the first account of an empty store is created.
#[derive(Debug)]
pub(crate) enum Bootstrap {
    /// With credentials from the environment.
    Given(BootstrapSecrets),
    /// With random credentials, which are printed once.
    Print,
    /// Not by the service: the operator creates it.
    Off,
}

/// The credentials of the first account. Never printed.
pub(crate) struct BootstrapSecrets {
    pub(crate) key: String,
    pub(crate) token: String,
    pub(crate) phone: Option<String>,
}

impl std::fmt::Debug for BootstrapSecrets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("BootstrapSecrets(***)")
    }
}

impl RawSettings {
    /// A secret from the variable `name`, or from the file that `name` with `_FILE` names. An empty
    /// variable is not set, because Compose files pass unset variables as empty.
    pub(crate) fn secret(&self, name: &str) -> Result<Option<String>, String> {
        let set = |name: &str| self.variable(name).filter(|value| !value.is_empty());
        let file = format!("{name}_FILE");
        match (set(name), set(&file)) {
            (Some(_), Some(_)) => Err(format!("{name} and {file}: set only one of them")),
            (Some(value), None) => Ok(Some(value.to_owned())),
            (None, Some(path)) => secrets::file::read(Path::new(path))
                .map(Some)
                .map_err(|error| format!("{file}: {error:#}")),
            (None, None) => Ok(None),
        }
    }
}

impl Resolver<'_> {
    pub(super) fn bootstrap(&mut self) -> Bootstrap {
        let mode = self.read("bootstrap", "print or off", |text| match text {
            "print" => Some(Bootstrap::Print),
            "off" => Some(Bootstrap::Off),
            _ => None,
        });
        let phone = self.bootstrap_value("GALLEY_BOOTSTRAP_PHONE", account::MAX_SEGMENT_BYTES);
        let mut secret = |name: &str| self.bootstrap_value(name, account::MAX_SECRET_BYTES);
        match (secret("GALLEY_BOOTSTRAP_KEY"), secret("GALLEY_BOOTSTRAP_TOKEN")) {
            (Some(key), Some(token)) => Bootstrap::Given(BootstrapSecrets { key, token, phone }),
            (None, None) if phone.is_none() => mode,
            _ => {
                let error = "GALLEY_BOOTSTRAP_KEY and GALLEY_BOOTSTRAP_TOKEN: set both or neither";
                self.errors.push(error.to_owned());
                mode
            }
        }
    }

    fn bootstrap_value(&mut self, name: &str, max_bytes: usize) -> Option<String> {
        let value = self.secret(name)?;
        if !account::is_valid_path_segment(&value) || value.len() > max_bytes {
            let allowed = format!("use 1 to {max_bytes} of the characters A-Z a-z 0-9 . _ ~ + -");
            self.errors.push(format!("{name}: {allowed}"));
        }
        Some(value)
    }

    /// A secret from the environment. An error is reported and treated as no secret.
    pub(super) fn secret(&mut self, name: &str) -> Option<String> {
        self.raw.secret(name).unwrap_or_else(|error| {
            self.errors.push(error);
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::gather;
    use super::*;

    #[test]
    fn given_credentials_take_precedence_over_the_setting() {
        let given = [("GALLEY_BOOTSTRAP_KEY", "k"), ("GALLEY_BOOTSTRAP_TOKEN", "t")];
        for mode in ["bootstrap=off", "bootstrap=print"] {
            let bootstrap = gather(&[mode], &given).unwrap().bootstrap;
            assert!(matches!(bootstrap, Bootstrap::Given(_)), "{mode}: {bootstrap:?}");
        }
        assert!(matches!(gather(&[], &[]).unwrap().bootstrap, Bootstrap::Print));
        assert!(matches!(gather(&["bootstrap=off"], &[]).unwrap().bootstrap, Bootstrap::Off));
        let error = gather(&["bootstrap=maybe"], &[]).unwrap_err().to_string();
        assert!(error.contains("expected print or off"), "{error}");
    }

    #[test]
    fn a_secret_comes_from_its_variable_or_from_a_file_but_not_from_both() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (key, token) = (write("key", "the-key\n"), write("token", "the-token"));
        let files = [("GALLEY_BOOTSTRAP_KEY_FILE", &*key), ("GALLEY_BOOTSTRAP_TOKEN_FILE", &token)];
        let Bootstrap::Given(read) = gather(&[], &files).unwrap().bootstrap else {
            panic!("no credentials")
        };
        assert_eq!((&*read.key, &*read.token), ("the-key", "the-token"));
        // An empty variable is not set.
        gather(&[], &[files[0], files[1], ("GALLEY_BOOTSTRAP_KEY", "")]).unwrap();

        let both = [files[0], files[1], ("GALLEY_BOOTSTRAP_KEY", "canary")];
        let error = gather(&[], &both).unwrap_err().to_string();
        assert!(error.contains("GALLEY_BOOTSTRAP_KEY_FILE: set only one"), "{error}");
        let (short, missing) = (write("short", "canary"), "/nonexistent/secret");
        let bad = [("GALLEY_SECRET_KEY_FILE", &*short), ("GALLEY_BOOTSTRAP_KEY_FILE", missing)];
        let error = gather(&[], &bad).unwrap_err().to_string();
        for expected in ["GALLEY_SECRET_KEY is shorter", missing, "GALLEY_BOOTSTRAP_KEY_FILE"] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
        assert!(!error.contains("canary"), "{error}");
    }
}
