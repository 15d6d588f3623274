//! Settings: compiled-in defaults, then a file, then the environment, then flags. Resolving them
//! reports every error at once.

mod bootstrap;
mod sources;
mod upstream;
mod values;
mod webhooks;

use std::{path::PathBuf, time::Duration};

use galley_server::{CorsOrigins, Limits, LogFormat, LoggedRequests};

use values::{ip_networks, listen_address, public_url};

pub(crate) use bootstrap::{Bootstrap, BootstrapSecrets};
pub(crate) use sources::RawSettings;
pub(crate) use upstream::ProviderSettings;
pub(crate) use values::{StoreUrl, duration, store_url};
pub(crate) use webhooks::WebhookSettings;

/// The commented default settings, which are also the documentation.
pub(crate) const DEFAULTS: &str = include_str!("../galley.default.toml");

/// Resolved settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: String,
    /// The address of the health listener.
    pub(crate) health_listen: Option<String>,
    /// Public base URL; if empty, the listen address is used.
    pub(crate) public_url: String,
    /// The origins whose web pages may call the API.
    pub(crate) cors_origins: CorsOrigins,
    /// Whether the service has the console.
    pub(crate) console: bool,
    /// Whether the service serves emulator accounts.
    pub(crate) emulator: bool,
    pub(crate) store: StoreUrl,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: tracing::Level,
    pub(crate) access_log: LoggedRequests,
    pub(crate) write_queue: usize,
    pub(crate) min_free_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) webhooks: WebhookSettings,
    /// Connections to providers.
    pub(crate) upstream: ProviderSettings,
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
            send: self.duration("send_timeout"),
            connections: self.number("max_connections"),
            requests_per_account: self.number("max_requests_per_account"),
            failed_credentials: self.read(
                "failed_credentials_per_second",
                "a number from 1 to 1000000",
                |text| text.parse().ok().filter(|number| (1..=1_000_000).contains(number)),
            ),
            trusted_proxies: self.read(
                "trusted_proxies",
                "IP addresses and networks such as \"127.0.0.1 10.0.0.0/8\", or an empty value",
                ip_networks,
            ),
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
            cors_origins: self.cors_origins(),
            console: self.read("console", "true or false", |text| text.parse().ok()),
            emulator: self.read("emulator", "true or false", |text| text.parse().ok()),
            store: self.store(),
            log_format: self.read("log_format", "human or json", |text| match text {
                "human" => Some(LogFormat::Human),
                "json" => Some(LogFormat::Json),
                _ => None,
            }),
            log_level: self
                .read("log_level", "error, warn, info, debug or trace", |text| text.parse().ok()),
            access_log: self.read("access_log", "true, false or all", |text| match text {
                "true" => Some(LoggedRequests::Calls),
                "false" => Some(LoggedRequests::None),
                "all" => Some(LoggedRequests::All),
                _ => None,
            }),
            write_queue: self.number("write_queue"),
            min_free_bytes: self.min_free_bytes(),
            bootstrap: self.bootstrap(),
            webhooks: self.webhooks(),
            upstream: self.upstream(limits.media_bytes),
            limits,
        }
    }

    fn min_free_bytes(&mut self) -> u64 {
        let mib: u64 = self.read("min_free_disk_mib", "a number from 0 to 1000000", |text| {
            text.parse().ok().filter(|number| *number <= 1_000_000)
        });
        mib * 1_024 * 1_024
    }

    /// The error names the entry that is invalid.
    fn cors_origins(&mut self) -> CorsOrigins {
        let (value, source) = &self.raw.values["cors_origins"];
        value.parse().unwrap_or_else(|error| {
            self.errors.push(format!("cors_origins (from {source}): {error}"));
            CorsOrigins::None
        })
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

#[cfg(test)]
mod tests {
    use super::{bootstrap::SECRETS, *};
    use crate::arguments::Common;

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
    fn trusted_proxies_are_addresses_and_networks() {
        let read = |text: &str| {
            gather(&[&format!("trusted_proxies={text}")], &[])
                .map(|it| it.limits.trusted_proxies.len())
        };
        for (text, count) in [("", 0), ("127.0.0.1", 1), ("10.0.0.0/8, fd00::/8 ::1", 3)] {
            assert_eq!(read(text).unwrap(), count, "{text}");
        }
        for bad in ["proxy.example", "10.0.0.0/33", "10.0.0.1-10.0.0.9"] {
            assert!(read(bad).unwrap_err().to_string().contains("trusted_proxies"), "{bad}");
        }
    }

    #[test]
    fn an_invalid_origin_is_named() {
        let read = |text: &str| gather(&[&format!("cors_origins={text}")], &[]);
        assert_eq!(read("").unwrap().cors_origins, CorsOrigins::None);
        assert_eq!(read("*").unwrap().cors_origins, CorsOrigins::Any);
        let listed = read("https://a.example http://localhost:5173").unwrap().cors_origins;
        assert!(matches!(listed, CorsOrigins::Listed(origins) if origins.len() == 2));
        let error = read("https://a.example, https://b.example/").unwrap_err().to_string();
        assert!(error.contains("cors_origins (from --set): \"https://b.example/\""), "{error}");
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
