//! HTTP exchanges with providers, over the guarded client of webhooks.

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::id::AccountId;
use galley_upstream::{Method, Request, Response, Transport, TransportError};
use hyper::header::{HeaderName, HeaderValue};

use crate::delivery::{ExchangeFailure, ExchangeRequest, HttpWebhookClient};

/// Makes the transport of an account.
pub type Transports = Arc<dyn Fn(AccountId) -> Arc<dyn Transport> + Send + Sync>;

/// The message of the guard about an address of a provider: the guard names the setting that allows
/// webhooks to private networks, but another one allows providers there.
pub fn name_provider_setting(message: &str) -> String {
    message.replace("GALLEY_WEBHOOKS_ALLOW_PRIVATE", "GALLEY_UPSTREAM_ALLOW_PRIVATE")
}

/// The transport of an account: it connects to checked addresses only, and follows no redirects.
pub struct HttpTransport {
    client: Arc<HttpWebhookClient>,
    account: AccountId,
}

impl HttpTransport {
    /// Makes the transports of accounts with a client.
    pub fn factory(client: Arc<HttpWebhookClient>) -> Transports {
        Arc::new(move |account| {
            Arc::new(Self { client: Arc::clone(&client), account }) as Arc<dyn Transport>
        })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let method = match request.method {
            Method::Get => hyper::Method::GET,
            Method::Post => hyper::Method::POST,
            Method::Delete => hyper::Method::DELETE,
        };
        let headers: Option<Vec<_>> = request
            .headers
            .iter()
            .map(|(name, value)| {
                let mut value = HeaderValue::from_str(value.expose()).ok()?;
                value.set_sensitive(true);
                Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
            })
            .collect();
        let not_a_header = || "The token contains characters that no header can have.".to_owned();
        let headers = headers.ok_or_else(|| TransportError::NotSent(not_a_header()))?;
        let exchange = ExchangeRequest {
            account: self.account,
            method,
            url: request.url.into(),
            headers,
            body: request.body.into(),
            timeout: request.deadline,
            send_by: request.send_by.map(Into::into),
            max_body_bytes: request.max_response_bytes,
        };
        let response = self.client.exchange(exchange).await.map_err(|failure| match failure {
            ExchangeFailure::NotSent(failure) => {
                TransportError::NotSent(name_provider_setting(&failure.to_string()))
            }
            ExchangeFailure::Unknown(failure) => TransportError::Unknown(failure.to_string()),
        })?;
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers.iter();
        Ok(Response {
            status: response.status,
            headers: headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
            body: response.body.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::delivery::{SsrfGuard, SsrfPolicy, SystemResolver};

    use super::*;

    #[test]
    fn a_refused_address_of_a_provider_names_the_setting_that_allows_it() {
        let guard = SsrfGuard::new(SsrfPolicy::default(), Arc::new(SystemResolver::new()));
        for url in ["http://graph.example.com", "https://10.0.0.1", "https://localhost"] {
            let refused = guard.check_url(url).unwrap_err();
            let message = name_provider_setting(&refused.to_string());
            assert!(message.contains("GALLEY_UPSTREAM_ALLOW_PRIVATE=true"), "{message}");
            assert!(!message.contains("WEBHOOKS") && !message.contains("receiver"), "{message}");
        }
    }
}
