//! The expected content of the store: which templates the writers' requests have created and
//! changed, reconciled after each restart with the service's responses and the database file.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    expected_template::ExpectedTemplate,
    requests::{ChangeRequest, CreateRequest, Operation, Outcome, SentRequest},
    store_checks::{self, StoredTemplate},
    tenant::{Tenant, call},
};
use crate::http::{Connection, Response};

/// Every template that must be in the store, by id.
#[derive(Default)]
pub(super) struct StoreModel {
    pub(super) templates: BTreeMap<String, ExpectedTemplate>,
    /// The ids of templates with a violation. They are not checked again.
    pub(super) broken: HashSet<String>,
}

/// Results of reconciling one cycle's requests.
#[derive(Default)]
pub(super) struct Reconciled {
    pub(super) violations: Vec<String>,
    /// The kinds of requests of unknown outcome that took effect.
    pub(super) applied: Vec<&'static str>,
}

impl StoreModel {
    /// Those of a writer's templates that are not deleted.
    pub(super) fn existing(&self, ids: &[String]) -> Vec<ExpectedTemplate> {
        ids.iter()
            .filter_map(|id| self.templates.get(id))
            .filter(|it| !it.deleted)
            .cloned()
            .collect()
    }

    /// The ids of the account's newest templates with contested names. All its writers change them.
    pub(super) fn shared(&self, tenant: &Tenant) -> Vec<String> {
        let is_shared = |it: &&ExpectedTemplate| {
            it.contested && !it.deleted && it.tenant.account == tenant.account
        };
        let ids = self.templates.values().rev().filter(is_shared);
        ids.take(2).map(|expected| expected.id.clone()).collect()
    }

    /// Checks after a restart that the store agrees with every response, and finds out which
    /// requests without a response took effect. `sent` has a list for each writer.
    pub(super) fn reconcile(
        &mut self,
        sent: &[Vec<SentRequest>],
        connection: &mut Connection,
        store: &rusqlite::Connection,
    ) -> Reconciled {
        let mut reconciled = Reconciled::default();
        let touched = self.collect_changes(sent, connection, &mut reconciled);
        let ids: Vec<&str> = touched.keys().map(String::as_str).collect();
        let mut stored = store_checks::read_templates(store, Some(&ids));
        for (id, queues) in touched {
            let Some(expected) = self.templates.remove(&id) else { continue };
            let now = expected.tenant.read_template(&format!("/{id}"), connection);
            let observed = Observed { now, stored: stored.remove(&id).unwrap_or_default() };
            match reconcile(&expected, &queues, &observed, connection, &mut reconciled.applied) {
                Ok(expected) => {
                    self.templates.insert(id, expected);
                }
                Err(violation) => {
                    self.broken.insert(id);
                    reconciled.violations.push(violation);
                }
            }
        }
        for it in sent.iter().flatten() {
            reconciled.violations.extend(self.repeat_create(it, connection).err());
            reconciled.violations.extend(self.wrong_not_found(it));
        }
        reconciled
    }

    /// Adds the created templates to the model, and collects the changes that may have taken effect:
    /// by template, and for each writer in the order sent.
    fn collect_changes<'s>(
        &mut self,
        sent: &'s [Vec<SentRequest>],
        connection: &mut Connection,
        reconciled: &mut Reconciled,
    ) -> HashMap<String, Vec<Vec<&'s SentRequest>>> {
        let mut touched: HashMap<String, Vec<Vec<&SentRequest>>> = HashMap::new();
        let mut queues = |id: &str, writer: usize, it: Option<&'s SentRequest>| {
            let queues = touched.entry(id.to_owned());
            queues.or_insert_with(|| vec![Vec::new(); sent.len()])[writer].extend(it);
        };
        for (writer, sent) in sent.iter().enumerate() {
            for it in sent {
                match &it.operation {
                    Operation::Create(create) => {
                        match resolve_create(it, create, connection, &mut reconciled.applied) {
                            Ok(Some(expected)) => {
                                queues(&expected.id, writer, None);
                                let ExpectedTemplate { name, id, .. } = &expected;
                                let violation =
                                    format!("{name} ({id}) was created by two requests");
                                let duplicate = self.templates.insert(id.clone(), expected);
                                reconciled.violations.extend(duplicate.map(|_| violation));
                            }
                            Ok(None) => {}
                            Err(violation) => reconciled.violations.push(violation),
                        }
                    }
                    Operation::Change(change) if !matches!(it.outcome, Outcome::Refused(_)) => {
                        queues(&change.id, writer, Some(it));
                    }
                    Operation::Change(_) => {}
                }
            }
        }
        touched
    }

    /// Checks that a shared template that a writer could not find is deleted.
    fn wrong_not_found(&self, sent: &SentRequest) -> Option<String> {
        let change = sent.change().filter(|change| change.contested)?;
        let not_found = sent.response().is_some_and(|response| response.status == 404);
        let expected =
            self.templates.get(&change.id).filter(|expected| not_found && !expected.deleted)?;
        Some(format!("{} ({}) exists, but a request did not find it", expected.name, expected.id))
    }

    /// Sends an acknowledged create again: the service repeats the first response, or refuses the
    /// name as taken.
    fn repeat_create(&self, sent: &SentRequest, connection: &mut Connection) -> Result<(), String> {
        let (Operation::Create(create), Outcome::Acknowledged(first)) =
            (&sent.operation, &sent.outcome)
        else {
            return Ok(());
        };
        let id = first.json()["id"].clone();
        let Some(expected) = id.as_str().and_then(|id| self.templates.get(id)) else {
            return Ok(());
        };
        if create.key.is_some() {
            let again = call(connection, &sent.request());
            let same = again.status == 201 && again.body == first.body;
            ensure(same, "the repeated create got another response", &again)?;
            let replayed = again.header("idempotent-replayed") == Some("true");
            ensure(replayed, "a replay has no idempotent-replayed header", &again)
        } else if !expected.deleted {
            let again = call(connection, &sent.request());
            let taken = again.status == 409 && again.json()["existing_id"] == id;
            ensure(taken, "the acknowledged template does not have its name", &again)
        } else {
            Ok(())
        }
    }
}

/// The template that a create has created, if any. Sends the create again to find out.
fn resolve_create(
    sent: &SentRequest,
    create: &CreateRequest,
    connection: &mut Connection,
    applied: &mut Vec<&'static str>,
) -> Result<Option<ExpectedTemplate>, String> {
    let created = |response: &Response, member: &str| {
        let id = response.json()[member].as_str().map(str::to_owned);
        id.map(|id| ExpectedTemplate::created(sent.tenant, &id, create))
    };
    let acknowledged = |response: &Response| {
        let expected = created(response, "id")
            .filter(|expected| expected.create_response() == response.json());
        ensure(expected.is_some(), "not the response to a create", response).map(|()| expected)
    };
    if let Outcome::Acknowledged(response) = &sent.outcome {
        return acknowledged(response);
    }
    let again = call(connection, &sent.request());
    if matches!(sent.outcome, Outcome::Refused(_)) {
        let refused = again.status == 409;
        return ensure(refused, "a name in use became free", &again).map(|()| None);
    }
    if again.status == 201 {
        applied.extend(again.header("idempotent-replayed").map(|_| sent.label()));
        if create.key.is_some() {
            let third = call(connection, &sent.request());
            let same = third.body == again.body && third.header("idempotent-replayed").is_some();
            ensure(same, "the third response differs from the second", &third)?;
        }
        return acknowledged(&again);
    }
    let may_conflict = create.contested || create.key.is_none();
    ensure(again.status == 409 && may_conflict, "a repeated create was refused", &again)?;
    // Another writer may have created a template with a contested name first.
    let own = |expected: &ExpectedTemplate| {
        !create.contested
            || expected
                .matches_read(&sent.tenant.read_template(&format!("/{}", expected.id), connection))
    };
    let expected = created(&again, "existing_id").filter(own);
    ensure(expected.is_some() || create.contested, "another account has its name", &again)?;
    applied.extend(expected.iter().map(|_| sent.label()));
    Ok(expected)
}

/// A template after a restart: the response to a read, and its rows in the database.
struct Observed {
    now: Response,
    stored: StoredTemplate,
}

/// Finds the state of a template that explains the observed one and every response.
fn reconcile(
    expected: &ExpectedTemplate,
    queues: &[Vec<&SentRequest>],
    observed: &Observed,
    connection: &mut Connection,
    applied: &mut Vec<&'static str>,
) -> Result<ExpectedTemplate, String> {
    let now = &observed.now;
    let queues: Vec<&[&SentRequest]> = queues.iter().map(Vec::as_slice).collect();
    let mut unknown = Vec::new();
    let matches = |expected: &ExpectedTemplate| {
        expected.matches_read(now) && observed.stored.compare(expected).is_ok()
    };
    let Some(after) = find_order(expected, &queues, &matches, &mut unknown) else {
        let partial =
            find_order(expected, &queues, &|expected| expected.matches_read(now), &mut unknown);
        let partial = partial.and_then(|expected| observed.stored.compare(&expected).err());
        return Err(partial.unwrap_or_else(|| explain_mismatch(expected, &queues, now)));
    };
    applied.extend(unknown.iter().map(|it| it.label()));
    let responses = queues.iter().flat_map(|queue| queue.iter()).filter_map(|it| it.response());
    for old in responses.filter(|it| it.status == 200 && it.header("etag") == now.header("etag")) {
        ensure(old.body == now.body, &format!("not as acknowledged: {}", old.text()), now)?;
    }
    let versions =
        expected.tenant.read_template(&format!("/{}/versions?limit=100", expected.id), connection);
    let violation =
        format!("the versions of {} ({}) are not those sent", expected.name, expected.id);
    ensure(after.matches_version_list(&versions), &violation, &versions)?;
    Ok(after)
}

/// Finds an order of the changes that leads to the observed state. Acknowledged changes took effect
/// with exactly the acknowledged result, in the order of each writer; changes of unknown outcome
/// took effect once or not at all.
fn find_order<'s>(
    expected: &ExpectedTemplate,
    queues: &[&[&'s SentRequest]],
    matches: &dyn Fn(&ExpectedTemplate) -> bool,
    unknown: &mut Vec<&'s SentRequest>,
) -> Option<ExpectedTemplate> {
    let is_unknown = |it: &&SentRequest| matches!(it.outcome, Outcome::Unknown);
    if queues.iter().all(|queue| queue.iter().all(is_unknown)) && matches(expected) {
        return Some(expected.clone());
    }
    for (number, queue) in queues.iter().enumerate() {
        let Some((first, rest)) = queue.split_first() else { continue };
        let Some(Ok(after)) = first.change().map(|change| expected.after(change)) else { continue };
        if first.response().is_some_and(|response| !after.matches_change_response(response)) {
            continue;
        }
        let mut left = queues.to_vec();
        left[number] = rest;
        unknown.extend(first.response().is_none().then_some(*first));
        if let Some(found) = find_order(&after, &left, matches, unknown) {
            return Some(found);
        }
        if first.response().is_none() {
            unknown.pop();
        }
    }
    None
}

/// Describes what is wrong with a template that no order of changes explains.
fn explain_mismatch(
    expected: &ExpectedTemplate,
    queues: &[&[&SentRequest]],
    now: &Response,
) -> String {
    let revision = |response: &Response| -> Option<u64> {
        response.header("etag").and_then(|etag| etag.trim_matches('"').parse().ok())
    };
    let sent = || queues.iter().flat_map(|queue| queue.iter());
    let acknowledged = sent().filter(|it| it.response().is_some());
    let deleted = acknowledged.clone().find(|it| it.change().is_some_and(ChangeRequest::is_delete));
    let latest = acknowledged.max_by_key(|it| it.response().and_then(revision));
    let latest_response = latest.and_then(|it| it.response());
    let wanted = latest_response.and_then(revision).unwrap_or(expected.revision());
    let ExpectedTemplate { name, id, .. } = expected;
    let what = match (revision(now), deleted, latest) {
        (None, None, _) => format!("{name} ({id}) is missing"),
        (Some(_), Some(_), _) => format!("an acknowledged delete of {name} ({id}) is lost"),
        (Some(found), _, Some(latest)) if found < wanted => {
            let label = latest.label();
            let revisions = format!("revision {found}, not {wanted}");
            format!("an acknowledged {label} of {name} ({id}) is lost: {revisions}")
        }
        (Some(found), _, _) if found > wanted => {
            let revisions = format!("revision {found}, not {wanted}");
            format!("{name} ({id}) has more changes than were requested: {revisions}")
        }
        _ => format!("{name} ({id}) is not what was sent"),
    };
    let sent: Vec<_> =
        sent().map(|it| (&it.operation, it.response().map(Response::text))).collect();
    format!("{what}: {} {}; it was {expected:?}; sent: {sent:?}", now.status, now.text())
}

fn ensure(condition: bool, violation: &str, response: &Response) -> Result<(), String> {
    let Response { status, .. } = response;
    if condition { Ok(()) } else { Err(format!("{violation}: {status} {}", response.text())) }
}
