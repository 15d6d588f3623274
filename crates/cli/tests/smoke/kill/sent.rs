//! What a writer of the kill harness sends, and what came of it as far as the writer knows.

use std::{sync::Arc, time::Instant};

use galley_domain::{rulebook::Category, template::lifecycle::Trigger};
use serde_json::{Value, json};

use super::tenant::Tenant;
use crate::http::{Answer, Request};

/// One request.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) tenant: &'static Tenant,
    pub(super) wish: Wish,
    /// When the last of its bytes was handed over.
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Wish {
    Create(Creation),
    Change(Change),
}

#[derive(Debug)]
pub(super) enum Outcome {
    Acknowledged(Answer),
    Refused(Answer),
    /// Not answered.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Creation {
    pub(super) name: String,
    pub(super) document: Value,
    pub(super) key: Option<String>,
    /// Whether several writers send this name.
    pub(super) contested: bool,
}

#[derive(Debug)]
pub(super) struct Change {
    pub(super) id: String,
    pub(super) act: Act,
    pub(super) if_match: Option<u64>,
    /// Whether several writers change this template.
    pub(super) contested: bool,
}

#[derive(Debug)]
pub(super) enum Act {
    Edit { components: Option<Arc<Value>>, category: Option<Category> },
    Restore(u64),
    Decide(Trigger, Option<String>),
    Delete,
}

impl Sent {
    pub(super) fn new(tenant: &'static Tenant, wish: Wish) -> Self {
        Self { tenant, wish, at: Instant::now(), outcome: Outcome::Unknown }
    }

    pub(super) fn request(&self) -> Request {
        match &self.wish {
            Wish::Create(creation) => creation.request(self.tenant),
            Wish::Change(change) => change.request(self.tenant),
        }
    }

    /// What it is counted as.
    pub(super) fn label(&self) -> &'static str {
        match &self.wish {
            Wish::Create(_) => "create",
            Wish::Change(change) => change.act.label(),
        }
    }

    pub(super) fn change(&self) -> Option<&Change> {
        match &self.wish {
            Wish::Create(_) => None,
            Wish::Change(change) => Some(change),
        }
    }

    pub(super) fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Acknowledged(answer) | Outcome::Refused(answer) => Some(answer),
            Outcome::Unknown => None,
        }
    }
}

impl Creation {
    fn request(&self, tenant: &Tenant) -> Request {
        let request = tenant.with_body("POST", "", &self.document);
        match &self.key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        }
    }
}

impl Change {
    pub(super) fn is_delete(&self) -> bool {
        matches!(self.act, Act::Delete)
    }

    /// The tag in its `If-Match`.
    pub(super) fn tag(&self) -> Option<String> {
        self.if_match.map(|revision| format!("\"{revision}\""))
    }

    fn request(&self, tenant: &Tenant) -> Request {
        let item = format!("/{}", self.id);
        let request = match &self.act {
            Act::Edit { components, category } => {
                let mut edit = json!({});
                if let Some(components) = components {
                    edit["components"] = (**components).clone();
                }
                if let Some(category) = category {
                    edit["category"] = category.as_str().into();
                }
                tenant.with_body("PATCH", &item, &edit)
            }
            Act::Restore(number) => {
                tenant.with_body("PATCH", &item, &json!({"restore_version": number}))
            }
            Act::Decide(trigger, reason) => {
                let mut decision = json!({"decision": trigger.as_str()});
                if let Some(reason) = reason {
                    decision["reason"] = reason.as_str().into();
                }
                tenant.with_body("POST", &format!("{item}/review"), &decision)
            }
            Act::Delete => tenant.request("DELETE", &item),
        };
        match self.tag() {
            Some(tag) => request.header("If-Match", &tag),
            None => request,
        }
    }
}

impl Act {
    pub(super) fn trigger(&self) -> Trigger {
        match self {
            Self::Edit { .. } | Self::Restore(_) => Trigger::Edit,
            Self::Decide(trigger, _) => *trigger,
            Self::Delete => Trigger::Delete,
        }
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Decide(_, reason) => reason.as_deref(),
            _ => None,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Edit { category: Some(_), .. } => "edit of the category",
            Self::Restore(_) => "restore",
            _ => self.trigger().as_str(),
        }
    }
}
