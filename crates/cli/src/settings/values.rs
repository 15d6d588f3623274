//! The values of settings: the URL of the store, addresses, base URLs and durations.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use galley_server::IpNetwork;
use galley_store::postgres::{AddressError, PostgresAddress};
use jiff::SignedDuration;

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

/// Parses the URL of a store.
pub(crate) fn store_url(text: &str) -> Result<StoreUrl, String> {
    if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        let path = path.strip_prefix("//").unwrap_or(path);
        if is_in_memory(path) {
            return Err(IN_MEMORY.to_owned());
        }
        return Ok(StoreUrl::Sqlite(PathBuf::from(path)));
    }
    match text.parse() {
        Ok(address) => Ok(StoreUrl::Postgres(Box::new(address))),
        Err(AddressError::Scheme) => {
            Err("expected sqlite:PATH or postgres://USER@HOST/DATABASE".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

const IN_MEMORY: &str = "a store in memory is not supported, because several connections and \
    processes open it and a restart must find it: name a file, for example sqlite:galley.db, or one \
    in a file system in memory, sqlite:/dev/shm/galley.db";

/// Whether SQLite, or a program that opens URLs for it, takes this for a database in memory.
fn is_in_memory(path: &str) -> bool {
    let path = path.strip_prefix("file:").unwrap_or(path);
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    name.trim_start_matches('/') == ":memory:" || query.split('&').any(|it| it == "mode=memory")
}

/// A value without the password that a URL may contain.
pub(super) fn redacted(value: &str) -> String {
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
pub(super) fn listen_address(text: &str) -> Option<String> {
    let port = text.rsplit_once(':')?.1;
    let is_valid = text.parse::<SocketAddr>().is_ok() || port.parse::<u16>().is_ok();
    is_valid.then(|| text.to_owned())
}

/// A base URL without query, fragment and user information, or an empty value.
pub(super) fn public_url(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return Some(String::new());
    }
    let rest = text.strip_prefix("https://").or(text.strip_prefix("http://"))?;
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#@\"<>\\".contains(&byte);
    let is_valid = rest.bytes().all(plain) && !rest.is_empty() && !rest.starts_with('/');
    is_valid.then(|| text.to_owned())
}

/// Addresses and networks, separated by spaces or commas.
pub(super) fn ip_networks(text: &str) -> Option<Vec<IpNetwork>> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().ok()).collect()
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
            ("postgres://u:hush@h/db?sslmode=require", "postgres://u@h:5432/db"),
            ("postgresql://h/db?user=u&password=hush", "postgres://u@h:5432/db"),
            ("postgres://u:hu%40sh@a:1,b:2/db", "postgres://u@a:1,b:2/db"),
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
        assert_eq!(store.to_string(), "postgres://u@a:1,b:2/db");
        assert!(!format!("{store:?}").contains("hush"), "{store:?}");
    }

    #[test]
    fn a_store_in_memory_is_refused_in_every_spelling() {
        for text in [
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite:///:memory:",
            "sqlite::memory:?cache=shared",
            "sqlite:file::memory:",
            "sqlite:file:galley.db?mode=memory&cache=shared",
        ] {
            let error = store_url(text).unwrap_err();
            assert!(error.contains("name a file"), "{text}: {error}");
        }
        for text in ["sqlite:./:memory:", "sqlite:memory", "sqlite:/srv/:memory:.db"] {
            assert!(matches!(store_url(text), Ok(StoreUrl::Sqlite(_))), "{text}");
        }
    }
}
