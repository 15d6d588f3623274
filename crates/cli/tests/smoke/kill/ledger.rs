//! The ledger of the kill harness: which lives the requests of the writers have led, settled
//! after each restart by asking the service and looking into its file.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    file::{self, Kept},
    life::Life,
    sent::{Change, Creation, Outcome, Sent, Wish},
    tenant::{Tenant, call},
};
use crate::http::{Answer, Connection};

/// Every template that has to be in the store, by its id.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) lives: BTreeMap<String, Life>,
    /// The ids of those that a fault was found in. Nothing more is asked of them.
    pub(super) broken: HashSet<String>,
}

/// What came of the requests of a cycle.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) faults: Vec<String>,
    /// What was of unknown outcome and has happened.
    pub(super) happened: Vec<&'static str>,
}

impl Ledger {
    /// Those of a writer's templates that can still change.
    pub(super) fn alive(&self, ids: &[String]) -> Vec<Life> {
        ids.iter().filter_map(|id| self.lives.get(id)).filter(|it| !it.gone).cloned().collect()
    }

    /// The newest templates of the account whose names were contested.
    pub(super) fn fought(&self, tenant: &Tenant) -> Vec<String> {
        let of_all = |it: &&Life| it.contested && !it.gone && it.tenant.account == tenant.account;
        let ids = self.lives.values().rev().filter(of_all);
        ids.take(2).map(|life| life.id.clone()).collect()
    }

    /// Checks after a restart that every promise of the answers is kept, and finds out what
    /// became of the requests without an answer. `sent` has a list for each writer.
    pub(super) fn settle(
        &mut self,
        sent: &[Vec<Sent>],
        calls: &mut Connection,
        store: &rusqlite::Connection,
    ) -> Settled {
        let mut settled = Settled::default();
        let touched = self.gather(sent, calls, &mut settled);
        let ids: Vec<&str> = touched.keys().map(String::as_str).collect();
        let mut kept = file::kept(store, Some(&ids));
        for (id, queues) in touched {
            let Some(life) = self.lives.remove(&id) else { continue };
            let now = life.tenant.read(&format!("/{id}"), calls);
            let found = Found { now, kept: kept.remove(&id).unwrap_or_default() };
            match settle(&life, &queues, &found, calls, &mut settled.happened) {
                Ok(life) => {
                    self.lives.insert(id, life);
                }
                Err(fault) => {
                    self.broken.insert(id);
                    settled.faults.push(fault);
                }
            }
        }
        for it in sent.iter().flatten() {
            settled.faults.extend(self.repeat(it, calls).err());
            settled.faults.extend(self.missed(it));
        }
        settled
    }

    /// Notes the lives that have begun, and gathers the changes that may have happened: by
    /// template, and for each writer in its order.
    fn gather<'s>(
        &mut self,
        sent: &'s [Vec<Sent>],
        calls: &mut Connection,
        settled: &mut Settled,
    ) -> HashMap<String, Vec<Vec<&'s Sent>>> {
        let mut touched: HashMap<String, Vec<Vec<&Sent>>> = HashMap::new();
        let mut queues = |id: &str, writer: usize, it: Option<&'s Sent>| {
            let queues = touched.entry(id.to_owned());
            queues.or_insert_with(|| vec![Vec::new(); sent.len()])[writer].extend(it);
        };
        for (writer, sent) in sent.iter().enumerate() {
            for it in sent {
                match &it.wish {
                    Wish::Create(creation) => {
                        match birth(it, creation, calls, &mut settled.happened) {
                            Ok(Some(life)) => {
                                queues(&life.id, writer, None);
                                let Life { name, id, .. } = &life;
                                let twice = format!("{name} ({id}) was made by two requests");
                                let twin = self.lives.insert(id.clone(), life);
                                settled.faults.extend(twin.map(|_| twice));
                            }
                            Ok(None) => {}
                            Err(fault) => settled.faults.push(fault),
                        }
                    }
                    Wish::Change(change) if !matches!(it.outcome, Outcome::Refused(_)) => {
                        queues(&change.id, writer, Some(it));
                    }
                    Wish::Change(_) => {}
                }
            }
        }
        touched
    }

    /// A template of several writers that was not found has to be gone.
    fn missed(&self, sent: &Sent) -> Option<String> {
        let change = sent.change().filter(|change| change.contested)?;
        let missed = sent.answer().is_some_and(|answer| answer.status == 404);
        let life = self.lives.get(&change.id).filter(|life| missed && !life.gone)?;
        Some(format!("{} ({}) is there, but was not found", life.name, life.id))
    }

    /// Sends an acknowledged creation again: it is answered as before, or its name is taken.
    fn repeat(&self, sent: &Sent, calls: &mut Connection) -> Result<(), String> {
        let (Wish::Create(creation), Outcome::Acknowledged(first)) = (&sent.wish, &sent.outcome)
        else {
            return Ok(());
        };
        let id = first.json()["id"].clone();
        let Some(life) = id.as_str().and_then(|id| self.lives.get(id)) else { return Ok(()) };
        if creation.key.is_some() {
            let again = call(calls, &sent.request());
            demand(again.status == 201 && again.body == first.body, "another answer", &again)?;
            let replayed = again.header("idempotent-replayed") == Some("true");
            demand(replayed, "a replay that does not say so", &again)
        } else if !life.gone {
            let again = call(calls, &sent.request());
            let taken = again.status == 409 && again.json()["existing_id"] == id;
            demand(taken, "the name is not taken by what was acknowledged", &again)
        } else {
            Ok(())
        }
    }
}

/// The life that a creation has begun, if it has; sending it again settles it.
fn birth(
    sent: &Sent,
    creation: &Creation,
    calls: &mut Connection,
    happened: &mut Vec<&'static str>,
) -> Result<Option<Life>, String> {
    let born = |answer: &Answer, member: &str| {
        let id = answer.json()[member].as_str().map(str::to_owned);
        id.map(|id| Life::born(sent.tenant, &id, creation))
    };
    let received = |answer: &Answer| {
        let life = born(answer, "id").filter(|life| life.receipt() == answer.json());
        demand(life.is_some(), "not the receipt of a creation", answer).map(|()| life)
    };
    if let Outcome::Acknowledged(answer) = &sent.outcome {
        return received(answer);
    }
    let again = call(calls, &sent.request());
    if matches!(sent.outcome, Outcome::Refused(_)) {
        return demand(again.status == 409, "a taken name became free", &again).map(|()| None);
    }
    if again.status == 201 {
        happened.extend(again.header("idempotent-replayed").map(|_| sent.label()));
        if creation.key.is_some() {
            let third = call(calls, &sent.request());
            let same = third.body == again.body && third.header("idempotent-replayed").is_some();
            demand(same, "a third answer differs from the second", &third)?;
        }
        return received(&again);
    }
    let may_be_taken = creation.contested || creation.key.is_none();
    demand(again.status == 409 && may_be_taken, "a repetition was refused", &again)?;
    // If the name is contested, another writer may have been faster.
    let own = |life: &Life| {
        !creation.contested || life.is_shown(&sent.tenant.read(&format!("/{}", life.id), calls))
    };
    let life = born(&again, "existing_id").filter(own);
    demand(life.is_some() || creation.contested, "its name is another account's", &again)?;
    happened.extend(life.iter().map(|_| sent.label()));
    Ok(life)
}

/// What is found of a template after a restart: how it is shown, and all that the file holds.
struct Found {
    now: Answer,
    kept: Kept,
}

/// Finds the life that explains what is found, and every answer besides.
fn settle(
    life: &Life,
    queues: &[Vec<&Sent>],
    found: &Found,
    calls: &mut Connection,
    happened: &mut Vec<&'static str>,
) -> Result<Life, String> {
    let now = &found.now;
    let queues: Vec<&[&Sent]> = queues.iter().map(Vec::as_slice).collect();
    let mut unknown = Vec::new();
    let is_whole = |life: &Life| life.is_shown(now) && found.kept.compare(life).is_ok();
    let Some(settled) = order(life, &queues, &is_whole, &mut unknown) else {
        let half = order(life, &queues, &|life| life.is_shown(now), &mut unknown);
        let half = half.and_then(|life| found.kept.compare(&life).err());
        return Err(half.unwrap_or_else(|| why(life, &queues, now)));
    };
    happened.extend(unknown.iter().map(|it| it.label()));
    let answers = queues.iter().flat_map(|queue| queue.iter()).filter_map(|it| it.answer());
    for told in answers.filter(|it| it.status == 200 && it.header("etag") == now.header("etag")) {
        demand(told.body == now.body, &format!("not as acknowledged: {}", told.text()), now)?;
    }
    let versions = life.tenant.read(&format!("/{}/versions?limit=100", life.id), calls);
    let wrong = format!("the versions of {} ({}) are not those sent", life.name, life.id);
    demand(settled.is_listed(&versions), &wrong, &versions)?;
    Ok(settled)
}

/// Finds an order of the changes that leads to what is there now. What was acknowledged has
/// happened, with the very outcome that was told, and in the order of each writer; what is
/// unknown has happened once or not at all.
fn order<'s>(
    life: &Life,
    queues: &[&[&'s Sent]],
    is_there: &dyn Fn(&Life) -> bool,
    unknown: &mut Vec<&'s Sent>,
) -> Option<Life> {
    let is_unknown = |it: &&Sent| matches!(it.outcome, Outcome::Unknown);
    if queues.iter().all(|queue| queue.iter().all(is_unknown)) && is_there(life) {
        return Some(life.clone());
    }
    for (number, queue) in queues.iter().enumerate() {
        let Some((first, rest)) = queue.split_first() else { continue };
        let Some(Ok(after)) = first.change().map(|change| life.after(change)) else { continue };
        if first.answer().is_some_and(|answer| !after.is_acknowledged(answer)) {
            continue;
        }
        let mut left = queues.to_vec();
        left[number] = rest;
        unknown.extend(first.answer().is_none().then_some(*first));
        if let Some(found) = order(&after, &left, is_there, unknown) {
            return Some(found);
        }
        if first.answer().is_none() {
            unknown.pop();
        }
    }
    None
}

/// Says what is wrong with a template that no order explains.
fn why(life: &Life, queues: &[&[&Sent]], now: &Answer) -> String {
    let tag = |answer: &Answer| -> Option<u64> {
        answer.header("etag").and_then(|tag| tag.trim_matches('"').parse().ok())
    };
    let asked = || queues.iter().flat_map(|queue| queue.iter());
    let acknowledged = asked().filter(|it| it.answer().is_some());
    let deleted = acknowledged.clone().find(|it| it.change().is_some_and(Change::is_delete));
    let furthest = acknowledged.max_by_key(|it| it.answer().and_then(tag));
    let told = furthest.and_then(|it| it.answer()).and_then(tag).unwrap_or(life.revision());
    let Life { name, id, .. } = life;
    let what = match (tag(now), deleted, furthest) {
        (None, None, _) => format!("{name} ({id}) is gone"),
        (Some(_), Some(_), _) => format!("an acknowledged delete of {name} ({id}) is lost"),
        (Some(found), _, Some(furthest)) if found < told => {
            let label = furthest.label();
            format!("an acknowledged {label} of {name} ({id}) is lost: {told}, not {found}")
        }
        (Some(found), _, _) if found > told => {
            format!("more has happened to {name} ({id}) than was asked for: {found}, not {told}")
        }
        _ => format!("{name} ({id}) is not what was sent"),
    };
    let asked: Vec<_> = asked().map(|it| (&it.wish, it.answer().map(Answer::text))).collect();
    format!("{what}: {} {}; it was {life:?}; asked: {asked:?}", now.status, now.text())
}

fn demand(good: bool, what: &str, seen: &Answer) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{what}: {} {}", seen.status, seen.text())) }
}
