//! The traces of recent events, so that their deliveries belong to the trace of the request that
//! caused them.
//!
//! They are kept in memory, not with the events: a delivery after a restart, or by another instance,
//! has no trace.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use galley_domain::id::{AccountId, TemplateId};
use galley_store::{Event, EventSubject};
use jiff::Timestamp;

use super::trace_context::TraceContext;

/// Maximum number of changes whose trace is kept.
const MAX_TRACED_CHANGES: usize = 16_384;

/// The traces of the newest changes of templates. Changes without a trace take no room.
#[derive(Default)]
pub(crate) struct EventTraces(Mutex<Traces>);

/// A change of a template: the account of the client, the template's id, and the time of the change
/// in milliseconds, which its events have, too. A client may name the template of another account.
type ChangeKey = (AccountId, TemplateId, i64);

#[derive(Default)]
struct Traces {
    by_change: HashMap<ChangeKey, TraceContext>,
    /// The keys, oldest first.
    order: VecDeque<ChangeKey>,
}

impl EventTraces {
    /// Keeps the trace of a change that an account makes to a template at this time.
    pub(crate) fn record(
        &self,
        trace: Option<TraceContext>,
        account: AccountId,
        template: TemplateId,
        at: Timestamp,
    ) {
        let Some(trace) = trace else { return };
        let key = (account, template, at.as_millisecond());
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if traces.by_change.insert(key, trace).is_some() {
            return;
        }
        traces.order.push_back(key);
        if traces.order.len() > MAX_TRACED_CHANGES
            && let Some(oldest) = traces.order.pop_front()
        {
            traces.by_change.remove(&oldest);
        }
    }

    /// The trace of the request that caused an event of an account, if it is known.
    pub(crate) fn find(&self, account: AccountId, event: &Event) -> Option<TraceContext> {
        let EventSubject::Template { id, .. } = &event.subject else { return None };
        let traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traces.by_change.get(&(account, *id, event.at.as_millisecond())).copied()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use galley_domain::{
        rulebook::Category,
        template::{Status, lifecycle::EventType},
    };
    use galley_store::Actor;

    use super::*;
    use crate::observability::trace_context::TRACEPARENT;

    fn trace() -> Option<TraceContext> {
        let value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        TraceContext::from_headers(&HeaderMap::from_iter([(TRACEPARENT, value)]))
    }

    fn event(id: u64, millis: i64) -> Event {
        Event {
            seq: 1,
            kind: EventType::Edited,
            subject: EventSubject::Template {
                id: TemplateId::new(id).unwrap(),
                version: 1,
                name: "t".to_owned(),
                language: "en_US".to_owned(),
                category: Category::Utility,
                status: Status::Approved,
            },
            at: Timestamp::from_millisecond(millis).unwrap(),
            actor: Actor::Operator,
            actor_name: String::new(),
            reason: None,
        }
    }

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    #[test]
    fn an_event_has_the_trace_of_its_change_only() {
        let traces = EventTraces::default();
        let at = Timestamp::from_microsecond(5_000_900).unwrap();
        traces.record(trace(), account(1), TemplateId::new(1).unwrap(), at);
        traces.record(None, account(1), TemplateId::new(2).unwrap(), at);
        assert_eq!(traces.find(account(1), &event(1, 5_000)), trace());
        assert_eq!(traces.find(account(1), &event(1, 5_001)), None, "another change");
        assert_eq!(traces.find(account(1), &event(2, 5_000)), None, "another template");
        assert_eq!(traces.find(account(2), &event(1, 5_000)), None, "named by another account");
    }

    #[test]
    fn the_oldest_traces_make_room() {
        let traces = EventTraces::default();
        let id = TemplateId::new(1).unwrap();
        let record = |millis| {
            traces.record(trace(), account(1), id, Timestamp::from_millisecond(millis).unwrap());
        };
        let max = i64::try_from(MAX_TRACED_CHANGES).unwrap();
        (0..max).for_each(record);
        record(0);
        assert_eq!(
            traces.find(account(1), &event(1, 0)),
            trace(),
            "recorded again, and still the oldest"
        );
        record(max);
        assert_eq!(traces.find(account(1), &event(1, 0)), None);
        assert_eq!(traces.find(account(1), &event(1, 1)), trace());
        assert_eq!(traces.find(account(1), &event(1, max)), trace());
    }
}
