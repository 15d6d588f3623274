//! A template as it has to be: its creation and every change that is known to have happened,
//! replayed along the table of moves.

use std::sync::Arc;

use galley_domain::{
    rulebook::Category,
    template::{
        Status,
        lifecycle::{EventType, Hold, State, Trigger},
    },
};
use serde_json::{Value, json};

use super::{
    sent::{Act, Change, Creation},
    tenant::Tenant,
};
use crate::http::Answer;

/// Status and name of the problem that a change is refused with.
pub(super) type Refusal = (u16, &'static str);

pub(super) const UNKNOWN: Refusal = (404, "template-unknown");
pub(super) const OUTDATED: Refusal = (412, "revision-outdated");
pub(super) const NAME_TAKEN: Refusal = (409, "name-taken");
const NOT_POSSIBLE: Refusal = (409, "move-not-possible");
const NO_VERSION: Refusal = (404, "version-unknown");
const LOCKED: Refusal = (409, "category-locked");

/// Whether an answer is this refusal.
pub(super) fn is_refused(answer: &Answer, (status, slug): Refusal) -> bool {
    answer.status == status && answer.json()["type"] == format!("/problems/{slug}")
}

#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) tenant: &'static Tenant,
    pub(super) id: String,
    pub(super) name: String,
    /// Whether several writers sent its name.
    pub(super) contested: bool,
    pub(super) state: State,
    pub(super) gone: bool,
    keyed: bool,
    document: Arc<Value>,
    editions: Vec<Edition>,
    told: Vec<Value>,
}

/// One version.
#[derive(Clone, Debug)]
struct Edition {
    status: Status,
    category: Category,
    previous: Option<Category>,
    components: Arc<Value>,
    /// Whether a reviewer has approved or rejected it, and why.
    decided: bool,
    reason: Option<String>,
}

impl Life {
    /// A template that has just been made, and nothing else has happened to.
    pub(super) fn born(tenant: &'static Tenant, id: &str, creation: &Creation) -> Self {
        let Creation { name, document, key, contested } = creation;
        let state = State::initial(tenant.review);
        let category = document["category"].as_str().and_then(Category::parse).unwrap();
        let first = Edition {
            status: state.newest,
            category,
            previous: None,
            components: Arc::new(document["components"].clone()),
            decided: false,
            reason: None,
        };
        let mut life = Self {
            tenant,
            id: id.to_owned(),
            name: name.clone(),
            contested: *contested,
            state,
            gone: false,
            keyed: key.is_some(),
            document: Arc::new(document.clone()),
            editions: vec![first],
            told: Vec::new(),
        };
        life.tell(EventType::Created, None);
        life
    }

    /// The number of its events.
    pub(super) fn revision(&self) -> u64 {
        self.told.len() as u64
    }

    /// What becomes of it by a change, or why nothing does.
    pub(super) fn after(&self, change: &Change) -> Result<Self, Refusal> {
        if self.gone {
            return Err(UNKNOWN);
        }
        if change.if_match.is_some_and(|known| known != self.revision()) {
            return Err(OUTDATED);
        }
        let moved = self.state.apply(change.act.trigger(), self.tenant.review);
        let (state, event) = moved.map_err(|_| NOT_POSSIBLE)?;
        let mut next = Self { state, ..self.clone() };
        match &change.act {
            Act::Edit { components, category } => {
                let newest = self.newest();
                let components = components.as_ref().unwrap_or(&newest.components);
                next.edit(components, category.unwrap_or(newest.category))?;
            }
            Act::Restore(number) => {
                let place = usize::try_from(*number).unwrap().checked_sub(1);
                let older = place.and_then(|place| self.editions.get(place)).ok_or(NO_VERSION)?;
                next.edit(&older.components, older.category)?;
            }
            Act::Decide(Trigger::Approve | Trigger::Reject, reason) => {
                let newest = next.editions.last_mut().unwrap();
                newest.status = state.newest;
                newest.decided = true;
                newest.reason.clone_from(reason);
            }
            Act::Decide(..) => {}
            Act::Delete => next.gone = true,
        }
        next.tell(event, change.act.reason());
        if change.act.trigger() == Trigger::Edit && next.newest().previous.is_some() {
            next.tell(EventType::CategoryChanged, None);
        }
        Ok(next)
    }

    fn edit(&mut self, components: &Arc<Value>, category: Category) -> Result<(), Refusal> {
        let old = self.newest().category;
        if category != old && self.document["allow_category_change"] == false {
            return Err(LOCKED);
        }
        self.editions.push(Edition {
            status: self.state.newest,
            category,
            previous: (category != old).then_some(old),
            components: Arc::clone(components),
            decided: false,
            reason: None,
        });
        Ok(())
    }

    fn tell(&mut self, kind: EventType, reason: Option<&str>) {
        self.told.push(json!({
            "type": kind.as_str(),
            "version": self.state.version,
            "category": self.newest().category.as_str(),
            "status": self.state.status().as_str(),
            "reason": reason,
        }));
    }

    fn newest(&self) -> &Edition {
        self.editions.last().expect("there is a first one")
    }

    /// What its creation is answered.
    pub(super) fn receipt(&self) -> Value {
        let status = State::initial(self.tenant.review).status().as_str();
        json!({"id": self.id, "status": status, "category": self.document["category"]})
    }

    /// Whether this is the right answer to whoever reads it.
    pub(super) fn is_shown(&self, answer: &Answer) -> bool {
        if self.gone {
            return is_refused(answer, UNKNOWN);
        }
        let tag = format!("\"{}\"", self.revision());
        answer.status == 200 && answer.header("etag") == Some(&tag) && {
            let mut body = answer.json();
            let moments = ["created_at", "updated_at"].map(|it| body[it].take().is_string());
            moments == [true, true] && body == self.shown()
        }
    }

    /// Whether this is the right answer to the change that made it so.
    pub(super) fn is_acknowledged(&self, answer: &Answer) -> bool {
        if self.gone { answer.status == 204 } else { self.is_shown(answer) }
    }

    /// The view of it, without its moments.
    fn shown(&self) -> Value {
        let (newest, state) = (self.newest(), &self.state);
        let mut shown = json!({
            "id": self.id,
            "name": self.name,
            "language": self.document["language"],
            "category": newest.category.as_str(),
            "allow_category_change": self.document["allow_category_change"],
            "status": state.status().as_str(),
            "phone_number_id": self.tenant.phone,
            "version": state.version,
            "components": *newest.components,
            "created_at": null,
            "updated_at": null,
        });
        if let Some(live) = state.live_version() {
            shown["live_version"] = live.into();
        }
        if let (Status::Rejected, Some(reason)) = (newest.status, &newest.reason) {
            shown["rejection_reason"] = reason.as_str().into();
        }
        if let Some(previous) = newest.previous {
            shown["previous_category"] = previous.as_str().into();
        }
        shown
    }

    /// Whether this is the right list of its versions, as far as one page goes.
    pub(super) fn is_listed(&self, answer: &Answer) -> bool {
        let listed = answer.json();
        let Some(listed) = listed["data"].as_array() else { return self.gone };
        let newest_first = self.editions.iter().enumerate().rev();
        listed.len() == self.editions.len().min(100)
            && listed.iter().zip(newest_first).all(|(seen, (place, edition))| {
                seen["version"] == place + 1
                    && seen["status"] == edition.status.as_str()
                    && seen["category"] == edition.category.as_str()
                    && seen["reason"].as_str() == edition.reason.as_deref()
                    && seen["decided_at"].is_string() == edition.decided
            })
    }

    /// Its row, as the file has to hold it.
    pub(super) fn row(&self) -> Value {
        json!({
            "account": self.tenant.account,
            "gone": u8::from(self.gone),
            "name": self.name,
            "language": self.document["language"],
            "allow_category_change": u8::from(self.document["allow_category_change"] == true),
            "hold": self.state.hold.map(Hold::as_str),
            "live_version": self.state.approved,
            "revision": self.revision(),
            "keyed": u8::from(self.keyed),
        })
    }

    /// Its versions, as the file has to hold them.
    pub(super) fn rows_of_versions(&self) -> Vec<Value> {
        let row = |(number, edition): (u64, &Edition)| {
            json!({
                "version": number,
                "status": edition.status.as_str(),
                "category": edition.category.as_str(),
                "previous_category": edition.previous.map(Category::as_str),
                "decided": u8::from(edition.decided),
                "reason": edition.reason,
                "content": {"components": *edition.components},
            })
        };
        (1..).zip(&self.editions).map(row).collect()
    }

    /// Its events, as the file has to hold them.
    pub(super) fn rows_of_events(&self) -> &[Value] {
        &self.told
    }
}
