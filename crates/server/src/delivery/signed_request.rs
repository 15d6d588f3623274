//! The signed request that carries a message to an endpoint, in the format of the endpoint.

use galley_domain::webhook::Format;
use galley_store::{StoredSecret, Webhook};
use hyper::{
    body::Bytes,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use jiff::Timestamp;

use super::{
    context::WebhookContext,
    http_client::PostRequest,
    keyring::DecryptError,
    meta_signature::{META_SIGNATURE_HEADER, sign_meta},
    signature::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER, sign},
};

impl WebhookContext {
    /// Signs a body for an endpoint. `id` identifies the message for the receiver.
    pub(crate) fn signed_request(
        &self,
        webhook: &Webhook,
        id: String,
        body: String,
        now: Timestamp,
    ) -> Result<PostRequest, DecryptError> {
        let signature_headers = match webhook.format {
            Format::Galley => {
                let secrets = self.decrypt_secrets(webhook, now)?;
                let signature = sign(&secrets, &id, now, body.as_bytes());
                let timestamp = (TIMESTAMP_HEADER, now.as_second().to_string());
                vec![timestamp, (SIGNATURE_HEADER, signature)]
            }
            Format::Whatsapp => {
                let secret = self.decrypt(webhook, &webhook.secret)?;
                vec![(META_SIGNATURE_HEADER, sign_meta(&secret, body.as_bytes()))]
            }
        };
        let headers = signature_headers.into_iter().chain([(ID_HEADER, id)]);
        let headers = headers.filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
        });
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(PostRequest {
            account: webhook.account,
            url: webhook.url.clone(),
            headers: headers.chain([json]).collect(),
            body: Bytes::from(body),
        })
    }

    /// Decrypts all secrets that currently sign: the current one, and during the overlap the former
    /// one.
    fn decrypt_secrets(
        &self,
        webhook: &Webhook,
        now: Timestamp,
    ) -> Result<Vec<Secret>, DecryptError> {
        let mut secrets = vec![self.decrypt(webhook, &webhook.secret)?];
        if let Some((former, until)) = &webhook.former_secret
            && *until > now
        {
            // If the former secret cannot be decrypted, sign with the current one alone.
            secrets.extend(self.decrypt(webhook, former).ok());
        }
        Ok(secrets)
    }

    fn decrypt(&self, webhook: &Webhook, stored: &StoredSecret) -> Result<Secret, DecryptError> {
        self.keyring.decrypt(webhook.account.get(), stored)
    }
}
