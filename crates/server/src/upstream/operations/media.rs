//! Uploads the samples of a document from the bytes that Galley keeps. The handles of a provider
//! expire, so that each call uploads its samples again.

use std::collections::BTreeSet;

use galley_domain::{
    template::sample,
    upstream::{CallFailure, CallKind, ProviderError, samples::linked_samples},
};
use galley_upstream::{MediaFile, Upstream as _};
use serde_json::Value;

use crate::upstream::session::{Session, SyncError};

impl Session {
    /// The document of a call of this kind with the provider's handles instead of Galley's. A link is no
    /// handle: the provider would refuse it.
    pub(super) async fn upload_samples(
        &self,
        document: String,
        kind: CallKind,
    ) -> Result<Result<String, CallFailure>, SyncError> {
        if !linked_samples(&document).is_empty() {
            return Ok(Err(linked()));
        }
        let names = sample_names(&document);
        if names.is_empty() {
            return Ok(Ok(document));
        }
        let Some(app) = &self.connection.app_id else { return Ok(Err(no_app())) };
        if let Err(failure) = self.room_for(kind, upload_calls(&document) + 1).await? {
            return Ok(Err(failure));
        }
        let mut sent = document.clone();
        for name in names {
            let Some(file) = self.kept_file(name).await? else { return Ok(Err(no_file())) };
            let handle = match self.while_leased(self.upstream.upload(app, file)).await? {
                Ok(handle) => handle,
                Err(failure) => return Ok(Err(not_uploaded(failure))),
            };
            let own = Value::from(sample::handle(name)).to_string();
            sent = sent.replace(&own, &Value::from(handle).to_string());
        }
        Ok(Ok(sent))
    }

    /// A file of the account with its bytes.
    async fn kept_file(&self, name: &str) -> Result<Option<MediaFile>, SyncError> {
        let store = &self.context.store;
        let media = store.sample(self.connection.account, name, self.now()).await?;
        let Some(media) = media else { return Ok(None) };
        let length = usize::try_from(media.length).unwrap_or_default();
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let chunk = store.media_chunk(name, bytes.len() as u64).await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            bytes.extend(chunk);
        }
        Ok(Some(MediaFile { name: media.file_name, media_type: media.file_type, bytes }))
    }
}

/// The calls that upload the samples of a content: two for each.
pub(super) fn upload_calls(content: &str) -> u32 {
    u32::try_from(2 * sample_names(content).len()).unwrap_or(u32::MAX)
}

fn sample_names(content: &str) -> BTreeSet<&str> {
    sample::referenced_names(content).collect()
}

/// The failure of an upload as that of the call, which is not made.
fn not_uploaded(failure: CallFailure) -> CallFailure {
    match failure {
        CallFailure::Gone(error) | CallFailure::TooMuchData(error) => CallFailure::Refused(error),
        failure => failure,
    }
}

fn linked() -> CallFailure {
    refused(
        "A media sample of the template is a link of the provider, which expires, and not a file of the account. Upload the sample, and edit the template with its handle.",
    )
}

fn no_app() -> CallFailure {
    refused(
        "The template has a media sample, and the connection names no app to upload it with. Connect the account again with `galley upstream connect --app-id`, then retry.",
    )
}

fn no_file() -> CallFailure {
    refused(
        "A media sample of the template is no longer stored. Upload it again, and edit the template.",
    )
}

fn refused(message: &str) -> CallFailure {
    let title = Some("The sample cannot be uploaded".to_owned());
    let message = message.to_owned();
    CallFailure::Refused(ProviderError { code: 100, subcode: None, title, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_whose_sample_cannot_be_uploaded_is_refused_with_the_remedy() {
        let CallFailure::Refused(error) = no_app() else { panic!("it can be retried only") };
        let gone = not_uploaded(CallFailure::Gone(error.clone()));
        assert_eq!(gone, CallFailure::Refused(error.clone()), "it is not the template");
        assert!(error.message.contains("--app-id"));
    }
}
