//! `debug_token`: an emulator account tells about its tokens, as Meta does. Other accounts have no such
//! call.

use axum::{http::StatusCode, response::Response};
use galley_store::SecretHash;
use jiff::Timestamp;
use serde_json::json;

use super::{
    caller::Caller,
    parameters::{Query, invalid_parameter},
};
use crate::{
    api::{
        auth::{Read, TOKEN_PROBLEMS, ensure_active},
        json as json_response,
        problem::Problem,
    },
    app::App,
};

/// The node in the path.
pub(super) const NODE: &str = "debug_token";

/// The permissions of every token of an emulator account.
const SCOPES: [&str; 2] = ["whatsapp_business_management", "whatsapp_business_messaging"];

/// Shows a token of the caller's account. One that does not exist, has expired or was revoked is
/// invalid, which is no error.
pub(super) async fn show(
    app: &App,
    caller: &Caller<Read>,
    query: &Query,
) -> Result<Response, Problem> {
    let token = query.text("input_token");
    let token = token.ok_or_else(|| invalid_parameter("input_token", "is required"))?;
    let found = app.credentials().token(SecretHash::of(token), caller.context.started()).await?;
    let found = ensure_active(found, caller.context.received_at(), TOKEN_PROBLEMS).ok();
    let found = found.filter(|found| found.account.id == caller.account.id);
    let data = match found {
        Some(found) => json!({
            "app_id": caller.account.id.to_string(),
            "type": "SYSTEM_USER",
            "application": "Galley",
            "expires_at": found.credential.expires_at.map_or(0, Timestamp::as_second),
            "is_valid": true,
            "issued_at": found.credential.created_at.as_second(),
            "scopes": SCOPES,
            "user_id": found.credential.id.to_string(),
        }),
        None => json!({
            "error": {"code": 190, "message": "The access token is not valid."},
            "is_valid": false,
            "scopes": [],
        }),
    };
    Ok(json_response(StatusCode::OK, json!({"data": data}).to_string()))
}
