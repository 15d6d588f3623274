//! The cookie of a session of the console.

use axum::http::{HeaderMap, HeaderValue, header};

/// The cookie of a service that browsers reach by `https`: the prefix lets only this host set it.
const SECURE_NAME: &str = "__Host-galley_console";

/// The prefix is not possible without TLS. Then the path keeps the cookie away from the rest of the
/// service.
const SECURE_PREFIX: &str = "__Host-";

/// Maximum length of a secret that is looked up.
const MAX_SECRET_CHARS: usize = 128;

/// The name of the cookie of a service with this public URL.
fn name(public_url: &str) -> &'static str {
    let plain_name = SECURE_NAME.trim_start_matches(SECURE_PREFIX);
    if is_secure(public_url) { SECURE_NAME } else { plain_name }
}

fn is_secure(public_url: &str) -> bool {
    public_url.starts_with("https://")
}

/// The value of `Set-Cookie` that keeps the secret of a session until the browser is closed.
pub(crate) fn set(public_url: &str, secret: &str) -> Option<HeaderValue> {
    header_value(&cookie(public_url, secret))
}

/// The value of `Set-Cookie` that removes the secret.
pub(crate) fn clear(public_url: &str) -> Option<HeaderValue> {
    header_value(&[&cookie(public_url, ""), "; Max-Age=0"].concat())
}

fn cookie(public_url: &str, secret: &str) -> String {
    let attributes = if is_secure(public_url) { "; Path=/; Secure" } else { "; Path=/console" };
    [name(public_url), "=", secret, attributes, "; HttpOnly; SameSite=Strict"].concat()
}

/// A header that debug output does not show.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The secret of the session in the cookies of a request. Two cookies of the name are none: a page of
/// another service on the same host may have set one of them.
pub(crate) fn secret<'h>(headers: &'h HeaderMap, public_url: &str) -> Option<&'h str> {
    let name = name(public_url);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    let mut secrets = pairs.filter(|(key, _)| *key == name).map(|(_, secret)| secret);
    let secret = secrets.next().filter(|it| (1..=MAX_SECRET_CHARS).contains(&it.len()))?;
    secrets.next().is_none().then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_bound_to_the_host_behind_tls_and_to_the_console_otherwise() {
        let text = |value: Option<HeaderValue>| value.unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            text(set("https://galley.test", "s")),
            "__Host-galley_console=s; Path=/; Secure; HttpOnly; SameSite=Strict"
        );
        assert_eq!(
            text(set("http://127.0.0.1:8080", "s")),
            "galley_console=s; Path=/console; HttpOnly; SameSite=Strict"
        );
        assert!(text(clear("http://127.0.0.1:8080")).ends_with("; Max-Age=0"));
    }

    #[test]
    fn only_one_cookie_with_the_exact_name_is_read() {
        let read = |cookies: &[&str], url| {
            let headers = cookies.iter().map(|it| (header::COOKIE, it.parse().unwrap()));
            let headers: HeaderMap = headers.collect();
            secret(&headers, url).map(str::to_owned)
        };
        let (http, https) = ("http://a.test", "https://a.test");
        assert_eq!(read(&["a=b; galley_console=s; c=d"], http).as_deref(), Some("s"));
        assert_eq!(read(&["a=b", "galley_console=s"], http).as_deref(), Some("s"));
        assert_eq!(read(&["__Host-galley_console=s"], https).as_deref(), Some("s"));
        assert_eq!(read(&["galley_console=s"], https), None, "set without TLS");
        assert_eq!(read(&["galley_console=s; galley_console=t"], http), None);
        assert_eq!(read(&["galley_console="], http), None);
        assert_eq!(read(&[], http), None);
    }
}
