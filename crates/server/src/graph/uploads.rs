//! Uploading the sample of an attachment: announced first, then sent in one piece or several.

use axum::{
    body::Body,
    extract::{FromRequest as _, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use galley_domain::json::{Document, Json};
use galley_store::{Appended, LARGEST_UPLOAD, NewUpload, UPLOAD_PIECE, UploadCreation};
use http_body_util::BodyExt as _;

use super::{
    body::JsonText,
    caller::{Caller, unknown},
    media,
    parameters::{Query, bad},
};
use crate::{
    App,
    http::{
        caller::{Read, Write},
        json,
        problem::{Kind, Problem},
    },
    object::Object,
};

/// What an upload's id begins with.
const PREFIX: &str = "upload:";

/// The types that samples come in.
const TYPES: [&str; 6] =
    ["application/pdf", "image/jpeg", "image/jpg", "image/png", "video/mp4", "video/3gpp"];

/// How long the name of a file may be.
const LONGEST_NAME: usize = 255;

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
        UploadCreation::Begun => Ok(json(StatusCode::OK, format!(r#"{{"id":"{PREFIX}{id}"}}"#))),
        UploadCreation::WrongLength => {
            Err(bad("file_length", &format!("a number of bytes from 1 to {LARGEST_UPLOAD}")))
        }
        UploadCreation::TooMany => Err(Problem::of(Kind::LimitReached)
            .detail("Too many files were announced and not sent: send them, or wait a day.")),
        UploadCreation::NoRoom(kept) => Err(Problem::of(Kind::LimitReached).detail(format!(
            "The account keeps {kept} bytes of media, and the operator lets it keep {}: use a sample that is there already, or ask for more room (the setting `media_mib_per_account`).",
            app.limits().media_bytes
        ))),
        // Nobody draws the same 24 bytes twice.
        UploadCreation::Taken => Err(Problem::of(Kind::Internal)),
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
                Json::Text(text) => Some(text.clone().into_owned()),
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
        Ok(Self {
            name: text("file_name").unwrap_or_default().chars().take(LONGEST_NAME).collect(),
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
    let mut body = request.into_body();
    loop {
        let (bytes, ended) = piece(app, &mut body).await?;
        let at = app.clock().now();
        match app.store().append_upload(caller.account.id, id, offset, &bytes, at).await? {
            Appended::Received(received) => offset = received,
            Appended::Complete { handle, .. } => {
                let handle = media::handle(&handle);
                return Ok(json(StatusCode::OK, format!(r#"{{"h":"{handle}"}}"#)));
            }
            Appended::Misplaced(there) => return Err(misplaced(there)),
            Appended::TooLong(length) => return Err(too_long(length)),
            Appended::NoUpload => return Err(unknown(&caller.node)),
        }
        if ended {
            return Ok(progress(id, offset));
        }
    }
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

/// So much of a body as is kept at once, and whether that was the last of it.
async fn piece(app: &App, body: &mut Body) -> Result<(Vec<u8>, bool), Problem> {
    let mut bytes = Vec::new();
    while bytes.len() < UPLOAD_PIECE {
        match tokio::time::timeout(app.limits().body, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
            Ok(None) => return Ok((bytes, true)),
            Ok(Some(Err(_))) => {
                let detail = "The body ended before it was whole.";
                return Err(Problem::of(Kind::BadRequest).detail(detail));
            }
            Err(_) => return Err(Problem::of(Kind::BodyTimeout)),
        }
    }
    Ok((bytes, false))
}

fn misplaced(there: u64) -> Problem {
    let detail = format!("{there} bytes are there: go on with `file_offset: {there}`.");
    Problem::of(Kind::BadRequest).detail(detail)
}

fn too_long(length: u64) -> Problem {
    let detail = format!("The file was announced with {length} bytes, and these are more.");
    Problem::of(Kind::TooLarge).detail(detail)
}
