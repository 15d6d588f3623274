//! The calls that Galley makes at a provider.

use async_trait::async_trait;
use galley_domain::upstream::{CallFailure, Created, RemoteId, RemoteTemplate, Usage};
use jiff::Timestamp;

/// A page to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// The cursor of the page before; `None` for the first page.
    pub after: Option<String>,
    /// The most templates of the page.
    pub limit: u32,
    /// Whether templates contain their components.
    pub with_components: bool,
}

/// A page of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The templates that can be read.
    pub templates: Vec<RemoteTemplate>,
    /// The number of other templates on the page.
    pub unreadable: u32,
    /// The cursor of the next page; `None` on the last page.
    pub after: Option<String>,
    /// The number of templates of the account; on the first page, if the provider counts them.
    pub total: Option<u32>,
    /// The most templates that the account can have; as `total`.
    pub limit: Option<u32>,
}

/// What a check of a connection found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The name of the account at the provider.
    pub name: Option<String>,
    /// The number of its templates.
    pub templates: Option<u32>,
    /// The most templates that it can have.
    pub template_limit: Option<u32>,
    /// The used part of the budget of calls.
    pub usage: Option<Usage>,
}

/// What a provider tells about a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Whether the provider accepts it.
    pub is_valid: bool,
    /// When it expires; `None` if it does not.
    pub expires_at: Option<Timestamp>,
    /// The permissions that it has.
    pub scopes: Vec<String>,
}

/// A sample to upload.
#[derive(Clone, PartialEq, Eq)]
pub struct MediaFile {
    /// The name of the file.
    pub name: String,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for MediaFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "MediaFile({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

/// An account at a provider.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Reads the account and counts its templates: two exchanges.
    async fn check(&self) -> Result<CheckReport, CallFailure>;

    /// Asks about the token. Not every provider tells; then this fails.
    async fn token_info(&self) -> Result<TokenInfo, CallFailure>;

    /// Reads a page of the list.
    async fn page(&self, query: PageQuery) -> Result<Page, CallFailure>;

    /// Reads a template with its components.
    async fn read(&self, id: &RemoteId) -> Result<RemoteTemplate, CallFailure>;

    /// Finds a template with its components by name and language. Providers may ignore the filter, so
    /// it may walk over the whole list. One that is deleted or generated is found only if there is no
    /// other.
    async fn find(&self, name: &str, language: &str)
    -> Result<Option<RemoteTemplate>, CallFailure>;

    /// Creates a template from its document.
    async fn create(&self, document: &str) -> Result<Created, CallFailure>;

    /// Replaces the content of a template.
    async fn edit(&self, id: &RemoteId, document: &str) -> Result<(), CallFailure>;

    /// Deletes a template; without an id, all languages of the name.
    async fn delete(&self, name: &str, id: Option<&RemoteId>) -> Result<(), CallFailure>;

    /// Puts a template aside.
    async fn archive(&self, id: &RemoteId) -> Result<(), CallFailure>;

    /// Takes a template back from the archive.
    async fn unarchive(&self, id: &RemoteId) -> Result<(), CallFailure>;

    /// Uploads a sample for the app with this id and returns its handle: two exchanges. It changes no
    /// template, so that even an unknown outcome can be repeated.
    async fn upload(&self, app: &str, file: MediaFile) -> Result<String, CallFailure>;

    /// Fetches the sample behind a link that the provider shows, without credentials.
    async fn fetch(&self, url: &str, max_bytes: usize) -> Result<Vec<u8>, CallFailure>;

    /// The used part of the budget of calls, as the latest response showed it.
    fn usage(&self) -> Option<Usage>;
}
