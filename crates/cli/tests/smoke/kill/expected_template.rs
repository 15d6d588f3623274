//! The expected state of a template: its create and every change known to have taken effect,
//! replayed through the transition table.

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
    requests::{Action, ChangeRequest, CreateRequest},
    tenant::Tenant,
};
use crate::http::Response;

/// HTTP status and problem slug of a refused request.
pub(super) type Refusal = (u16, &'static str);

pub(super) const UNKNOWN: Refusal = (404, "template-unknown");
pub(super) const OUTDATED: Refusal = (412, "revision-outdated");
pub(super) const NAME_TAKEN: Refusal = (409, "name-taken");
const INVALID_TRANSITION: Refusal = (409, "move-not-possible");
const UNKNOWN_VERSION: Refusal = (404, "version-unknown");
const CATEGORY_LOCKED: Refusal = (409, "category-locked");

/// Whether a response is this refusal.
pub(super) fn is_refused(response: &Response, (status, slug): Refusal) -> bool {
    response.status == status && response.json()["type"] == format!("/problems/{slug}")
}

#[derive(Clone, Debug)]
pub(super) struct ExpectedTemplate {
    pub(super) tenant: &'static Tenant,
    pub(super) id: String,
    pub(super) name: String,
    /// Whether several writers tried to create it.
    pub(super) contested: bool,
    pub(super) state: State,
    pub(super) deleted: bool,
    has_idempotency_key: bool,
    document: Arc<Value>,
    versions: Vec<Version>,
    events: Vec<Value>,
}

/// One version.
#[derive(Clone, Debug)]
struct Version {
    status: Status,
    category: Category,
    previous: Option<Category>,
    components: Arc<Value>,
    /// Whether a reviewer has approved or rejected it.
    decided: bool,
    reason: Option<String>,
}

impl ExpectedTemplate {
    /// A template right after its create.
    pub(super) fn created(tenant: &'static Tenant, id: &str, create: &CreateRequest) -> Self {
        let CreateRequest { name, document, key, contested } = create;
        let state = State::initial(tenant.review);
        let category = document["category"].as_str().and_then(Category::parse).unwrap();
        let first = Version {
            status: state.newest_status,
            category,
            previous: None,
            components: Arc::new(document["components"].clone()),
            decided: false,
            reason: None,
        };
        let mut template = Self {
            tenant,
            id: id.to_owned(),
            name: name.clone(),
            contested: *contested,
            state,
            deleted: false,
            has_idempotency_key: key.is_some(),
            document: Arc::new(document.clone()),
            versions: vec![first],
            events: Vec::new(),
        };
        template.record_event(EventType::Created, None);
        template
    }

    /// The revision: the number of its events.
    pub(super) fn revision(&self) -> u64 {
        self.events.len() as u64
    }

    /// The template after a change, or the refusal of the change.
    pub(super) fn after(&self, change: &ChangeRequest) -> Result<Self, Refusal> {
        if self.deleted {
            return Err(UNKNOWN);
        }
        if change.if_match.is_some_and(|revision| revision != self.revision()) {
            return Err(OUTDATED);
        }
        let transition = self.state.apply(change.action.trigger(), self.tenant.review);
        let (state, event) = transition.map_err(|_| INVALID_TRANSITION)?;
        let mut next = Self { state, ..self.clone() };
        match &change.action {
            Action::Edit { components, category } => {
                let newest = self.newest();
                let components = components.as_ref().unwrap_or(&newest.components);
                next.edit(components, category.unwrap_or(newest.category))?;
            }
            Action::Restore(number) => {
                let index = usize::try_from(*number).unwrap().checked_sub(1);
                let older =
                    index.and_then(|index| self.versions.get(index)).ok_or(UNKNOWN_VERSION)?;
                next.edit(&older.components, older.category)?;
            }
            Action::Decide(Trigger::Approve | Trigger::Reject, reason) => {
                let newest = next.versions.last_mut().unwrap();
                newest.status = state.newest_status;
                newest.decided = true;
                newest.reason.clone_from(reason);
            }
            Action::Decide(..) => {}
            Action::Delete => next.deleted = true,
        }
        next.record_event(event, change.action.reason());
        if change.action.trigger() == Trigger::Edit && next.newest().previous.is_some() {
            next.record_event(EventType::CategoryChanged, None);
        }
        Ok(next)
    }

    fn edit(&mut self, components: &Arc<Value>, category: Category) -> Result<(), Refusal> {
        let old = self.newest().category;
        if category != old && self.document["allow_category_change"] == false {
            return Err(CATEGORY_LOCKED);
        }
        self.versions.push(Version {
            status: self.state.newest_status,
            category,
            previous: (category != old).then_some(old),
            components: Arc::clone(components),
            decided: false,
            reason: None,
        });
        Ok(())
    }

    fn record_event(&mut self, kind: EventType, reason: Option<&str>) {
        self.events.push(json!({
            "type": kind.as_str(),
            "version": self.state.version,
            "category": self.newest().category.as_str(),
            "status": self.state.status().as_str(),
            "reason": reason,
        }));
    }

    fn newest(&self) -> &Version {
        self.versions.last().expect("a template has at least one version")
    }

    /// The response to its create.
    pub(super) fn create_response(&self) -> Value {
        let status = State::initial(self.tenant.review).status().as_str();
        json!({"id": self.id, "status": status, "category": self.document["category"]})
    }

    /// Whether a read of the template may get this response.
    pub(super) fn matches_read(&self, response: &Response) -> bool {
        if self.deleted {
            return is_refused(response, UNKNOWN);
        }
        let tag = format!("\"{}\"", self.revision());
        response.status == 200 && response.header("etag") == Some(&tag) && {
            let mut body = response.json();
            let times = ["created_at", "updated_at"].map(|it| body[it].take().is_string());
            times == [true, true] && body == self.view()
        }
    }

    /// Whether the change that led to this state may get this response.
    pub(super) fn matches_change_response(&self, response: &Response) -> bool {
        if self.deleted { response.status == 204 } else { self.matches_read(response) }
    }

    /// The JSON view of the template, with null for its timestamps.
    fn view(&self) -> Value {
        let (newest, state) = (self.newest(), &self.state);
        let mut view = json!({
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
            view["live_version"] = live.into();
        }
        if let (Status::Rejected, Some(reason)) = (newest.status, &newest.reason) {
            view["rejection_reason"] = reason.as_str().into();
        }
        if let Some(previous) = newest.previous {
            view["previous_category"] = previous.as_str().into();
        }
        view
    }

    /// Whether this is the correct first page of its versions.
    pub(super) fn matches_version_list(&self, response: &Response) -> bool {
        let listed = response.json();
        let Some(listed) = listed["data"].as_array() else { return self.deleted };
        let newest_first = self.versions.iter().enumerate().rev();
        listed.len() == self.versions.len().min(100)
            && listed.iter().zip(newest_first).all(|(seen, (index, version))| {
                seen["version"] == index + 1
                    && seen["status"] == version.status.as_str()
                    && seen["category"] == version.category.as_str()
                    && seen["reason"].as_str() == version.reason.as_deref()
                    && seen["decided_at"].is_string() == version.decided
            })
    }

    /// The expected row of the template.
    pub(super) fn row(&self) -> Value {
        json!({
            "account": self.tenant.account,
            "deleted": u8::from(self.deleted),
            "name": self.name,
            "language": self.document["language"],
            "allow_category_change": u8::from(self.document["allow_category_change"] == true),
            "hold": self.state.hold.map(Hold::as_str),
            "live_version": self.state.approved_version,
            "revision": self.revision(),
            "has_idempotency_key": u8::from(self.has_idempotency_key),
        })
    }

    /// The expected rows of its versions.
    pub(super) fn version_rows(&self) -> Vec<Value> {
        let row = |(number, version): (u64, &Version)| {
            json!({
                "version": number,
                "status": version.status.as_str(),
                "category": version.category.as_str(),
                "previous_category": version.previous.map(Category::as_str),
                "decided": u8::from(version.decided),
                "reason": version.reason,
                "content": {"components": *version.components},
            })
        };
        (1..).zip(&self.versions).map(row).collect()
    }

    /// The expected rows of its events.
    pub(super) fn event_rows(&self) -> &[Value] {
        &self.events
    }
}
