//! The faults of an emulator account.

use axum::{
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{document::Document, emulator::faults::Fault};
use galley_store::CreateFaultOutcome;
use serde::Deserialize;

use super::{EmulatorCaller, not_an_emulator};
use crate::{
    api::{
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        query::{Parameters, parse_digits},
        view,
    },
    app::App,
};

/// The id in the path: the number of the fault.
#[derive(Deserialize)]
pub(super) struct FaultPath {
    id: String,
}

pub(super) async fn list(
    State(app): State<App>,
    caller: EmulatorCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let faults = app.store().faults(caller.account).await?;
    Ok(json(StatusCode::OK, view::faults(&faults)))
}

pub(super) async fn create(
    State(app): State<App>,
    caller: EmulatorCaller,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes: &[u8]| {
        Fault::read(&Document::parse(bytes)?).map_err(Problem::invalid_emulator_document)
    };
    let fault = body.process(&app, read).await?;
    drop(body);
    let fault = match app.store().create_fault(caller.account, fault, app.clock().now()).await? {
        CreateFaultOutcome::Created(fault) => fault,
        CreateFaultOutcome::TooMany => return Err(Problem::of(ProblemKind::TooManyFaults)),
        CreateFaultOutcome::NotAnEmulator => return Err(not_an_emulator()),
    };
    let mut response = json(StatusCode::CREATED, view::fault(&fault));
    // Relative, so that no API key appears in a response.
    if let Ok(location) = HeaderValue::from_str(&format!("faults/{}", fault.number)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

pub(super) async fn delete_all(
    State(app): State<App>,
    caller: EmulatorCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    app.store().delete_faults(caller.account, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn delete_one(
    State(app): State<App>,
    caller: EmulatorCaller,
    Path(FaultPath { id }): Path<FaultPath>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let unknown = Problem::of(ProblemKind::FaultUnknown);
    let Some(number) = parse_digits(&id) else { return Err(unknown) };
    match app.store().delete_faults(caller.account, Some(number)).await? {
        0 => Err(unknown),
        _ => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}
