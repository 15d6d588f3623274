//! Resumable uploads of samples: a client first declares a file, then sends it in one or more
//! requests.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{FromRequest as _, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use galley_domain::{document::Json, emulator::faults::Call, template::sample};
use galley_store::{
    AppendOutcome, BeginUploadOutcome, MAX_UPLOAD_BYTES, NewUpload, UNUSED_MEDIA_DAYS,
    UPLOAD_CHUNK_BYTES,
};
use http_body_util::BodyExt as _;
use tokio::time::Sleep;

use super::{
    body::GraphBody,
    caller::{Caller, unknown},
    media,
    parameters::{Query, invalid_parameter},
    success,
};
use crate::{
    api::{
        auth::{Read, Write},
        emulated_time, json,
        problem::{Problem, ProblemKind},
        request_context::RequestContext,
        revocation::{UsedCredentials, revoked},
        throttling::{self, REQUEST_BYTES},
    },
    app::App,
    json_writer::ObjectWriter,
};

/// The prefix of an upload's id.
const PREFIX: &str = "upload:";

/// The supported types of samples.
pub(crate) const SAMPLE_TYPES: [&str; 6] =
    ["application/pdf", "image/jpeg", "image/jpg", "image/png", "video/mp4", "video/3gpp"];

/// Maximum length of a file name; longer names are truncated.
const MAX_NAME_BYTES: usize = 128;

/// Maximum duration of one transfer, as long as bytes keep arriving. It suffices for the largest
/// file at 14 KB per second.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_mins(20);

/// The id of an upload, if the node is one.
pub(super) fn upload_id(node: &str) -> Option<&str> {
    node.strip_prefix(PREFIX)
}

/// Declares a file. In the Graph API the node is the id of an app; Galley ignores it.
pub(super) async fn begin(
    State(app): State<App>,
    caller: Caller<Write>,
    query: Query,
    request: Request,
) -> Result<Response, Problem> {
    let declared = FileDeclaration::read(&app, &query, request).await?;
    caller.strike(&app, Call::Upload, None).await?;
    let (id, handle) = (media::random_name(&app), media::random_name(&app));
    let new = NewUpload {
        account: caller.account.id,
        id: id.clone(),
        handle,
        file_name: declared.name,
        file_type: declared.file_type,
        length: declared.length,
        quota: app.limits().media_bytes,
        at: app.clock().now(),
        emulated_at: emulated_time::of_account(&app, &caller.account).await?,
    };
    match app.store().begin_upload(new).await? {
        BeginUploadOutcome::Begun => {
            Ok(json(StatusCode::OK, format!(r#"{{"id":"{PREFIX}{id}"}}"#)))
        }
        BeginUploadOutcome::InvalidLength => {
            let problem = format!("must be a number of bytes from 1 to {MAX_UPLOAD_BYTES}");
            Err(invalid_parameter("file_length", &problem))
        }
        BeginUploadOutcome::TooMany => Err(Problem::of(ProblemKind::LimitReached).detail(
            "The account has too many incomplete uploads. Complete or delete them, or wait 24 hours.",
        )),
        BeginUploadOutcome::QuotaExceeded(used) => Err(quota_exceeded(app.limits().media_bytes, used)),
        // 24 random bytes do not repeat.
        BeginUploadOutcome::DuplicateId => Err(Problem::of(ProblemKind::Internal)),
    }
}

/// The properties of a file, which a client declares before it sends the file.
struct FileDeclaration {
    name: String,
    file_type: String,
    length: u64,
}

impl FileDeclaration {
    /// Reads the declaration from the query, otherwise from the body.
    async fn read(app: &App, query: &Query, request: Request) -> Result<Self, Problem> {
        let mut body = match query.text("file_length") {
            Some(_) => None,
            None => Some(GraphBody::from_request(request, app).await?),
        };
        let document = match &mut body {
            Some(body) => Some(body.process(app.admission(), |_, document| document).await?),
            None => None,
        };
        let text = |name: &str| {
            let in_body = document.as_ref().and_then(|it| it.root().get(name));
            let in_body = in_body.and_then(|value| match value {
                Json::String(text) => Some(text.clone().into_owned()),
                Json::Number(number) => Some(number.to_string()),
                _ => None,
            });
            query.text(name).map(str::to_owned).or(in_body)
        };
        let length = text("file_length").and_then(|length| length.parse().ok());
        let file_type = text("file_type").unwrap_or_default().to_ascii_lowercase();
        if !SAMPLE_TYPES.contains(&&*file_type) {
            let problem = format!("must be one of {}", SAMPLE_TYPES.join(", "));
            return Err(invalid_parameter("file_type", &problem));
        }
        let mut name = text("file_name").unwrap_or_default();
        // The name is only displayed, and not every backend can store every control character.
        name.retain(|character| !character.is_control());
        name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
        let invalid = || invalid_parameter("file_length", "must be a number of bytes");
        Ok(Self { name, length: length.ok_or_else(invalid)?, file_type })
    }
}

/// Appends the body to an upload, chunk by chunk, as long as the credentials are valid. After a
/// broken connection the client resumes where it stopped, and no file is in memory as a whole.
pub(super) async fn append(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    request: Request,
) -> Result<Response, Problem> {
    caller.strike(app, Call::Upload, None).await?;
    let mut offset = offset(request.headers())?;
    check_before_reading(app, caller, id, offset, request.headers()).await?;
    let memory = app.request_memory().charge(caller.account.id, UPLOAD_CHUNK_BYTES).await;
    let _memory = memory.ok_or_else(|| throttling::too_many_bytes(app, REQUEST_BYTES))?;
    RequestContext::mark_upload(request.extensions());
    let mut revoked = pin!(revoked(app, UsedCredentials::of(request.extensions())));
    let mut body = request.into_body();
    let mut timeout = Box::pin(tokio::time::sleep(TRANSFER_TIMEOUT));
    loop {
        let (bytes, end) = tokio::select! {
            biased;
            problem = &mut revoked => return Err(problem),
            chunk = read_chunk(app.limits().body, &mut body, timeout.as_mut()) => chunk,
        };
        let (account, quota, at) = (caller.account.id, app.limits().media_bytes, app.clock().now());
        let appended = app.store().append_upload(account, id, offset, &bytes, quota, at).await;
        match appended.map_err(|error| Problem::from(error).detail(CHECK_PROGRESS))? {
            AppendOutcome::Received(received) => offset = received,
            AppendOutcome::Complete { handle, .. } => {
                let handle = sample::handle(&handle);
                return Ok(json(StatusCode::OK, format!(r#"{{"h":"{handle}"}}"#)));
            }
            AppendOutcome::OffsetMismatch(received) => return Err(wrong_offset(received)),
            AppendOutcome::TooLong(length) => return Err(too_long(length)),
            AppendOutcome::QuotaExceeded(used) => return Err(quota_exceeded(quota, used)),
            AppendOutcome::TypeMismatch { declared: announced, sniffed: shown } => {
                return Err(type_mismatch(&announced, shown.as_deref()));
            }
            AppendOutcome::NoUpload => return Err(unknown(&caller.node)),
        }
        match end {
            ChunkEnd::Full => {}
            ChunkEnd::Complete => return Ok(progress(id, offset)),
            ChunkEnd::Disconnected => {
                let detail = format!("The body ended before it was complete. {}", resume(offset));
                return Err(Problem::of(ProblemKind::BadRequest).detail(detail));
            }
            ChunkEnd::TimedOut => {
                let detail = format!("The body arrived too slowly. {}", resume(offset));
                return Err(Problem::of(ProblemKind::BodyTimeout).detail(detail));
            }
        }
    }
}

/// The detail when the number of stored bytes is unknown.
const CHECK_PROGRESS: &str = "Galley may have stored some of the bytes. Read the upload with GET, and continue at the `file_offset` in the response.";

/// Deletes an upload, unless a template uses the file.
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller<Write>,
) -> Result<Response, Problem> {
    let deleted = match upload_id(&caller.node) {
        Some(id) => app.store().cancel_upload(caller.account.id, id, app.clock().now()).await?,
        None => false,
    };
    let not_found = || {
        Problem::of(ProblemKind::NotFound).detail("The upload does not exist, or a template uses its file, so that it cannot be deleted. To delete a template, call DELETE on `message_templates` of the account with `hsm_id`.")
    };
    deleted.then(success).ok_or_else(not_found)
}

/// Shows the progress of an upload.
pub(super) async fn show(app: &App, caller: &Caller<Read>, id: &str) -> Result<Response, Problem> {
    let upload = app.store().upload(caller.account.id, id, app.clock().now()).await?;
    let upload = upload.ok_or_else(|| unknown(&caller.node))?;
    Ok(progress(id, upload.received))
}

fn progress(id: &str, offset: u64) -> Response {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.string("id", &format!("{PREFIX}{id}"));
    object.number("file_offset", offset);
    object.close();
    json(StatusCode::OK, out)
}

/// The position of the first byte of a request.
fn offset(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(offset) = headers.get("file_offset") else { return Ok(0) };
    let offset = offset.to_str().ok().and_then(|offset| offset.trim().parse().ok());
    let detail = "The header `file_offset` must be a number of bytes.";
    offset.ok_or_else(|| Problem::of(ProblemKind::BadRequest).detail(detail))
}

/// Rejects a request that cannot succeed before reading its body.
async fn check_before_reading(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    offset: u64,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let upload = app.store().upload(caller.account.id, id, app.clock().now()).await?;
    let upload = upload.ok_or_else(|| unknown(&caller.node))?;
    if offset != upload.received {
        return Err(wrong_offset(upload.received));
    }
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let declared: Option<u64> = declared.and_then(|it| it.parse().ok());
    if declared.is_some_and(|bytes| bytes > upload.length - upload.received) {
        return Err(too_long(upload.length));
    }
    Ok(())
}

/// Why a chunk of a body ended.
enum ChunkEnd {
    /// It has the maximum size; more may follow.
    Full,
    /// The body is complete.
    Complete,
    /// The connection broke.
    Disconnected,
    /// No bytes arrived for some time, or the transfer took too long.
    TimedOut,
}

/// Reads a chunk of a body, to be stored at once. Returns all bytes that arrived, even if the
/// connection broke.
async fn read_chunk(
    idle: Duration,
    body: &mut Body,
    mut timeout: Pin<&mut Sleep>,
) -> (Vec<u8>, ChunkEnd) {
    let mut bytes = Vec::new();
    while bytes.len() < UPLOAD_CHUNK_BYTES {
        let frame = tokio::select! {
            biased;
            frame = tokio::time::timeout(idle, body.frame()) => frame,
            () = &mut timeout => return (bytes, ChunkEnd::TimedOut),
        };
        match frame {
            Ok(Some(Ok(frame))) => {
                bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
            Ok(None) => return (bytes, ChunkEnd::Complete),
            Ok(Some(Err(_))) => return (bytes, ChunkEnd::Disconnected),
            Err(_) => return (bytes, ChunkEnd::TimedOut),
        }
    }
    (bytes, ChunkEnd::Full)
}

/// The sentence that tells the client where to continue.
fn resume(received: u64) -> String {
    let bytes = if received == 1 { "byte" } else { "bytes" };
    format!("Galley has received {received} {bytes}: continue with `file_offset: {received}`.")
}

fn wrong_offset(received: u64) -> Problem {
    let detail =
        format!("The header `file_offset` does not match the upload. {}", resume(received));
    Problem::of(ProblemKind::BadRequest).detail(detail)
}

fn too_long(length: u64) -> Problem {
    let detail = format!(
        "The request contains more bytes than the declared `file_length` of {length}. Send only the rest of the file, or start a new upload."
    );
    Problem::of(ProblemKind::TooLarge).detail(detail)
}

fn quota_exceeded(quota: u64, used: u64) -> Problem {
    let detail = format!(
        "The media of the account take {used} of {quota} bytes, so the file does not fit. Use an existing sample, or ask the operator to raise the setting `media_mib_per_account`. Galley deletes samples that no template uses after {UNUSED_MEDIA_DAYS} days."
    );
    Problem::of(ProblemKind::LimitReached).detail(detail)
}

fn type_mismatch(declared: &str, detected: Option<&str>) -> Problem {
    let detected = detected.unwrap_or("an unsupported type");
    let detail = format!(
        "The declared `file_type` is {declared}, but the content is {detected}. Galley has deleted the upload: start a new one with the correct type."
    );
    Problem::of(ProblemKind::BadRequest).detail(detail)
}
