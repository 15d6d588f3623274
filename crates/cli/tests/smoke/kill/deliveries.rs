//! Checks of the requests that an endpoint received: no event is lost, none overtakes an earlier
//! one of the same template, and only a kill causes a duplicate.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use galley_server::delivery::{Secret, SignatureHeaders, verify};
use jiff::SignedDuration;
use serde_json::Value;

use super::{
    Count,
    receiver::{Reaction, ReceivedRequest, Stall},
};

/// Number of concurrent deliveries to an endpoint, and so of deliveries in flight at a kill.
pub(super) const MAX_IN_FLIGHT: usize = 8;

/// Time limit of a delivery attempt.
pub(super) const ATTEMPT_TIMEOUT: SignedDuration = SignedDuration::from_millis(500);

/// Number of attempts before a delivery fails.
pub(super) const MAX_ATTEMPTS: usize = 10;

/// A row of the delivery table.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRow {
    pub(super) template: i64,
    pub(super) status: String,
    pub(super) attempts: usize,
}

/// An endpoint, and all data about its deliveries.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// The account's id, which is part of its message ids.
    pub(super) account: i64,
    pub(super) secret: Secret,
    /// The number of the account's last event. The endpoint subscribes to all events.
    pub(super) last: u64,
    /// By event number.
    pub(super) deliveries: BTreeMap<u64, DeliveryRow>,
    /// The account's events as the feed reader has read them.
    pub(super) feed: Vec<Value>,
    /// In order of arrival.
    pub(super) requests: Vec<ReceivedRequest>,
    pub(super) stalls: Vec<Stall>,
}

/// Results of checking one or more endpoints.
#[derive(Debug, Default)]
pub(super) struct DeliveryReport {
    pub(super) events: usize,
    pub(super) delivered: usize,
    pub(super) failed: usize,
    pub(super) requests: Count,
    /// Number of requests that the receiver accepted for events it had already accepted.
    pub(super) duplicates: usize,
    /// Largest number of events that were in flight at one kill and sent again.
    pub(super) in_flight: usize,
    /// Number of events that were sent again because the machine stalled.
    pub(super) stalled: usize,
    /// Number of interrupted connections of the feed readers.
    pub(super) interrupted: usize,
    pub(super) violations: Vec<String>,
}

impl DeliveryReport {
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.delivered += other.delivered;
        self.failed += other.failed;
        for (label, number) in other.requests.0 {
            *self.requests.0.entry(label).or_default() += number;
        }
        self.duplicates += other.duplicates;
        self.in_flight = self.in_flight.max(other.in_flight);
        self.stalled += other.stalled;
        self.interrupted += other.interrupted;
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for DeliveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, delivered, failed, requests, duplicates, in_flight, .. } = self;
        writeln!(f, "{events} events, {delivered} delivered, {failed} failed")?;
        writeln!(f, "  requests:     {requests}")?;
        write!(f, "  duplicates:   {duplicates}; at most {in_flight} in flight at one kill")?;
        writeln!(f, ", {} after a stall", self.stalled)?;
        write!(f, "  feed:         read to its end, interrupted {} times", self.interrupted)
    }
}

impl Endpoint {
    pub(super) fn check(&self) -> DeliveryReport {
        let mut report =
            DeliveryReport { events: self.deliveries.len(), ..DeliveryReport::default() };
        let mut in_order = Vec::new();
        let mut requests: BTreeMap<u64, Vec<&ReceivedRequest>> = BTreeMap::new();
        for request in &self.requests {
            report.requests.add(request.reaction.label());
            match self.event_number(request) {
                Ok(seq) => {
                    requests.entry(seq).or_default().push(request);
                    if request.reaction != Reaction::SenderGone {
                        in_order.push((seq, request));
                    }
                }
                Err(violation) => report.violations.push(violation),
            }
        }
        for seq in 1..=self.last {
            let requests = requests.get(&seq).map_or(&[][..], Vec::as_slice);
            match self.was_delivered(seq, requests) {
                Ok(true) => report.delivered += 1,
                Ok(false) => report.failed += 1,
                Err(violation) => report.violations.push(violation),
            }
        }
        // The receiver read these when their senders had given up, perhaps after later requests.
        for all in requests.values_mut() {
            all.retain(|it| it.reaction != Reaction::SenderGone);
        }
        let violations = requests.iter().filter_map(|(seq, all)| check_repeats(*seq, all).err());
        report.violations.extend(violations);
        report.violations.extend(self.check_order(&in_order).err());
        self.check_duplicates(&requests, &mut report);
        report.violations.extend(check_feed(&self.feed, self.last).err());
        report
    }

    /// The number of the request's event, if the request is signed and has the right content.
    fn event_number(&self, request: &ReceivedRequest) -> Result<u64, String> {
        let ReceivedRequest { id, timestamp, signature, body, at, .. } = request;
        let headers = SignatureHeaders { id, timestamp, signature };
        let verified = verify(&self.secret, headers, body, *at);
        verified.map_err(|error| format!("{id} has an invalid signature: {error}"))?;
        let payload: Value = serde_json::from_slice(body)
            .map_err(|error| format!("{id} is not JSON: {error}: {body:?}"))?;
        let seq = payload["seq"].as_u64().filter(|seq| (1..=self.last).contains(seq));
        let seq = seq.ok_or_else(|| format!("{id} has an unknown event: {payload}"))?;
        if !id.starts_with(&format!("evt_{}_{seq}_", self.account)) {
            return Err(format!("{id} is not the id of event {seq}"));
        }
        let index = usize::try_from(seq).unwrap() - 1;
        match self.feed.get(index) {
            Some(event) if *event != payload => {
                Err(format!("event {seq} is {event} in the feed, but was sent as {payload}"))
            }
            _ => Ok(seq),
        }
    }

    /// Whether the event was delivered or its delivery failed; any other state is a violation.
    fn was_delivered(&self, seq: u64, sent: &[&ReceivedRequest]) -> Result<bool, String> {
        let delivery = self.deliveries.get(&seq);
        let delivery = delivery.ok_or_else(|| format!("event {seq} has no delivery row"))?;
        let DeliveryRow { status, attempts, .. } = delivery;
        let received = sent.len();
        let accepted = sent.iter().any(|it| it.reaction == Reaction::Accepted);
        match &**status {
            "delivered" if accepted => Ok(true),
            "delivered" => Err(format!("event {seq} is lost: the receiver has not accepted it")),
            "failed" if *attempts == MAX_ATTEMPTS && received >= MAX_ATTEMPTS => Ok(false),
            "failed" => {
                let counts = format!("{attempts} attempts, {received} received");
                Err(format!("event {seq} failed too early: {counts}"))
            }
            other => Err(format!("event {seq} is still {other}")),
        }
    }

    /// Checks that each event is sent after all earlier ones of its template are accepted or have
    /// failed, and never after a later one.
    fn check_order(&self, all: &[(u64, &ReceivedRequest)]) -> Result<(), String> {
        let mut queues: HashMap<i64, Vec<u64>> = HashMap::new();
        for (seq, delivery) in &self.deliveries {
            queues.entry(delivery.template).or_default().push(*seq);
        }
        let mut accepted = HashSet::new();
        let is_finished = |accepted: &HashSet<u64>, seq: &u64| {
            accepted.contains(seq) || self.deliveries[seq].status == "failed"
        };
        // The index of the last sent event in the queue of each template.
        let mut positions: HashMap<i64, usize> = HashMap::new();
        for (seq, request) in all {
            let Some(DeliveryRow { template, .. }) = self.deliveries.get(seq) else { continue };
            let queue = &queues[template];
            let position = queue.iter().position(|it| it == seq).unwrap();
            let last = positions.entry(*template).or_default();
            let Some(earlier) = queue.get(*last..position) else {
                let later = queue[*last];
                return Err(format!("event {seq} was sent after {later} of the same template"));
            };
            if let Some(earlier) = earlier.iter().find(|it| !is_finished(&accepted, it)) {
                return Err(format!("event {seq} overtook {earlier} of the same template"));
            }
            *last = position;
            if request.reaction == Reaction::Accepted {
                accepted.insert(*seq);
            }
        }
        Ok(())
    }

    /// Checks that an accepted event is sent again only if the service was killed before it recorded
    /// the delivery, or if the machine stalled for longer than the attempt's time limit.
    fn check_duplicates(
        &self,
        requests: &BTreeMap<u64, Vec<&ReceivedRequest>>,
        report: &mut DeliveryReport,
    ) {
        // Number of events known to be in flight at the end of each service process.
        let mut in_flight: BTreeMap<u32, usize> = BTreeMap::new();
        for (seq, all) in requests {
            let mut accepted = false;
            for pair in all.windows(2) {
                let [before, after] = pair else { continue };
                if before.reaction == Reaction::Accepted {
                    accepted = true;
                    if before.generation < after.generation {
                        *in_flight.entry(before.generation).or_default() += 1;
                    } else if self.is_stalled(before, after) {
                        report.stalled += 1;
                    } else {
                        report
                            .violations
                            .push(format!("event {seq} was sent again without a kill"));
                    }
                }
                report.duplicates += usize::from(accepted && after.reaction == Reaction::Accepted);
            }
        }
        for (kill, number) in in_flight {
            report.in_flight = report.in_flight.max(number);
            if number > MAX_IN_FLIGHT {
                let violation = format!("{number} events were in flight at kill {kill}: too many");
                report.violations.push(violation);
            }
        }
    }

    fn is_stalled(&self, before: &ReceivedRequest, after: &ReceivedRequest) -> bool {
        self.stalls.iter().any(|it| it.from <= after.at && before.at <= it.to + ATTEMPT_TIMEOUT)
    }
}

/// Checks that every repeated request is the same message with a new signature.
fn check_repeats(seq: u64, all: &[&ReceivedRequest]) -> Result<(), String> {
    let seconds = |request: &ReceivedRequest| request.timestamp.parse::<i64>().unwrap_or_default();
    for pair in all.windows(2) {
        let [before, after] = pair else { continue };
        if (&before.id, &before.body) != (&after.id, &after.body) {
            return Err(format!("event {seq} was sent again with another id or body"));
        }
        // Timestamps have a resolution of one second. A repeat after an expired lease is later than
        // that; other repeats may have the same timestamp.
        let lease_expired =
            before.generation != after.generation && before.reaction == Reaction::Accepted;
        if seconds(after) < seconds(before) + i64::from(lease_expired) {
            return Err(format!("event {seq} was sent again with an old timestamp"));
        }
    }
    Ok(())
}

/// Checks that the feed reader read every event once and in order.
fn check_feed(feed: &[Value], last: u64) -> Result<(), String> {
    let numbers = feed.iter().map(|event| event["seq"].as_u64().unwrap_or_default());
    for (seen, expected) in numbers.zip(1..) {
        if seen != expected {
            return Err(format!("the feed continues with {seen}, not {expected}"));
        }
    }
    if feed.len() as u64 == last {
        Ok(())
    } else {
        Err(format!("the feed ends with {}, not {last}", feed.len()))
    }
}
