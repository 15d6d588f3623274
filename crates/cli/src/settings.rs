//! Settings: compiled-in defaults, then a file, then the environment, then flags. Resolving them
//! reports every error at once.

mod bootstrap;
mod webhooks;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use galley_domain::document::suggest;
use galley_server::{Limits, LogFormat};
use galley_store::postgres::{AddressError, PostgresAddress};
use jiff::SignedDuration;

use crate::arguments::Common;
pub(crate) use bootstrap::{Bootstrap, BootstrapSecrets};
pub(crate) use webhooks::WebhookSettings;

use bootstrap::{SECRET_FILES, SECRETS};

/// The commented default settings, which are also the documentation.
pub(crate) const DEFAULTS: &str = include_str!("../galley.default.toml");

/// Settings as text, each with its source.
pub(crate) struct RawSettings {
    values: BTreeMap<String, (String, String)>,
    environment: BTreeMap<String, String>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

/// Resolved settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    /// The address of the health listener.
    pub(crate) health_listen: Option<String>,
    /// Public base URL; if empty, the listen address is used.
    pub(crate) public_url: String,
    pub(crate) store: StoreUrl,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: tracing::Level,
    pub(crate) access_log: bool,
    pub(crate) write_queue: usize,
    pub(crate) min_free_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) webhooks: WebhookSettings,
}

/// The database.
#[derive(Clone, Debug)]
pub(crate) enum StoreUrl {
    Sqlite(PathBuf),
    Postgres(Box<PostgresAddress>),
}

/// Shows the URL without secrets.
impl std::fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::Postgres(address) => out.write_str(&address.shown()),
        }
    }
}

impl RawSettings {
    /// Collects all sources. `flags` of the command itself override the others.
    pub(crate) fn gather(
        common: &Common,
        flags: &[(&str, Option<String>)],
        environment: impl Iterator<Item = (String, String)>,
    ) -> anyhow::Result<Self> {
        let environment: BTreeMap<String, String> =
            environment.filter(|(name, _)| name.starts_with("GALLEY_")).collect();
        let (errors, warnings) = (Vec::new(), Vec::new());
        let mut raw = Self { values: BTreeMap::new(), environment, errors, warnings };
        raw.layer_file(DEFAULTS, "default").expect("the defaults are valid");
        raw.layer_chosen_file(common)?;
        raw.layer_environment();
        for set in &common.set {
            match set.split_once('=') {
                Some((name, value)) => raw.layer(name.trim(), value.trim().to_owned(), "--set"),
                None => raw.errors.push(format!("--set {set}: expected NAME=VALUE")),
            }
        }
        let store = ("store", common.store.clone());
        for (name, value) in flags.iter().cloned().chain([store]) {
            if let Some(value) = value {
                raw.layer(name, value, &format!("--{}", name.replace('_', "-")));
            }
        }
        Ok(raw)
    }

    fn layer_chosen_file(&mut self, common: &Common) -> anyhow::Result<()> {
        let named = self.environment.get("GALLEY_CONFIG").map(PathBuf::from);
        let (path, optional) = match common.config.clone().or(named) {
            Some(path) => (path, false),
            None => (PathBuf::from("galley.toml"), true),
        };
        match std::fs::read_to_string(&path) {
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
                toml::Value::Table(_) | toml::Value::Array(_) => {
                    self.errors.push(format!("{name} (from {source}): expected a plain value"));
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
            let other = name == "GALLEY_CONFIG" || name.starts_with("GALLEY_TEST_");
            if other || SECRETS.contains(&&*name) || SECRET_FILES.contains(&&*name) {
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

/// Resolves raw settings and continues after an error.
struct Resolver<'r> {
    raw: &'r RawSettings,
    errors: Vec<String>,
}

impl Resolver<'_> {
    fn settings(&mut self) -> Settings {
        let limits = Limits {
            header: self.duration("header_timeout"),
            body: self.duration("body_timeout"),
            request: self.duration("request_timeout"),
            idle: self.duration("idle_timeout"),
            connections: self.number("max_connections"),
            media_bytes: (self.number("media_mib_per_account") as u64)
                .saturating_mul(1_024 * 1_024),
            drain_delay: self.duration("drain_delay"),
            drain: self.duration("drain_timeout"),
            ..Limits::default()
        };
        if limits.drain_delay + limits.drain > Duration::from_secs(10) {
            self.errors
                .push("drain_delay and drain_timeout: must be at most 10s together".to_owned());
        }
        Settings {
            listen: self.read("listen", "HOST:PORT", listen_address),
            health_listen: self.read("health_listen", "HOST:PORT, or an empty value", |text| {
                if text.is_empty() { Some(None) } else { listen_address(text).map(Some) }
            }),
            public_url: self.read("public_url", "https://HOST, or an empty value", public_url),
            store: self.store(),
            log_format: self.read("log_format", "human or json", |text| match text {
                "human" => Some(LogFormat::Human),
                "json" => Some(LogFormat::Json),
                _ => None,
            }),
            log_level: self
                .read("log_level", "error, warn, info, debug or trace", |text| text.parse().ok()),
            access_log: self.read("access_log", "true or false", |text| text.parse().ok()),
            write_queue: self.number("write_queue"),
            min_free_bytes: self.min_free_bytes(),
            bootstrap: self.bootstrap(),
            webhooks: self.webhooks(),
            limits,
        }
    }

    fn min_free_bytes(&mut self) -> u64 {
        let mib: u64 = self.read("min_free_disk_mib", "a number from 0 to 1000000", |text| {
            text.parse().ok().filter(|number| *number <= 1_000_000)
        });
        mib * 1_024 * 1_024
    }

    /// The URL may contain a password, which no error message repeats.
    fn store(&mut self) -> StoreUrl {
        let (value, source) = &self.raw.values["store"];
        match store_url(value) {
            Ok(store) => store,
            Err(error) => {
                self.errors.push(format!("store (from {source}): {error}"));
                StoreUrl::Sqlite(PathBuf::new())
            }
        }
    }

    fn duration(&mut self, name: &str) -> Duration {
        let some =
            |text: &str| duration(text).filter(|time| !time.is_zero() || name == "drain_delay");
        self.read(name, "a duration such as 10s or 500ms", some)
    }

    fn number(&mut self, name: &str) -> usize {
        self.read(name, "a number from 1 to 1000000", |text| {
            text.parse().ok().filter(|number| (1..=1_000_000).contains(number))
        })
    }

    /// Reads one setting. An invalid value is reported and replaced by the default.
    fn read<T>(&mut self, name: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> T {
        let (value, source) = &self.raw.values[name];
        read(value).unwrap_or_else(|| {
            let error = format!("{name} = {value:?} (from {source}): expected {expected}");
            self.errors.push(error);
            let defaults: toml::Table = toml::from_str(DEFAULTS).expect("the defaults are valid");
            let default =
                defaults[name].as_str().map_or_else(|| defaults[name].to_string(), str::to_owned);
            read(&default).expect("the defaults are valid")
        })
    }
}

/// Parses the URL of a store.
pub(crate) fn store_url(text: &str) -> Result<StoreUrl, String> {
    if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        return Ok(StoreUrl::Sqlite(PathBuf::from(path.strip_prefix("//").unwrap_or(path))));
    }
    match text.parse() {
        Ok(address) => Ok(StoreUrl::Postgres(Box::new(address))),
        Err(AddressError::Scheme) => {
            Err("expected sqlite:PATH or postgres://USER@HOST/DATABASE".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// A value without the password that a URL may contain.
fn redacted(value: &str) -> String {
    match value.split_once("://") {
        Some(("postgres" | "postgresql", _)) => {
            let shown = value.parse().map(|address: PostgresAddress| address.shown());
            shown.unwrap_or_else(|_| "***".to_owned())
        }
        Some((scheme, rest)) if rest.contains(['@', '?']) => format!("{scheme}://***"),
        _ => value.to_owned(),
    }
}

/// An address to listen on.
fn listen_address(text: &str) -> Option<String> {
    let port = text.rsplit_once(':')?.1;
    let is_valid = text.parse::<SocketAddr>().is_ok() || port.parse::<u16>().is_ok();
    is_valid.then(|| text.to_owned())
}

/// A base URL without query, fragment and user information, or an empty value.
fn public_url(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return Some(String::new());
    }
    let rest = text.strip_prefix("https://").or(text.strip_prefix("http://"))?;
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#@\"<>\\".contains(&byte);
    let is_valid = rest.bytes().all(plain) && !rest.is_empty() && !rest.starts_with('/');
    is_valid.then(|| text.to_owned())
}

/// Parses a duration: `10s`, `1h 30m`, `90d`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u64>().ok());
    if let Some(days) = days {
        return Some(Duration::from_secs(days.checked_mul(86_400)?));
    }
    Duration::try_from(text.parse::<SignedDuration>().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_the_url_of_a_store_is_never_shown() {
        for (address, shown) in [
            ("postgres://u:hush@h/db?sslmode=require", "postgres://h/db"),
            ("postgresql://h/db?user=u&password=hush", "postgres://h/db"),
            ("postgres://u:hu%40sh@a:1,b:2/db", "postgres://a,b/db"),
            ("postgres://u:hu@sh@h/db", "***"),
            ("postgres://h/db?user=u&password=hu@sh", "***"),
            ("postgres://u:hush@h/db?sslmode=sometimes", "***"),
            ("postgre://u:hush@h/db", "postgre://***"),
            ("postgre://h/db?password=hush", "postgre://***"),
            ("https://shop.example:8080", "https://shop.example:8080"),
            ("sqlite:galley.db", "sqlite:galley.db"),
        ] {
            assert_eq!(redacted(address), shown);
        }
        let error = store_url("postgres://u:hush@h/db?sslmode=sometimes").unwrap_err();
        assert!(error.contains("verify-full") && !error.contains("hush"), "{error}");
        for whole in ["postgres://u:hu@sh@h/db", "postgres://h/db?user=u&password=hu@sh"] {
            let error = store_url(whole).unwrap_err();
            assert!(error.contains("%40") && !error.contains("sh@"), "{error}");
        }
        let store = store_url("postgresql://u:hush@a:1,b:2/db").unwrap();
        assert_eq!(store.to_string(), "postgres://a,b/db");
        assert!(!format!("{store:?}").contains("hush"), "{store:?}");
    }

    fn common(set: &[&str]) -> Common {
        let set = set.iter().map(|it| (*it).to_owned()).collect();
        Common { config: None, store: None, set, json: false }
    }

    pub(super) fn gather(set: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<Settings> {
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RawSettings::gather(&common(set), &[], environment)?.settings()
    }

    #[test]
    fn the_defaults_are_valid_and_equal_those_of_the_server() {
        let settings = gather(&[], &[]).unwrap();
        assert_eq!(format!("{:?}", settings.limits), format!("{:?}", Limits::default()));
        assert_eq!(settings.store.to_string(), "sqlite:galley.db");
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file_and_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("galley.toml");
        std::fs::write(&file, "listen = \"a:1\"\nlog_level = \"warn\"\nmax_connections = 7\n")
            .unwrap();
        let common = Common { config: Some(file), ..common(&["log_level=debug"]) };
        let environment = [("GALLEY_LISTEN", "b:2"), ("GALLEY_LOG_LEVEL", "error")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let flags = [("listen", Some("c:3".to_owned()))];
        let raw = RawSettings::gather(&common, &flags, environment.into_iter()).unwrap();
        let settings = raw.settings().unwrap();
        assert_eq!(settings.listen, "c:3");
        assert_eq!(settings.log_level, tracing::Level::DEBUG);
        assert_eq!(settings.limits.connections, 7);
        assert!(raw.rows().contains(&("listen", "c:3".to_owned(), "--listen")));
    }

    #[test]
    fn the_public_url_is_a_base_url_or_empty() {
        let read =
            |text: &str| gather(&[&format!("public_url={text}")], &[]).map(|it| it.public_url);
        assert_eq!(read("").unwrap(), "");
        for good in ["https://t.example", "http://10.0.0.1:8080/galley"] {
            assert_eq!(read(good).unwrap(), good);
        }
        for bad in [
            "t.example",
            "ftp://t.example",
            "https://",
            "https:///x",
            "https://t/?a=b",
            "https://u@t",
        ] {
            assert!(read(bad).unwrap_err().to_string().contains("public_url"), "{bad}");
        }
    }

    #[test]
    fn every_invalid_setting_is_reported_at_once() {
        let set = ["listen=nowhere", "store=mysql:x", "body_timeout=soon", "health_listen=here"];
        let errors = gather(&set, &[("GALLEY_BOOTSTRAP_KEY", "only")]).unwrap_err().to_string();
        for name in ["listen", "store", "body_timeout", "health_listen", "GALLEY_BOOTSTRAP_TOKEN"] {
            assert!(errors.contains(name), "{name} in {errors}");
        }
    }

    #[test]
    fn an_unknown_setting_is_refused_with_a_suggestion() {
        let error = gather(&["listn=a:1", "store=x", "odd=1"], &[]).unwrap_err().to_string();
        assert!(error.contains("there is no setting `listn`: did you mean `listen`?"));
        assert!(error.contains("`odd`") && error.contains("store (from"), "{error}");
    }

    #[test]
    fn secrets_are_never_shown() {
        let environment = SECRETS.map(|name| (name.to_owned(), "canary-of-17-chars".to_owned()));
        let raw = RawSettings::gather(&common(&[]), &[], environment.into_iter()).unwrap();
        let shown = format!("{:?} {:?}", raw.rows(), raw.settings().unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    }
}
