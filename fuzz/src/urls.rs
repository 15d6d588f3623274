//! Fuzz target for the URLs of webhook endpoints.

use std::{net::Ipv4Addr, sync::LazyLock};

use galley_server::delivery::SsrfGuard;

use crate::setup;

/// Maximum length of a URL; a parsed URL can be longer than its text.
const MAX_URL_CHARS: usize = 2_000;

/// Fuzzes URLs of endpoints. Checks that an accepted URL leads to where it seems to lead, and that it
/// is accepted again as it was parsed.
pub fn webhook_url(input: &[u8]) {
    static GUARDS: LazyLock<[(bool, SsrfGuard); 2]> =
        LazyLock::new(|| [false, true].map(|private| (private, setup::webhooks(private).guard)));
    let Ok(text) = std::str::from_utf8(input) else { return };
    for (allow_private, guard) in &*GUARDS {
        let Ok(url) = guard.check_url(text) else { continue };
        let host = url.host_str().expect("an accepted URL has a host");
        let ip = host.parse::<Ipv4Addr>().ok();
        let is_ip = host.starts_with('[') || ip.is_some();
        assert!(*allow_private || !is_ip, "{text}: accepted with an IP address");
        assert!(*allow_private || url.scheme() == "https", "{text}: accepted without TLS");
        assert!(matches!(url.scheme(), "https" | "http"), "{text}: accepted with another scheme");
        assert!(!ip.is_some_and(|ip| ip.is_link_local()), "{text}: accepted with a link-local IP");
        assert!(url.username().is_empty() && url.password().is_none(), "{text}: has a user");
        assert!(url.fragment().is_none() && url.port() != Some(0), "{text}: has a fragment");
        if url.as_str().chars().count() <= MAX_URL_CHARS {
            assert_eq!(guard.check_url(url.as_str()).as_ref(), Ok(&url), "{text}: parses equal");
        }
    }
}
