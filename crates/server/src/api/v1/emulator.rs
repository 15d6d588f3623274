//! `{base}/emulator`: controls the emulator of an account: review rules, clock, faults and the
//! messages of the sandbox.

mod clock;
mod faults;
mod messages;
mod rules;

use axum::{
    Router,
    extract::FromRequestParts,
    http::request::Parts,
    routing::{delete, get},
};
use galley_domain::id::AccountId;

use crate::{
    api::{
        auth::{Caller, Emulator},
        base_path::BasePath,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

pub(crate) const RULES: &str = "/api/v1.0/{phone_number_id}/{key}/emulator/rules";
pub(crate) const CLOCK: &str = "/api/v1.0/{phone_number_id}/{key}/emulator/clock";
pub(crate) const FAULTS: &str = "/api/v1.0/{phone_number_id}/{key}/emulator/faults";
pub(crate) const FAULT: &str = "/api/v1.0/{phone_number_id}/{key}/emulator/faults/{id}";
pub(crate) const MESSAGES: &str = "/api/v1.0/{phone_number_id}/{key}/emulator/messages";

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .route(&base.at(RULES), get(rules::show).put(rules::replace))
        .route(&base.at(CLOCK), get(clock::show).post(clock::change))
        .route(&base.at(FAULTS), get(faults::list).post(faults::create).delete(faults::delete_all))
        .route(&base.at(FAULT), delete(faults::delete_one))
        .route(&base.at(MESSAGES), get(messages::list))
}

/// A caller with the scope `emulator` whose account is an emulator. The scope is checked first, so
/// that a token without it does not find out what the account is.
struct EmulatorCaller {
    account: AccountId,
}

impl FromRequestParts<App> for EmulatorCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::<Emulator>::from_request_parts(parts, app).await?;
        match caller.account.emulator {
            Some(_) => Ok(Self { account: caller.account.id }),
            None => Err(not_an_emulator()),
        }
    }
}

fn not_an_emulator() -> Problem {
    Problem::of(ProblemKind::NotAnEmulator)
}
