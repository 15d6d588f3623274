//! Uploading the sample of an attachment: announced first, then sent in one piece or several.

use std::{pin::Pin, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequest as _, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use galley_domain::{
    document::{Document, Json},
    template::sample,
};
use galley_store::{
    AppendOutcome, BeginUploadOutcome, MAX_UPLOAD_BYTES, NewUpload, UNUSED_MEDIA_DAYS,
    UPLOAD_CHUNK_BYTES,
};
use http_body_util::BodyExt as _;
use tokio::time::Sleep;

use super::{
    body::JsonText,
    caller::{Caller, unknown},
    media,
    parameters::{Query, bad},
    success,
};
use crate::{
    api::{
        auth::{Read, Write},
        json,
        problem::{Kind, Problem},
        request_context::Trace,
    },
    app::App,
    json_writer::Object,
};

/// What an upload's id begins with.
const PREFIX: &str = "upload:";

/// The types that samples come in.
const TYPES: [&str; 6] =
    ["application/pdf", "image/jpeg", "image/jpg", "image/png", "video/mp4", "video/3gpp"];

/// How many bytes of a file's name are kept.
const LONGEST_NAME: usize = 128;

/// How long one request may send bytes, if some of them keep coming: the largest file comes through
/// a line of 14 KB in a second.
pub(crate) const LONGEST: Duration = Duration::from_mins(20);

/// The id of the upload that a node names, if it names one.
pub(super) fn named(node: &str) -> Option<&str> {
    node.strip_prefix(PREFIX)
}

/// Announces a file. What stands before `uploads` is an app's id there, and nothing here.
pub(super) async fn begin(
    State(app): State<App>,
    caller: Caller<Write>,
    query: Query,
    request: Request,
) -> Result<Response, Problem> {
    let announced = Announced::read(&app, &query, request).await?;
    let (id, handle) = (media::new_name(&app), media::new_name(&app));
    let new = NewUpload {
        account: caller.account.id,
        id: id.clone(),
        handle,
        file_name: announced.name,
        file_type: announced.kind,
        length: announced.length,
        room: app.limits().media_bytes,
        at: app.clock().now(),
    };
    match app.store().begin_upload(new).await? {
        BeginUploadOutcome::Begun => {
            Ok(json(StatusCode::OK, format!(r#"{{"id":"{PREFIX}{id}"}}"#)))
        }
        BeginUploadOutcome::WrongLength => {
            Err(bad("file_length", &format!("a number of bytes from 1 to {MAX_UPLOAD_BYTES}")))
        }
        BeginUploadOutcome::TooMany => Err(Problem::of(Kind::LimitReached)
            .detail("Too many files were announced and not sent: send them, or wait a day.")),
        BeginUploadOutcome::NoRoom(kept) => Err(no_room(app.limits().media_bytes, kept)),
        // Nobody draws the same 24 bytes twice.
        BeginUploadOutcome::Taken => Err(Problem::of(Kind::Internal)),
    }
}

/// What is said of a file before it is sent.
struct Announced {
    name: String,
    kind: String,
    length: u64,
}

impl Announced {
    /// It stands in the query, or else in the body.
    async fn read(app: &App, query: &Query, request: Request) -> Result<Self, Problem> {
        let body = match query.text("file_length") {
            Some(_) => b"{}".to_vec(),
            None => JsonText::from_request(request, app).await?.0,
        };
        let document = Document::parse(&body)?;
        let text = |name: &str| {
            let sent = document.root().get(name).and_then(|value| match value {
                Json::String(text) => Some(text.clone().into_owned()),
                Json::Number(number) => Some(number.to_string()),
                _ => None,
            });
            query.text(name).map(str::to_owned).or(sent)
        };
        let length = text("file_length").and_then(|length| length.parse().ok());
        let kind = text("file_type").unwrap_or_default().to_ascii_lowercase();
        if !TYPES.contains(&&*kind) {
            return Err(bad("file_type", &format!("one of {}", TYPES.join(", "))));
        }
        let mut name = text("file_name").unwrap_or_default();
        // It is shown to people only, and not every store keeps every sign.
        name.retain(|sign| !sign.is_control());
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
        Ok(Self {
            name,
            length: length.ok_or_else(|| bad("file_length", "a number of bytes"))?,
            kind,
        })
    }
}

/// Takes bytes as they come and keeps them bit by bit: what has arrived when a connection breaks
/// need not be sent again, and no file is in memory as a whole.
pub(super) async fn append(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    request: Request,
) -> Result<Response, Problem> {
    let mut offset = offset(request.headers())?;
    refuse_at_once(app, caller, id, offset, request.headers()).await?;
    Trace::note_upload(request.extensions());
    let mut body = request.into_body();
    let mut over = Box::pin(tokio::time::sleep(LONGEST));
    loop {
        let (bytes, end) = piece(app.limits().body, &mut body, over.as_mut()).await;
        let (account, room, at) = (caller.account.id, app.limits().media_bytes, app.clock().now());
        let appended = app.store().append_upload(account, id, offset, &bytes, room, at).await;
        match appended.map_err(|error| Problem::from(error).detail(ASK))? {
            AppendOutcome::Received(received) => offset = received,
            AppendOutcome::Complete { handle, .. } => {
                let handle = sample::handle(&handle);
                return Ok(json(StatusCode::OK, format!(r#"{{"h":"{handle}"}}"#)));
            }
            AppendOutcome::Misplaced(there) => return Err(misplaced(there)),
            AppendOutcome::TooLong(length) => return Err(too_long(length)),
            AppendOutcome::NoRoom(kept) => return Err(no_room(room, kept)),
            AppendOutcome::OtherType { announced, shown } => {
                return Err(other_type(&announced, shown.as_deref()));
            }
            AppendOutcome::NoUpload => return Err(unknown(&caller.node)),
        }
        match end {
            End::NotYet => {}
            End::Whole => return Ok(progress(id, offset)),
            End::Broken => {
                let detail = format!("The body ended before it was whole. {}", go_on(offset));
                return Err(Problem::of(Kind::BadRequest).detail(detail));
            }
            End::Stalled => {
                let detail = format!("The bytes came too slowly. {}", go_on(offset));
                return Err(Problem::of(Kind::BodyTimeout).detail(detail));
            }
        }
    }
}

/// What to do when nobody knows how much was kept.
const ASK: &str = "Some of the bytes may be there: ask for the upload with GET, and go on from the `file_offset` that is answered.";

/// Forgets an upload, unless a template has named the file.
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller<Write>,
) -> Result<Response, Problem> {
    let gone = match named(&caller.node) {
        Some(id) => app.store().cancel_upload(caller.account.id, id, app.clock().now()).await?,
        None => false,
    };
    let nothing = || {
        Problem::of(Kind::NotFound).detail("There is no upload with that id, or a template has named its file, which stays. Templates are deleted at the account's `message_templates`, by `hsm_id`.")
    };
    gone.then(success).ok_or_else(nothing)
}

/// How far an upload has come: where to go on.
pub(super) async fn show(app: &App, caller: &Caller<Read>, id: &str) -> Result<Response, Problem> {
    let upload = app.store().upload(caller.account.id, id, app.clock().now()).await?;
    let upload = upload.ok_or_else(|| unknown(&caller.node))?;
    Ok(progress(id, upload.received))
}

fn progress(id: &str, offset: u64) -> Response {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.text("id", &format!("{PREFIX}{id}"));
    object.number("file_offset", offset);
    object.close();
    json(StatusCode::OK, out)
}

/// Where the bytes of a request begin.
fn offset(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(offset) = headers.get("file_offset") else { return Ok(0) };
    let offset = offset.to_str().ok().and_then(|offset| offset.trim().parse().ok());
    offset.ok_or_else(|| bad("file_offset", "a header with a number of bytes"))
}

/// What cannot go well is refused before its bytes are read.
async fn refuse_at_once(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    offset: u64,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let upload = app.store().upload(caller.account.id, id, app.clock().now()).await?;
    let upload = upload.ok_or_else(|| unknown(&caller.node))?;
    if offset != upload.received {
        return Err(misplaced(upload.received));
    }
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let announced: Option<u64> = announced.and_then(|it| it.parse().ok());
    if announced.is_some_and(|bytes| bytes > upload.length - upload.received) {
        return Err(too_long(upload.length));
    }
    Ok(())
}

/// Why a piece of a body is not longer.
enum End {
    /// It is as long as pieces are.
    NotYet,
    /// That was all.
    Whole,
    /// The connection broke.
    Broken,
    /// Nothing came for a while, or the request has taken all its time.
    Stalled,
}

/// So much of a body as is kept at once. Whatever has come is kept, however it ended.
async fn piece(idle: Duration, body: &mut Body, mut over: Pin<&mut Sleep>) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    while bytes.len() < UPLOAD_CHUNK_BYTES {
        let frame = tokio::select! {
            biased;
            frame = tokio::time::timeout(idle, body.frame()) => frame,
            () = &mut over => return (bytes, End::Stalled),
        };
        match frame {
            Ok(Some(Ok(frame))) => {
                bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
            Ok(None) => return (bytes, End::Whole),
            Ok(Some(Err(_))) => return (bytes, End::Broken),
            Err(_) => return (bytes, End::Stalled),
        }
    }
    (bytes, End::NotYet)
}

fn go_on(there: u64) -> String {
    format!("{there} bytes are there: go on with `file_offset: {there}`.")
}

fn misplaced(there: u64) -> Problem {
    Problem::of(Kind::BadRequest).detail(go_on(there))
}

fn too_long(length: u64) -> Problem {
    let detail = format!("The file was announced with {length} bytes, and these are more.");
    Problem::of(Kind::TooLarge).detail(detail)
}

fn no_room(room: u64, kept: u64) -> Problem {
    let detail = format!(
        "The account's media take {kept} bytes, and the operator gives them {room}: use a sample that is there already, or ask for more room (the setting `media_mib_per_account`). Samples that no template names are forgotten after {UNUSED_MEDIA_DAYS} days."
    );
    Problem::of(Kind::LimitReached).detail(detail)
}

fn other_type(announced: &str, shown: Option<&str>) -> Problem {
    let shown = shown.unwrap_or("none of the types that samples come in");
    let detail = format!(
        "The file was announced as {announced}, and its first bytes show {shown}. The upload is forgotten: announce the file with the type that it has."
    );
    Problem::of(Kind::BadRequest).detail(detail)
}
