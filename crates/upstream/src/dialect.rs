//! Where a provider is and how a caller shows who it is.

use galley_domain::upstream::RemoteId;
use url::Url;

use crate::{secret::Secret, signature::app_secret_proof};

/// How the token is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthHeader {
    /// As `Authorization: Bearer …`: Meta and another Galley.
    Bearer,
    /// As the value of a header with this name, in lower case.
    Named(String),
}

/// Where Meta's Graph API is.
const META_HOST: &str = "graph.facebook.com";

/// Where Meta's archive is.
const META_ARCHIVE_HOST: &str = "api.facebook.com";

/// The address of an account at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    base_url: Url,
    waba: RemoteId,
    /// How the token is sent.
    pub auth: AuthHeader,
    /// The app secret; with it, each call carries `appsecret_proof`.
    pub app_secret: Option<Secret>,
    /// The app that the token belongs to.
    pub app_id: Option<String>,
}

/// Why an address is not one of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// The base URL is not a URL of HTTP.
    #[error("the base URL must begin with `https://` or `http://` and name a host")]
    NotHttp,
    /// The base URL contains more than an address.
    #[error("the base URL must not contain a user name, a password, a query or a fragment")]
    NotABase,
    /// The id of the account cannot be one.
    #[error("the id of the account must be 1 to 64 letters, digits and `_.:-`")]
    NotAnAccount,
}

impl Dialect {
    /// The account `waba` at a base URL with a version, such as `https://graph.facebook.com/v23.0`.
    pub fn new(base_url: &str, waba: &str) -> Result<Self, DialectError> {
        let mut base_url = Url::parse(base_url).map_err(|_| DialectError::NotHttp)?;
        if !["https", "http"].contains(&base_url.scheme()) || base_url.host().is_none() {
            return Err(DialectError::NotHttp);
        }
        let has_user = !base_url.username().is_empty() || base_url.password().is_some();
        if has_user || base_url.query().is_some() || base_url.fragment().is_some() {
            return Err(DialectError::NotABase);
        }
        if let Ok(mut segments) = base_url.path_segments_mut() {
            segments.pop_if_empty();
        }
        let waba = RemoteId::parse(waba).ok_or(DialectError::NotAnAccount)?;
        Ok(Self { base_url, waba, auth: AuthHeader::Bearer, app_secret: None, app_id: None })
    }

    /// The base URL, without a slash at its end.
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// The id of the account at the provider.
    pub fn waba(&self) -> &str {
        self.waba.as_str()
    }

    /// The URL of a node or an edge, with parameters and the proof of the app secret.
    pub(crate) fn url(&self, path: &[&str], query: &[(&str, &str)], token: &Secret) -> Url {
        let mut url = self.base_url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        let proof = self.app_secret.as_ref().map(|it| app_secret_proof(it, token));
        let proof = proof.as_deref().map(|it| ("appsecret_proof", it));
        let mut pairs = query.iter().copied().chain(proof).peekable();
        if pairs.peek().is_some() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        url
    }

    /// The URL of a call about the archive: without a version, and at Meta on another host.
    pub(crate) fn archive_url(&self, edge: &str, token: &Secret) -> Url {
        let path = [self.waba.as_str(), "message_templates", edge];
        let mut url = self.url(&[], &[], token);
        if let Ok(mut segments) = url.path_segments_mut() {
            if self.has_version() {
                segments.pop();
            }
            segments.extend(path);
        }
        if url.host_str() == Some(META_HOST) {
            // Both are names of hosts.
            let _ = url.set_host(Some(META_ARCHIVE_HOST));
        }
        url
    }

    /// Whether the path of the base URL ends with a version, such as `v23.0`.
    pub fn has_version(&self) -> bool {
        let last = self.base_url.path_segments().and_then(|mut it| it.next_back());
        let number = last.and_then(|last| last.strip_prefix('v')).unwrap_or_default();
        number.starts_with(|it: char| it.is_ascii_digit())
            && number.chars().all(|it| it.is_ascii_digit() || it == '.')
    }

    /// The token of the app itself, if its id and its secret are known.
    pub(crate) fn app_token(&self) -> Option<Secret> {
        let (id, secret) = (self.app_id.as_ref()?, self.app_secret.as_ref()?);
        let is_bearer = self.auth == AuthHeader::Bearer;
        is_bearer.then(|| Secret::new(format!("{id}|{}", secret.expose())))
    }

    /// The header that contains the token. Meta documents another scheme for the bytes of uploads.
    pub(crate) fn auth_header(&self, token: &Secret, is_upload: bool) -> (String, Secret) {
        match &self.auth {
            AuthHeader::Bearer => {
                let scheme = if is_upload { "OAuth" } else { "Bearer" };
                let value = format!("{scheme} {}", token.expose());
                ("authorization".to_owned(), Secret::new(value))
            }
            AuthHeader::Named(name) => (name.clone(), token.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_an_address_and_nothing_else() {
        for base in ["https://graph.facebook.com/v23.0", "http://127.0.0.1:8080/v23.0/"] {
            let dialect = Dialect::new(base, "17").unwrap();
            let url = dialect.url(&["17", "message_templates"], &[], &Secret::new("t"));
            assert_eq!(
                url.as_str(),
                format!("{}/17/message_templates", base.trim_end_matches('/'))
            );
        }
        for (base, expected) in [
            ("", DialectError::NotHttp),
            ("graph.facebook.com/v23.0", DialectError::NotHttp),
            ("ftp://x/v23.0", DialectError::NotHttp),
            ("file:///etc", DialectError::NotHttp),
            ("https://user@x/v23.0", DialectError::NotABase),
            ("https://:secret@x/v23.0", DialectError::NotABase),
            ("https://x/v23.0?access_token=7", DialectError::NotABase),
            ("https://x/v23.0#a", DialectError::NotABase),
        ] {
            assert_eq!(Dialect::new(base, "17"), Err(expected), "{base}");
        }
        for waba in ["", "..", "1/2", "1?x"] {
            assert_eq!(Dialect::new("https://x", waba), Err(DialectError::NotAnAccount), "{waba}");
        }
    }

    #[test]
    fn the_archive_has_no_version_and_at_meta_another_host() {
        for (base, expected) in [
            ("https://graph.facebook.com/v23.0", "https://api.facebook.com"),
            ("https://graph.facebook.com", "https://api.facebook.com"),
            ("http://127.0.0.1:8080/v23.0/", "http://127.0.0.1:8080"),
            ("https://x.example/whatsapp/v1", "https://x.example/whatsapp"),
            ("https://x.example/videos", "https://x.example/videos"),
            ("https://graph.facebook.com.x.example/v23.0", "https://graph.facebook.com.x.example"),
        ] {
            let mut dialect = Dialect::new(base, "17").unwrap();
            let url = dialect.archive_url("archive", &Secret::new("t"));
            assert_eq!(url.as_str(), format!("{expected}/17/message_templates/archive"));
            dialect.app_secret = Some(Secret::new("s"));
            let url = dialect.archive_url("unarchive", &Secret::new("t"));
            assert!(url.path().ends_with("/17/message_templates/unarchive"), "{url}");
            assert!(url.query().unwrap().starts_with("appsecret_proof="), "{url}");
        }
    }
}
