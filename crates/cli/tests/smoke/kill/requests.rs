//! The requests of the kill harness's writers, and their outcomes as the writers know them.

use std::{sync::Arc, time::Instant};

use galley_domain::{rulebook::Category, template::lifecycle::Trigger};
use serde_json::{Value, json};

use super::tenant::Tenant;
use crate::http::{Request, Response};

/// One request, and its outcome.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) tenant: &'static Tenant,
    pub(super) operation: Operation,
    /// When its last byte was written to the socket.
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Operation {
    Create(CreateRequest),
    Change(ChangeRequest),
}

#[derive(Debug)]
pub(super) enum Outcome {
    Acknowledged(Response),
    Refused(Response),
    /// No response arrived.
    Unknown,
}

#[derive(Debug)]
pub(super) struct CreateRequest {
    pub(super) name: String,
    pub(super) document: Value,
    pub(super) key: Option<String>,
    /// Whether several writers try to create this name.
    pub(super) contested: bool,
}

#[derive(Debug)]
pub(super) struct ChangeRequest {
    pub(super) id: String,
    pub(super) action: Action,
    pub(super) if_match: Option<u64>,
    /// Whether several writers change this template.
    pub(super) contested: bool,
}

#[derive(Debug)]
pub(super) enum Action {
    Edit { components: Option<Arc<Value>>, category: Option<Category> },
    Restore(u64),
    Decide(Trigger, Option<String>),
    Delete,
}

impl SentRequest {
    pub(super) fn new(tenant: &'static Tenant, operation: Operation) -> Self {
        Self { tenant, operation, at: Instant::now(), outcome: Outcome::Unknown }
    }

    pub(super) fn request(&self) -> Request {
        match &self.operation {
            Operation::Create(create) => create.request(self.tenant),
            Operation::Change(change) => change.request(self.tenant),
        }
    }

    /// The kind of request, for counting.
    pub(super) fn label(&self) -> &'static str {
        match &self.operation {
            Operation::Create(_) => "create",
            Operation::Change(change) => change.action.label(),
        }
    }

    pub(super) fn change(&self) -> Option<&ChangeRequest> {
        match &self.operation {
            Operation::Create(_) => None,
            Operation::Change(change) => Some(change),
        }
    }

    pub(super) fn response(&self) -> Option<&Response> {
        match &self.outcome {
            Outcome::Acknowledged(response) | Outcome::Refused(response) => Some(response),
            Outcome::Unknown => None,
        }
    }
}

impl CreateRequest {
    fn request(&self, tenant: &Tenant) -> Request {
        let request = tenant.template_request_with_body("POST", "", &self.document);
        match &self.key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        }
    }
}

impl ChangeRequest {
    pub(super) fn is_delete(&self) -> bool {
        matches!(self.action, Action::Delete)
    }

    /// The value of its `If-Match` header.
    pub(super) fn etag(&self) -> Option<String> {
        self.if_match.map(|revision| format!("\"{revision}\""))
    }

    fn request(&self, tenant: &Tenant) -> Request {
        let item = format!("/{}", self.id);
        let request = match &self.action {
            Action::Edit { components, category } => {
                let mut edit = json!({});
                if let Some(components) = components {
                    edit["components"] = (**components).clone();
                }
                if let Some(category) = category {
                    edit["category"] = category.as_str().into();
                }
                tenant.template_request_with_body("PATCH", &item, &edit)
            }
            Action::Restore(number) => tenant.template_request_with_body(
                "PATCH",
                &item,
                &json!({"restore_version": number}),
            ),
            Action::Decide(trigger, reason) => {
                let mut decision = json!({"decision": trigger.as_str()});
                if let Some(reason) = reason {
                    decision["reason"] = reason.as_str().into();
                }
                tenant.template_request_with_body("POST", &format!("{item}/review"), &decision)
            }
            Action::Delete => tenant.template_request("DELETE", &item),
        };
        match self.etag() {
            Some(etag) => request.header("If-Match", &etag),
            None => request,
        }
    }
}

impl Action {
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
            Self::Edit { category: Some(_), .. } => "category edit",
            Self::Restore(_) => "restore",
            _ => self.trigger().as_str(),
        }
    }
}
