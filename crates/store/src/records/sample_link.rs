//! Samples that a provider shows as links, and the uploads that keep their files.

use std::collections::HashMap;

use galley_domain::{
    id::AccountId,
    template::sample,
    upstream::{
        RemoteId,
        content::document_key,
        samples::{linked_samples, replace_handles},
    },
};
use sha2::{Digest as _, Sha256};

/// How many bytes of a hash are the id of an upload.
const UPLOAD_ID_BYTES: usize = 16;

/// A sample that a provider's document shows as a link, which expires, and the upload that keeps its
/// file for the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleLink {
    /// The link.
    pub link: String,
    /// The format of the header, in upper case.
    pub format: String,
    /// The id of the upload. Every process computes the same one for the same sample, so that a file
    /// that was fetched is found again by imports and by people who accept a content.
    pub upload: String,
}

impl SampleLink {
    /// The links in the document of a template at the provider.
    pub fn all(account: AccountId, id: &RemoteId, document: &str) -> Vec<Self> {
        let links = linked_samples(document);
        let key = if links.is_empty() { None } else { document_key(document) };
        let Some(key) = key else { return Vec::new() };
        let sample = |pointer: &str, link: &str| {
            // The query of a link is its signature, which is another one in each response.
            let address = link.split_once('?').map_or(link, |(address, _)| address);
            let mut hash = Sha256::new().chain_update(account.get().to_be_bytes());
            for part in [id.as_str().as_bytes(), &key, pointer.as_bytes(), address.as_bytes()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            let mut id = [0; UPLOAD_ID_BYTES];
            id.copy_from_slice(&hash.finalize()[..UPLOAD_ID_BYTES]);
            format!("{:032x}", u128::from_be_bytes(id))
        };
        links
            .into_iter()
            .map(|it| Self {
                upload: sample(&it.pointer, &it.handle),
                link: it.handle,
                format: it.format,
            })
            .collect()
    }
}

/// The files of an account that keep samples of a provider: the ids of their uploads, and their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptSamples(pub(crate) HashMap<String, String>);

impl KeptSamples {
    /// A content with handles of the account in place of the links whose files are kept.
    pub(crate) fn in_content(&self, content: String, links: &[SampleLink]) -> String {
        if self.0.is_empty() {
            return content;
        }
        replace_handles(&content, |handle| {
            let link = links.iter().find(|it| it.link == handle)?;
            self.0.get(&link.upload).map(|name| sample::handle(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str, link: &str) -> String {
        format!(
            r#"{{"components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":
            ["{link}"]}}}},{{"type":"BODY","text":"{text}"}}]}}"#
        )
    }

    fn upload(account: u64, id: &str, document: &str) -> String {
        let (account, id) = (AccountId::new(account).unwrap(), RemoteId::parse(id).unwrap());
        let [sample] = &SampleLink::all(account, &id, document)[..] else { panic!("{document}") };
        sample.upload.clone()
    }

    #[test]
    fn the_upload_of_a_sample_is_the_same_whatever_the_signature_of_its_link() {
        let shown = document("Hi", "https://cdn.example/a.png?oe=1");
        let expected = upload(1, "5", &shown);
        assert_eq!(upload(1, "5", &document("Hi", "https://cdn.example/a.png?oe=2")), expected);
        assert_eq!(expected.len(), 2 * UPLOAD_ID_BYTES);
        for other in [
            upload(2, "5", &shown),
            upload(1, "6", &shown),
            upload(1, "5", &document("Hello", "https://cdn.example/a.png?oe=1")),
            upload(1, "5", &document("Hi", "https://cdn.example/b.png?oe=1")),
        ] {
            assert_ne!(other, expected);
        }
        let id = RemoteId::parse("5").unwrap();
        let handle = document("Hi", "4::aW1n");
        assert_eq!(SampleLink::all(AccountId::new(1).unwrap(), &id, &handle), []);
    }
}
