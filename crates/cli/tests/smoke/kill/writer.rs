//! A writer of the kill harness: creates templates, leads some of them through their lives, and
//! fights with the others over some that belong to all.

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
    dice::Dice,
    life::{self, Life},
    sent::{Act, Change, Creation, Outcome, Sent, Wish},
    tenant::Tenant,
};
use crate::http::{Answer, Connection, is_closed};

/// One creation in this many has a name that every writer tries to get.
const CONTESTED: usize = 5;

/// One step in this many is a fight, the same for all: so they meet.
const FIGHT: usize = 5;

/// How many templates of its own a writer changes; what it creates beyond them is left as it is.
const OWN: usize = 4;

const DECISIONS: [Trigger; 5] =
    [Trigger::Approve, Trigger::Reject, Trigger::Pause, Trigger::Resume, Trigger::Disable];

const CATEGORIES: [Category; 3] =
    [Category::Marketing, Category::Utility, Category::Authentication];

pub(super) struct Writer {
    pub(super) cycle: u32,
    pub(super) number: usize,
    pub(super) tenant: &'static Tenant,
    pub(super) dice: Dice,
    /// The templates that nobody else changes, as they have to be.
    pub(super) own: Vec<Life>,
    /// The ids of those that every writer of the account changes.
    pub(super) fought: Vec<String>,
    /// The number of its creations.
    pub(super) made: usize,
    /// The name of a template that it has deleted.
    pub(super) freed: Option<String>,
}

/// What a writer did.
#[derive(Default)]
pub(super) struct Worked {
    /// Its requests in their order; at most the last one is of unknown outcome.
    pub(super) sent: Vec<Sent>,
    /// The ids of its own templates.
    pub(super) own: Vec<String>,
    /// Answers that were wrong whatever the others did.
    pub(super) faults: Vec<String>,
}

impl Writer {
    /// Sends one request after the other until the service is gone.
    pub(super) fn work(
        mut self,
        address: SocketAddr,
        news: &Sender<()>,
        ended: &AtomicBool,
    ) -> Worked {
        let mut calls = Connection::open(address).unwrap();
        let mut worked = Worked::default();
        let mut step = 0;
        while !ended.load(Ordering::Relaxed) {
            step += 1;
            let wish = match self.next(step, &mut calls) {
                Ok(Some(wish)) => wish,
                Ok(None) => continue,
                Err(error) => {
                    assert!(is_closed(&error), "{error}");
                    break;
                }
            };
            let mut sent = Sent::new(self.tenant, wish);
            let delivered = calls.send(&sent.request().bytes());
            sent.at = Instant::now();
            match delivered.and_then(|()| calls.answer()) {
                Ok(answer) => {
                    worked.faults.extend(self.hear(&sent, &answer).err());
                    if (200..300).contains(&answer.status) {
                        sent.outcome = Outcome::Acknowledged(answer);
                        let _ = news.send(());
                    } else {
                        sent.outcome = Outcome::Refused(answer);
                    }
                    worked.sent.push(sent);
                }
                Err(error) => {
                    assert!(is_closed(&error), "{error}");
                    worked.sent.push(sent);
                    break;
                }
            }
        }
        worked.own = self.own.into_iter().map(|life| life.id).collect();
        worked
    }

    /// What it asks for next. None: what it was to fight over is gone.
    fn next(&mut self, step: usize, calls: &mut Connection) -> io::Result<Option<Wish>> {
        if step.is_multiple_of(FIGHT) && !self.fought.is_empty() {
            return Ok(self.fight(step / FIGHT, calls)?.map(Wish::Change));
        }
        let changes = !self.own.is_empty() && self.dice.below(5) < 3;
        Ok(Some(if changes { Wish::Change(self.change()) } else { Wish::Create(self.creation()) }))
    }

    /// Takes note of an answer, unless it cannot be the right one.
    fn hear(&mut self, sent: &Sent, answer: &Answer) -> Result<(), String> {
        let refused = |refusal| life::is_refused(answer, refusal);
        let is_right = match &sent.wish {
            Wish::Create(creation) if answer.status == 201 => {
                let id = answer.json()["id"].as_str().unwrap_or_default().to_owned();
                if !creation.contested && self.own.len() < OWN {
                    self.own.push(Life::born(self.tenant, &id, creation));
                }
                true
            }
            Wish::Create(creation) => creation.contested && refused(life::NAME_TAKEN),
            Wish::Change(change) if change.contested => match answer.status {
                412 => refused(life::OUTDATED) && answer.header("etag") != change.tag().as_deref(),
                404 => refused(life::UNKNOWN),
                status => status == if change.is_delete() { 204 } else { 200 },
            },
            Wish::Change(change) => {
                let place = self.own.iter().position(|life| life.id == change.id).unwrap();
                let life = self.own.swap_remove(place);
                match life.after(change) {
                    Ok(after) if after.is_acknowledged(answer) => {
                        if after.gone {
                            self.freed = self.freed.take().or(Some(after.name));
                        } else {
                            self.own.push(after);
                        }
                        true
                    }
                    Err(refusal) if refused(refusal) => {
                        self.own.push(life);
                        true
                    }
                    // From here on nobody knows what to expect of it.
                    _ => false,
                }
            }
        };
        if is_right {
            Ok(())
        } else {
            Err(format!("wrong answer: {:?} was answered {answer:?}", sent.wish))
        }
    }

    /// Now and then a name that was freed is taken again.
    fn creation(&mut self) -> Creation {
        self.made += 1;
        let Self { cycle, number, made, .. } = *self;
        let freed = if self.dice.coin() { self.freed.take() } else { None };
        let contested = made.is_multiple_of(CONTESTED) && freed.is_none();
        let name = match freed {
            Some(name) => name,
            None if contested => format!("contested_{cycle}_{made}"),
            None => format!("sent_{cycle}_{number}_{made}"),
        };
        let key = self.dice.coin().then(|| format!("key-{cycle}-{number}-{made}"));
        Creation { document: self.dice.document(&name), name, key, contested }
    }

    /// A change of one of its own templates. Some are not possible and have to be refused.
    fn change(&mut self) -> Change {
        let place = self.dice.below(self.own.len() as u64);
        let life = &self.own[usize::try_from(place).unwrap()];
        let dice = &mut self.dice;
        let act = match dice.below(20) {
            0..=9 if life.state.hold == Some(Hold::Disabled) => Act::Delete,
            0..=5 => edit(dice),
            6..=8 => {
                let components = dice.coin().then(|| Arc::new(dice.components()));
                Act::Edit { components, category: Some(*dice.pick(&CATEGORIES)) }
            }
            9 | 10 => Act::Restore(1 + dice.below(life.state.version + 1)),
            11..=18 => {
                let possible = life.state.possible_triggers(life.tenant.review);
                let is_soft = |it: &Trigger| *it != Trigger::Disable && possible.contains(it);
                let soft: Vec<Trigger> = DECISIONS.into_iter().filter(is_soft).collect();
                let any = soft.is_empty() || dice.below(8) == 0;
                decide(dice, if any { &DECISIONS } else { &soft })
            }
            _ => Act::Delete,
        };
        let if_match = match dice.below(10) {
            0..=4 => None,
            5..=8 => Some(life.revision()),
            _ => Some(life.revision() + 1),
        };
        Change { id: life.id.clone(), act, if_match, contested: false }
    }

    /// Reads what all fight over and changes it, if nobody else is faster. None: it is gone.
    fn fight(&mut self, round: usize, calls: &mut Connection) -> io::Result<Option<Change>> {
        let id = self.fought[round % self.fought.len()].clone();
        calls.send(&self.tenant.request("GET", &format!("/{id}")).bytes())?;
        let answer = calls.answer()?;
        if answer.status == 404 {
            self.fought.retain(|it| *it != id);
            return Ok(None);
        }
        let revision = answer.header("etag").and_then(|tag| tag.trim_matches('"').parse().ok());
        let dice = &mut self.dice;
        let act = match (answer.json()["status"].as_str(), dice.below(16)) {
            (_, 0) | (Some("DISABLED"), _) => Act::Delete,
            (_, 1) => decide(dice, &[Trigger::Disable]),
            (Some("PENDING"), 2..=9) => decide(dice, &[Trigger::Approve, Trigger::Reject]),
            (Some("APPROVED"), 2..=6) => decide(dice, &[Trigger::Pause]),
            (Some("PAUSED"), 2..=9) => decide(dice, &[Trigger::Resume]),
            _ => edit(dice),
        };
        Ok(Some(Change { id, act, if_match: Some(revision.unwrap()), contested: true }))
    }
}

fn edit(dice: &mut Dice) -> Act {
    Act::Edit { components: Some(Arc::new(dice.components())), category: None }
}

fn decide(dice: &mut Dice, triggers: &[Trigger]) -> Act {
    let trigger = *dice.pick(triggers);
    Act::Decide(trigger, (dice.below(4) > 0).then(|| dice.text(300)))
}
