//! The calls of the Graph API.

mod archive;
mod inspection;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::upstream::{
    CallFailure, CallKind, Created, GraphErrorBody, ProviderError, RemoteId, RemoteTemplate,
    SweepProgress, Usage, classify, sweep::SeenTemplates,
};
use url::Url;

use crate::{
    dialect::Dialect,
    response,
    secret::Secret,
    signature::app_secret_proof,
    transport::{Method, Request, Response, Transport, TransportError},
    upstream::{CheckReport, MediaFile, Page, PageQuery, TokenInfo, Upstream},
};

/// How long an exchange may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long the transfer of a sample may take.
const TRANSFER_DEADLINE: Duration = Duration::from_mins(5);

/// How long a sample behind a link may take. Operations wait meanwhile.
const FETCH_DEADLINE: Duration = Duration::from_mins(1);

/// The longest response. A page of 100 templates takes a few hundred kilobytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The most templates of a page of [`Upstream::find`].
const FIND_LIMIT: u32 = 100;

/// How many pages of [`Upstream::find`] may fail. It goes on with smaller ones.
const MAX_FIND_FAILURES: u32 = 3;

/// The fields of a template without its content.
const HEADER_FIELDS: &str = "id,name,language,status,category,previous_category,correct_category,quality_score,rejected_reason";

/// The fields of its content.
const CONTENT_FIELDS: &str = "parameter_format,components,sub_category,message_send_ttl_seconds,cta_url_link_tracking_opted_out,degrees_of_freedom_spec,library_template_name";

/// Fields that Meta added in 2026. The Graph API refuses a read of a field that it does not know.
const NEW_HEADER_FIELD: &str = "last_updated_time";
const NEW_CONTENT_FIELD: &str = "display_format";
const SOURCE_FIELD: &str = "source";

/// Which of the new fields a provider refuses, as bits: the source, which is the newest one, and the
/// others.
const WITHOUT_SOURCE: u8 = 1;
const WITHOUT_OTHERS: u8 = 2;
const WITHOUT_ALL: u8 = WITHOUT_SOURCE | WITHOUT_OTHERS;

/// The counts that come with the first page.
const SUMMARY: &str = "total_count,message_template_count,message_template_limit";

/// An account at a provider with Meta's API.
pub struct GraphUpstream<T> {
    transport: T,
    dialect: Dialect,
    token: Secret,
    deadline: Duration,
    /// The latest usage that a response showed.
    usage: Mutex<Option<Usage>>,
    /// The new fields that are not asked for, because the provider may refuse them.
    left_out: AtomicU8,
    /// Those of them that it has named.
    refused: AtomicU8,
}

impl<T: Transport> GraphUpstream<T> {
    /// The account of a dialect, with a token.
    pub fn new(transport: T, dialect: Dialect, token: Secret) -> Self {
        Self {
            transport,
            dialect,
            token,
            deadline: DEADLINE,
            usage: Mutex::default(),
            left_out: AtomicU8::new(0),
            refused: AtomicU8::new(0),
        }
    }

    /// The same without the new fields that the provider refused before ([`Self::refused_fields`]).
    #[must_use]
    pub fn without_refused_fields(self, refused: u8) -> Self {
        Self { left_out: AtomicU8::new(refused), refused: AtomicU8::new(refused), ..self }
    }

    /// The new fields that the provider refuses by their names, as bits.
    pub fn refused_fields(&self) -> u8 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The same with another deadline for calls.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// A request to a node or an edge.
    fn request(
        &self,
        kind: CallKind,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Request {
        Request {
            kind: Some(kind),
            method,
            url: self.dialect.url(path, query, &self.token),
            headers: vec![
                self.dialect.auth_header(&self.token, false),
                ("accept".to_owned(), Secret::new("application/json")),
            ],
            body: Vec::new(),
            deadline: self.deadline,
            send_by: None,
            max_response_bytes: MAX_RESPONSE_BYTES,
        }
    }

    /// A request with a JSON document.
    fn with_document(request: Request, document: &str) -> Request {
        let mut request = Request { body: document.as_bytes().to_vec(), ..request };
        let content_type = Secret::new("application/json");
        request.headers.push(("content-type".to_owned(), content_type));
        request
    }

    /// Makes an exchange. A response that is not one of success is a failure.
    async fn call(&self, kind: CallKind, request: Request) -> Result<Response, CallFailure> {
        let response = self.transport.exchange(request).await.map_err(not_exchanged)?;
        let usage = response.usage(self.dialect.waba());
        if usage.is_some() {
            *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
        }
        if response.is_success() { Ok(response) } else { Err(self.failure(kind, &response)) }
    }

    /// What a response without a result means: an error, or a body that was cut off.
    fn failure(&self, kind: CallKind, response: &Response) -> CallFailure {
        let secrets = self.secrets();
        let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        let error = GraphErrorBody::read(&response.body, &secrets);
        classify(kind, response.status, error, response.usage(self.dialect.waba()))
    }

    /// What no text of the provider may contain.
    fn secrets(&self) -> Vec<Secret> {
        let app_secret = self.dialect.app_secret.as_ref();
        let proof = |token: &Secret| app_secret.map(|it| app_secret_proof(it, token));
        let proof_of_app = self.dialect.app_token().and_then(|it| proof(&it));
        let proofs = proof(&self.token).into_iter().chain(proof_of_app).map(Secret::new);
        [&self.token].into_iter().chain(app_secret).cloned().chain(proofs).collect()
    }

    /// Reads something with fields; if the provider refuses a parameter, again without the new field
    /// that the error names, and from then on without it if that was the reason. An error that names
    /// none may be about something else: if it comes twice, the newest field is left out, then the others
    /// instead, then all. That takes at most four more calls.
    async fn read_fields(
        &self,
        kind: CallKind,
        path: &[&str],
        with_components: bool,
        query: &[(&str, &str)],
    ) -> Result<Response, CallFailure> {
        let mut left_out = self.left_out.load(Ordering::Relaxed);
        let mut refused = self.refused_fields();
        let mut is_repeated = false;
        loop {
            let fields = fields(with_components, left_out);
            let query = [&[("fields", &*fields)], query].concat();
            let result = self.call(kind, self.request(kind, Method::Get, path, &query)).await;
            let named = match &result {
                Err(CallFailure::Refused(error)) => named_fields(error),
                _ => None,
            };
            let fewer = (left_out + 1..=WITHOUT_ALL).find(|it| it & refused == refused);
            let (Some(named), Some(fewer)) = (named, fewer) else {
                if result.is_ok() {
                    self.left_out.store(left_out, Ordering::Relaxed);
                    self.refused.store(refused, Ordering::Relaxed);
                }
                return result;
            };
            if named & !refused != 0 {
                refused |= named;
                left_out = refused;
            } else if is_repeated {
                left_out = fewer;
            }
            is_repeated = true;
        }
    }

    /// Reads a page, optionally only with names that contain this one.
    async fn page_with_name(
        &self,
        query: &PageQuery,
        name: Option<&str>,
    ) -> Result<Page, CallFailure> {
        let limit = query.limit.to_string();
        let mut parameters = vec![("limit", limit.as_str())];
        match &query.after {
            Some(after) => parameters.push(("after", after)),
            None => parameters.push(("summary", SUMMARY)),
        }
        parameters.extend(name.map(|name| ("name", name)));
        let path = [self.dialect.waba(), "message_templates"];
        let kind = CallKind::Page;
        let response = self.read_fields(kind, &path, query.with_components, &parameters).await?;
        response::page(&response.body).ok_or_else(|| self.failure(kind, &response))
    }

    /// Makes a call that answers only whether it succeeded.
    async fn change(&self, kind: CallKind, request: Request) -> Result<(), CallFailure> {
        let response = self.call(kind, request).await?;
        let is_success = response::is_success(&response.body);
        if is_success { Ok(()) } else { Err(self.failure(kind, &response)) }
    }
}

#[async_trait]
impl<T: Transport> Upstream for GraphUpstream<T> {
    async fn check(&self) -> Result<CheckReport, CallFailure> {
        let (kind, waba) = (CallKind::Check, self.dialect.waba());
        let request = self.request(kind, Method::Get, &[waba], &[("fields", "id,name")]);
        let response = self.call(kind, request).await?;
        let has_id = response::member(&response.body, "id").is_some_and(|id| id == waba);
        if !has_id {
            return Err(self.failure(kind, &response));
        }
        let name = response::member(&response.body, "name");
        let name = name.map(|name| name.chars().take(300).collect());
        let query = PageQuery { after: None, limit: 1, with_components: false };
        let page = self.page(query).await?;
        let (templates, template_limit) = (page.total, page.limit);
        Ok(CheckReport { name, templates, template_limit, usage: self.usage() })
    }

    async fn token_info(&self) -> Result<TokenInfo, CallFailure> {
        self.inspect_token().await
    }

    async fn page(&self, query: PageQuery) -> Result<Page, CallFailure> {
        self.page_with_name(&query, None).await
    }

    async fn read(&self, id: &RemoteId) -> Result<RemoteTemplate, CallFailure> {
        let kind = CallKind::Read;
        let response = self.read_fields(kind, &[id.as_str()], true, &[]).await?;
        let text = std::str::from_utf8(&response.body).unwrap_or_default();
        let template = RemoteTemplate::parse(text).map_err(|_| self.failure(kind, &response))?;
        if template.id == *id { Ok(template) } else { Err(CallFailure::OtherTemplate) }
    }

    async fn find(
        &self,
        name: &str,
        language: &str,
    ) -> Result<Option<RemoteTemplate>, CallFailure> {
        let mut query = PageQuery { after: None, limit: FIND_LIMIT, with_components: true };
        let (mut other, mut failures) = (None, 0);
        let (mut seen, mut progress) = (SeenTemplates::default(), SweepProgress::default());
        let is_wanted = |it: &RemoteTemplate| it.name == name && it.language == language;
        while !progress.is_endless() {
            let page = match self.page_with_name(&query, Some(name)).await {
                Ok(page) => page,
                // The page may be too large for the provider.
                Err(CallFailure::TooMuchData(_) | CallFailure::Unknown(_))
                    if failures < MAX_FIND_FAILURES =>
                {
                    failures += 1;
                    query.limit = (query.limit / 2).max(1);
                    query.with_components = false;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            progress = progress.after_page(seen.count(&page.templates));
            for found in page.templates.into_iter().filter(is_wanted) {
                if found.status.is_deleted() || found.is_generated() {
                    if other.is_none() || found.is_generated() {
                        other = Some(found);
                    }
                } else if query.with_components {
                    return Ok(Some(found));
                } else {
                    let read = self.read(&found.id).await?;
                    let is_same = is_wanted(&read);
                    return if is_same { Ok(Some(read)) } else { Err(CallFailure::OtherTemplate) };
                }
            }
            let Some(after) = page.after else { return Ok(other) };
            // So many templates do not have the same name: the provider ignores the filter.
            query = PageQuery { after: Some(after), with_components: false, ..query };
        }
        Err(CallFailure::Unknown("the list of templates does not end".to_owned()))
    }

    async fn create(&self, document: &str) -> Result<Created, CallFailure> {
        let kind = CallKind::Create;
        let path = [self.dialect.waba(), "message_templates"];
        let request = Self::with_document(self.request(kind, Method::Post, &path, &[]), document);
        let response = self.call(kind, request).await?;
        let text = std::str::from_utf8(&response.body).unwrap_or_default();
        Created::parse(text).ok_or_else(|| self.failure(kind, &response))
    }

    async fn edit(&self, id: &RemoteId, document: &str) -> Result<(), CallFailure> {
        let kind = CallKind::Edit;
        let request = self.request(kind, Method::Post, &[id.as_str()], &[]);
        self.change(kind, Self::with_document(request, document)).await
    }

    async fn delete(&self, name: &str, id: Option<&RemoteId>) -> Result<(), CallFailure> {
        let kind = CallKind::Delete;
        let path = [self.dialect.waba(), "message_templates"];
        let id = id.map(|id| ("hsm_id", id.as_str()));
        let query: Vec<(&str, &str)> = [("name", name)].into_iter().chain(id).collect();
        self.change(kind, self.request(kind, Method::Delete, &path, &query)).await
    }

    async fn archive(&self, id: &RemoteId) -> Result<(), CallFailure> {
        self.change_archive(CallKind::Archive, id).await
    }

    async fn unarchive(&self, id: &RemoteId) -> Result<(), CallFailure> {
        self.change_archive(CallKind::Unarchive, id).await
    }

    async fn upload(&self, app: &str, file: MediaFile) -> Result<String, CallFailure> {
        let kind = CallKind::Upload;
        let length = file.bytes.len().to_string();
        let query = [
            ("file_name", file.name.as_str()),
            ("file_length", &length),
            ("file_type", &file.media_type),
        ];
        let request = self.request(kind, Method::Post, &[app, "uploads"], &query);
        let response = self.call(kind, request).await?;
        let session = response::member(&response.body, "id");
        let session = session.filter(|it| it.starts_with("upload:"));
        let session = session.ok_or_else(|| self.failure(kind, &response))?;
        // The id of a session may carry a signature as a query.
        let (node, signature) = session.split_once('?').unwrap_or((&session, ""));
        let signature: Vec<(String, String)> =
            url::form_urlencoded::parse(signature.as_bytes()).into_owned().collect();
        let signature: Vec<(&str, &str)> = signature.iter().map(|(k, v)| (&**k, &**v)).collect();
        let mut request = self.request(kind, Method::Post, &[node], &signature);
        request.headers[0] = self.dialect.auth_header(&self.token, true);
        for (name, value) in [("file_offset", "0"), ("content-type", "application/octet-stream")] {
            request.headers.push((name.to_owned(), Secret::new(value)));
        }
        request.body = file.bytes;
        request.deadline = self.deadline.max(TRANSFER_DEADLINE);
        let response = self.call(kind, request).await?;
        let handle = response::member(&response.body, "h");
        handle.ok_or_else(|| self.failure(kind, &response))
    }

    async fn fetch(&self, url: &str, max_bytes: usize) -> Result<Vec<u8>, CallFailure> {
        let url = Url::parse(url).ok().filter(|url| ["https", "http"].contains(&url.scheme()));
        let Some(url) = url else {
            return Err(unavailable("the link to the sample is not a URL of HTTP"));
        };
        let request = Request {
            kind: None,
            method: Method::Get,
            url,
            headers: Vec::new(),
            body: Vec::new(),
            deadline: self.deadline.max(FETCH_DEADLINE),
            send_by: None,
            max_response_bytes: max_bytes,
        };
        let response = self.transport.exchange(request).await.map_err(not_exchanged)?;
        match response.status {
            200 => Ok(response.body),
            status @ (401 | 403 | 404 | 410) => {
                Err(unavailable(&format!("the link to the sample has the status {status}")))
            }
            status => {
                let text = format!("the link to the sample has the status {status}");
                Err(CallFailure::Unknown(text))
            }
        }
    }

    fn usage(&self) -> Option<Usage> {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> std::fmt::Debug for GraphUpstream<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("GraphUpstream").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// The fields of a template, without the new ones that the provider refuses.
fn fields(with_components: bool, left_out: u8) -> String {
    let has_others = left_out & WITHOUT_OTHERS == 0;
    let mut fields = vec![HEADER_FIELDS];
    fields.extend(has_others.then_some(NEW_HEADER_FIELD));
    fields.extend((left_out & WITHOUT_SOURCE == 0).then_some(SOURCE_FIELD));
    if with_components {
        fields.push(CONTENT_FIELDS);
        fields.extend(has_others.then_some(NEW_CONTENT_FIELD));
    }
    fields.join(",")
}

/// The new fields that an error names, as bits; `None` if it is not about fields. Texts of errors are
/// localised, but names of fields are not.
fn named_fields(error: &ProviderError) -> Option<u8> {
    let is_named = |field: &str| {
        let mut words = error.message.split(|it: char| !it.is_alphanumeric() && it != '_');
        words.any(|word| word == field)
    };
    let has_others = is_named(NEW_HEADER_FIELD) || is_named(NEW_CONTENT_FIELD);
    let fields = match (has_others, is_named(SOURCE_FIELD)) {
        (true, _) => WITHOUT_OTHERS,
        (false, true) => WITHOUT_SOURCE,
        (false, false) => 0,
    };
    (error.code == 100 && error.subcode.is_none()).then_some(fields)
}

/// The failure of an exchange without a response.
fn not_exchanged(error: TransportError) -> CallFailure {
    match error {
        TransportError::NotSent(text) => CallFailure::NotSent(text),
        TransportError::Unknown(text) => CallFailure::Unknown(text),
        TransportError::Resting(rest) => CallFailure::Throttled { rest },
    }
}

/// A sample that cannot be fetched any more.
fn unavailable(message: &str) -> CallFailure {
    let message = message.to_owned();
    CallFailure::Gone(ProviderError { code: 0, subcode: None, title: None, message })
}

#[cfg(test)]
mod tests;
