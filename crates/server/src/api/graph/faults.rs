//! Faults of emulator accounts: failures of single calls on demand.

use axum::http::HeaderMap;
use galley_domain::{
    emulator::faults::{Call, FaultEffect},
    id::TemplateId,
};

use super::caller::Caller;
use crate::{
    admission::Overload,
    api::{
        problem::{Problem, ProblemKind},
        throttling,
    },
    app::App,
    call_usage,
};

/// The header that strikes a single call.
const FAULT: &str = "galley-fault";

/// Why a call is refused instead of delayed.
const DELAY_REFUSED: &str = "Nothing was done, and the fault `delay` was not applied: so many requests wait that there is no room for a further one of this account. A fault with `times` has counted the call. Send the request again after the time in Retry-After, or fewer at a time.";

impl<S> Caller<S> {
    /// Lets the header of the request strike the call. Other accounts than emulators ignore it.
    pub(super) fn strike_by_header(&self, app: &App, headers: &HeaderMap) -> Result<(), Problem> {
        let header = headers.get(FAULT).filter(|_| self.account.emulator.is_some());
        let Some(header) = header else { return Ok(()) };
        let effect = FaultEffect::from_header(header.to_str().unwrap_or_default());
        let invalid = |error| {
            let detail = format!("The header `Galley-Fault` is invalid: {error}.");
            Problem::of(ProblemKind::BadRequest).detail(detail)
        };
        self.suffer(app, effect.map_err(invalid)?)
    }

    /// Lets a fault of the account strike a call about a template of this name, before anything
    /// happens. A call that the header has struck counts for no fault.
    pub(super) async fn strike(
        &self,
        app: &App,
        call: Call,
        name: Option<&str>,
    ) -> Result<(), Problem> {
        if self.account.emulator.is_none() || self.context.fault().is_some() {
            return Ok(());
        }
        match app.store().decide_fault(self.account.id, call, name).await? {
            Some(effect) => self.suffer(app, effect),
            None => Ok(()),
        }
    }

    /// Lets a fault of the account strike a call about the template with this id.
    pub(super) async fn strike_template(
        &self,
        app: &App,
        call: Call,
        id: TemplateId,
    ) -> Result<(), Problem> {
        if self.account.emulator.is_none() {
            return Ok(());
        }
        let stored = app.store().template(self.account.id, id).await?;
        self.strike(app, call, stored.as_ref().map(|it| it.template.name())).await
    }

    /// Ends the call at once, or lets it happen and changes its response afterwards.
    fn suffer(&self, app: &App, effect: FaultEffect) -> Result<(), Problem> {
        match effect {
            // Before anything happens: without room, the call is refused.
            FaultEffect::Delay(_) => {
                let waits = throttling::reserve_wait(app, &self.context, Overload::Waits);
                waits.map_err(|problem| problem.detail(DELAY_REFUSED))?;
                self.context.record_fault(effect);
                Ok(())
            }
            FaultEffect::Error(failure) => {
                if failure.is_throttling {
                    self.context.record_used_up(call_usage::used_up(self.account.id));
                }
                Err(Problem::provoked(failure))
            }
            FaultEffect::CloseBefore => {
                self.context.record_fault(effect);
                Err(Problem::of(ProblemKind::ProvokedFailure))
            }
            effect => {
                self.context.record_fault(effect);
                Ok(())
            }
        }
    }
}
