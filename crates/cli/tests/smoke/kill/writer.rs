//! A writer of the kill harness: creates templates, changes and deletes some of them, and competes
//! with the other writers for shared ones.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::Instant,
};

use galley_domain::{
    rulebook::Category,
    template::lifecycle::{Hold, Trigger},
};

use super::{
    expected_template::{self, ExpectedTemplate},
    requests::{Action, ChangeRequest, CreateRequest, Operation, Outcome, SentRequest},
    rng::Rng,
    tenant::Tenant,
};
use crate::http::{Connection, Response, is_closed};

/// One create in this many has a name that every writer tries to create.
const CONTESTED_NAME_INTERVAL: usize = 5;

/// One request in this many changes a shared template, for all writers alike: so they conflict.
const SHARED_CHANGE_INTERVAL: usize = 5;

/// Number of its own templates that a writer changes. It leaves the others unchanged.
const MAX_OWN_TEMPLATES: usize = 4;

const DECISIONS: [Trigger; 5] =
    [Trigger::Approve, Trigger::Reject, Trigger::Pause, Trigger::Resume, Trigger::Disable];

const CATEGORIES: [Category; 3] =
    [Category::Marketing, Category::Utility, Category::Authentication];

pub(super) struct Writer {
    pub(super) cycle: u32,
    pub(super) number: usize,
    pub(super) tenant: &'static Tenant,
    pub(super) rng: Rng,
    /// The expected state of the templates that only this writer changes.
    pub(super) own: Vec<ExpectedTemplate>,
    /// The ids of the templates that every writer of the account changes.
    pub(super) shared: Vec<String>,
    /// Number of creates sent.
    pub(super) created: usize,
    /// The name of a template that it has deleted.
    pub(super) freed_name: Option<String>,
}

/// What a writer did until the kill.
#[derive(Default)]
pub(super) struct WriterResult {
    /// Its requests, in order; at most the last one has an unknown outcome.
    pub(super) sent: Vec<SentRequest>,
    /// The ids of its own templates.
    pub(super) own: Vec<String>,
    /// Responses that are wrong regardless of the other writers.
    pub(super) violations: Vec<String>,
}

impl Writer {
    /// Sends requests, one at a time, until the service is killed.
    pub(super) fn run(
        mut self,
        address: SocketAddr,
        acknowledge: &Sender<()>,
        ended: &AtomicBool,
    ) -> WriterResult {
        let mut connection = Connection::open(address).unwrap();
        let mut result = WriterResult::default();
        let mut step = 0;
        while !ended.load(Ordering::Relaxed) {
            step += 1;
            let operation = match self.next_operation(step, &mut connection) {
                Ok(Some(operation)) => operation,
                Ok(None) => continue,
                Err(error) => {
                    assert!(is_closed(&error), "{error}");
                    break;
                }
            };
            let mut sent = SentRequest::new(self.tenant, operation);
            let written = connection.send(&sent.request().bytes());
            sent.at = Instant::now();
            match written.and_then(|()| connection.read_response()) {
                Ok(response) => {
                    result.violations.extend(self.check_response(&sent, &response).err());
                    if (200..300).contains(&response.status) {
                        sent.outcome = Outcome::Acknowledged(response);
                        let _ = acknowledge.send(());
                    } else {
                        sent.outcome = Outcome::Refused(response);
                    }
                    result.sent.push(sent);
                }
                Err(error) => {
                    assert!(is_closed(&error), "{error}");
                    result.sent.push(sent);
                    break;
                }
            }
        }
        result.own = self.own.into_iter().map(|expected| expected.id).collect();
        result
    }

    /// The next operation; `None` if the shared template of this step is deleted.
    fn next_operation(
        &mut self,
        step: usize,
        connection: &mut Connection,
    ) -> io::Result<Option<Operation>> {
        if step.is_multiple_of(SHARED_CHANGE_INTERVAL) && !self.shared.is_empty() {
            let round = step / SHARED_CHANGE_INTERVAL;
            return Ok(self.shared_change(round, connection)?.map(Operation::Change));
        }
        let changes = !self.own.is_empty() && self.rng.below(5) < 3;
        Ok(Some(if changes {
            Operation::Change(self.own_change())
        } else {
            Operation::Create(self.create())
        }))
    }

    /// Checks a response and updates the expected state, or reports that the response is wrong.
    fn check_response(&mut self, sent: &SentRequest, response: &Response) -> Result<(), String> {
        let refused = |refusal| expected_template::is_refused(response, refusal);
        let is_right = match &sent.operation {
            Operation::Create(create) if response.status == 201 => {
                let id = response.json()["id"].as_str().unwrap_or_default().to_owned();
                if !create.contested && self.own.len() < MAX_OWN_TEMPLATES {
                    self.own.push(ExpectedTemplate::created(self.tenant, &id, create));
                }
                true
            }
            Operation::Create(create) => create.contested && refused(expected_template::NAME_TAKEN),
            Operation::Change(change) if change.contested => match response.status {
                412 => {
                    refused(expected_template::OUTDATED)
                        && response.header("etag") != change.etag().as_deref()
                }
                404 => refused(expected_template::UNKNOWN),
                status => status == if change.is_delete() { 204 } else { 200 },
            },
            Operation::Change(change) => {
                let index = self.own.iter().position(|expected| expected.id == change.id).unwrap();
                let expected = self.own.swap_remove(index);
                match expected.after(change) {
                    Ok(after) if after.matches_change_response(response) => {
                        if after.deleted {
                            self.freed_name = self.freed_name.take().or(Some(after.name));
                        } else {
                            self.own.push(after);
                        }
                        true
                    }
                    Err(refusal) if refused(refusal) => {
                        self.own.push(expected);
                        true
                    }
                    // The expected state is unknown from here on.
                    _ => false,
                }
            }
        };
        if is_right {
            Ok(())
        } else {
            Err(format!("wrong response to {:?}: {response:?}", sent.operation))
        }
    }

    /// A create, sometimes with the name of a deleted template.
    fn create(&mut self) -> CreateRequest {
        self.created += 1;
        let Self { cycle, number, created, .. } = *self;
        let freed = if self.rng.coin() { self.freed_name.take() } else { None };
        let contested = created.is_multiple_of(CONTESTED_NAME_INTERVAL) && freed.is_none();
        let name = match freed {
            Some(name) => name,
            None if contested => format!("contested_{cycle}_{created}"),
            None => format!("sent_{cycle}_{number}_{created}"),
        };
        let key = self.rng.coin().then(|| format!("key-{cycle}-{number}-{created}"));
        CreateRequest { document: self.rng.document(&name), name, key, contested }
    }

    /// A change of one of its own templates. The service must refuse some of the changes.
    fn own_change(&mut self) -> ChangeRequest {
        let index = self.rng.below(self.own.len() as u64);
        let expected = &self.own[usize::try_from(index).unwrap()];
        let rng = &mut self.rng;
        let action = match rng.below(20) {
            0..=9 if expected.state.hold == Some(Hold::Disabled) => Action::Delete,
            0..=5 => edit(rng),
            6..=8 => {
                let components = rng.coin().then(|| Arc::new(rng.components()));
                Action::Edit { components, category: Some(*rng.pick(&CATEGORIES)) }
            }
            9 | 10 => Action::Restore(1 + rng.below(expected.state.version + 1)),
            11..=18 => {
                let possible = expected.state.possible_triggers(expected.tenant.review);
                let is_usual = |it: &Trigger| *it != Trigger::Disable && possible.contains(it);
                let usual: Vec<Trigger> = DECISIONS.into_iter().filter(is_usual).collect();
                let any = usual.is_empty() || rng.below(8) == 0;
                decide(rng, if any { &DECISIONS } else { &usual })
            }
            _ => Action::Delete,
        };
        let if_match = match rng.below(10) {
            0..=4 => None,
            5..=8 => Some(expected.revision()),
            _ => Some(expected.revision() + 1),
        };
        ChangeRequest { id: expected.id.clone(), action, if_match, contested: false }
    }

    /// Reads a shared template and returns a change of the revision read; `None` if the template is
    /// deleted.
    fn shared_change(
        &mut self,
        round: usize,
        connection: &mut Connection,
    ) -> io::Result<Option<ChangeRequest>> {
        let id = self.shared[round % self.shared.len()].clone();
        connection.send(&self.tenant.template_request("GET", &format!("/{id}")).bytes())?;
        let response = connection.read_response()?;
        if response.status == 404 {
            self.shared.retain(|it| *it != id);
            return Ok(None);
        }
        let revision = response.header("etag").and_then(|etag| etag.trim_matches('"').parse().ok());
        let rng = &mut self.rng;
        let action = match (response.json()["status"].as_str(), rng.below(16)) {
            (_, 0) | (Some("DISABLED"), _) => Action::Delete,
            (_, 1) => decide(rng, &[Trigger::Disable]),
            (Some("PENDING"), 2..=9) => decide(rng, &[Trigger::Approve, Trigger::Reject]),
            (Some("APPROVED"), 2..=6) => decide(rng, &[Trigger::Pause]),
            (Some("PAUSED"), 2..=9) => decide(rng, &[Trigger::Resume]),
            _ => edit(rng),
        };
        Ok(Some(ChangeRequest { id, action, if_match: Some(revision.unwrap()), contested: true }))
    }
}

fn edit(rng: &mut Rng) -> Action {
    Action::Edit { components: Some(Arc::new(rng.components())), category: None }
}

fn decide(rng: &mut Rng, triggers: &[Trigger]) -> Action {
    let trigger = *rng.pick(triggers);
    Action::Decide(trigger, (rng.below(4) > 0).then(|| rng.text(300)))
}
