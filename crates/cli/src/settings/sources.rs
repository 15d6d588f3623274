//! The sources of settings, each of which overrides the former: defaults, file, environment, flags.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use galley_domain::document::suggest;

use super::{
    DEFAULTS, Resolver, Settings,
    bootstrap::{EMULATOR, SECRET_FILES, SECRETS},
    values::redacted,
};
use crate::arguments::Common;

/// Settings as text, each with its source.
pub(crate) struct RawSettings {
    pub(super) values: BTreeMap<String, (String, String)>,
    environment: BTreeMap<String, String>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl RawSettings {
    /// Collects all sources. `flags` of the command itself override the others.
    pub(crate) fn gather(
        common: &Common,
        flags: &[(&str, Option<String>)],
        environment: impl Iterator<Item = (String, String)>,
    ) -> anyhow::Result<Self> {
        let mut raw = Self::with_defaults(environment);
        let named = raw.environment.get("GALLEY_CONFIG").map(PathBuf::from);
        match common.config.clone().or(named) {
            Some(path) => raw.layer_settings_file(&path, false)?,
            None => raw.layer_settings_file(Path::new("galley.toml"), true)?,
        }
        raw.layer_overrides(common, flags);
        Ok(raw)
    }

    /// Collects the sources for a throw-away service. Other settings files than that of `--config`
    /// and secrets of other variables are those of a real service, which may be in production.
    pub(crate) fn gather_for_emulator(
        common: &Common,
        flags: &[(&str, Option<String>)],
        environment: impl Iterator<Item = (String, String)>,
    ) -> anyhow::Result<Self> {
        let is_of_real_service =
            |name: &str| SECRETS.contains(&name) || SECRET_FILES.contains(&name);
        let mut raw =
            Self::with_defaults(environment.filter(|(name, _)| !is_of_real_service(name)));
        if let Some(path) = &common.config {
            raw.layer_settings_file(path, false)?;
        }
        raw.layer_overrides(common, flags);
        Ok(raw)
    }

    /// The compiled-in defaults, and the environment that later layers read.
    fn with_defaults(environment: impl Iterator<Item = (String, String)>) -> Self {
        let environment = environment.filter(|(name, _)| name.starts_with("GALLEY_")).collect();
        let (errors, warnings) = (Vec::new(), Vec::new());
        let mut raw = Self { values: BTreeMap::new(), environment, errors, warnings };
        raw.layer_file(DEFAULTS, "default").expect("the defaults are valid");
        raw
    }

    /// The environment, and then the flags.
    fn layer_overrides(&mut self, common: &Common, flags: &[(&str, Option<String>)]) {
        self.layer_environment();
        for set in &common.set {
            match set.split_once('=') {
                Some((name, value)) => self.layer(name.trim(), value.trim().to_owned(), "--set"),
                None => self.errors.push(format!("--set {set}: expected NAME=VALUE")),
            }
        }
        let store = ("store", common.store.clone());
        for (name, value) in flags.iter().cloned().chain([store]) {
            if let Some(value) = value {
                self.layer(name, value, &format!("--{}", name.replace('_', "-")));
            }
        }
    }

    fn layer_settings_file(&mut self, path: &Path, optional: bool) -> anyhow::Result<()> {
        match std::fs::read_to_string(path) {
            Ok(text) => self
                .layer_file(&text, &path.display().to_string())
                .with_context(|| format!("the settings file {}", path.display())),
            Err(error) if optional && error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("the settings file {}", path.display()))
            }
        }
    }

    fn layer_file(&mut self, text: &str, source: &str) -> anyhow::Result<()> {
        for (name, value) in toml::from_str::<toml::Table>(text)? {
            let value = match value {
                toml::Value::String(text) => text,
                // A list is the same as its entries in one text.
                toml::Value::Array(items) if items.iter().all(toml::Value::is_str) => {
                    items.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join(" ")
                }
                toml::Value::Table(_) | toml::Value::Array(_) => {
                    self.errors.push(format!(
                        "{name} (from {source}): expected one value, or a list of texts"
                    ));
                    continue;
                }
                other => other.to_string(),
            };
            // The defaults define which settings exist.
            if source == "default" {
                self.values.insert(name, (value, source.to_owned()));
            } else {
                self.layer(&name, value, source);
            }
        }
        Ok(())
    }

    fn layer_environment(&mut self) {
        for (name, value) in self.environment.clone() {
            let setting = name.trim_start_matches("GALLEY_").to_lowercase();
            // The emulator prints the base URL for its clients.
            let other = ["GALLEY_CONFIG", "GALLEY_BASE_URL"].contains(&&*name)
                || name.starts_with("GALLEY_TEST_");
            let is_secret = SECRETS.contains(&&*name) || SECRET_FILES.contains(&&*name);
            if other || is_secret || EMULATOR.contains(&&*name) {
                continue;
            }
            match self.unknown_setting(&setting) {
                // The variable may be for another version of Galley: warn, but do not refuse.
                Some(error) => self.warnings.push(format!("{name}: {error}")),
                None => self.layer(&setting, value, &name),
            }
        }
    }

    fn layer(&mut self, name: &str, value: String, source: &str) {
        match self.unknown_setting(name) {
            Some(error) => self.errors.push(format!("{error} (from {source})")),
            None => {
                self.values.insert(name.to_owned(), (value, source.to_owned()));
            }
        }
    }

    /// The error message for a setting that does not exist.
    fn unknown_setting(&self, name: &str) -> Option<String> {
        if self.values.contains_key(name) {
            return None;
        }
        Some(match suggest::nearest(name, self.values.keys().map(String::as_str)) {
            Some(known) => format!("there is no setting `{name}`: did you mean `{known}`?"),
            None => format!("there is no setting `{name}`"),
        })
    }

    /// Name, value and source of every setting. Secrets are redacted.
    pub(crate) fn rows(&self) -> Vec<(&str, String, &str)> {
        let settings =
            self.values.iter().map(|(name, (value, source))| (&**name, redacted(value), &**source));
        let secrets = SECRETS.iter().filter(|name| self.environment.contains_key(**name));
        let secrets = secrets.map(|name| (*name, "***".to_owned(), "environment"));
        let files = SECRET_FILES
            .iter()
            .filter_map(|name| Some((*name, self.variable(name)?.to_owned(), "environment")));
        settings.chain(secrets).chain(files).collect()
    }

    /// What the operator should know, although it is no error.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The value of an environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// Resolves the settings, or reports every invalid one.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let mut resolver = Resolver { raw: self, errors: self.errors.clone() };
        let settings = resolver.settings();
        if resolver.errors.is_empty() {
            return Ok(settings);
        }
        bail!("invalid settings:\n  {}", resolver.errors.join("\n  "))
    }
}
