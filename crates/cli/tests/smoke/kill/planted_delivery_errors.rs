//! Plants errors in the requests that an endpoint received, as a delivery bug could cause them. The
//! delivery checks must find all of them.

use galley_server::delivery::{Secret, sign};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    deliveries::{DeliveryRow, Endpoint, MAX_ATTEMPTS, MAX_IN_FLIGHT},
    receiver::{Reaction, ReceivedRequest, Stall},
    summary,
};

/// Number of templates; their events alternate.
const TEMPLATES: u64 = 3;

/// The last event, and the one event whose delivery fails.
const LAST: u64 = 30;
const FAILED: u64 = 11;

/// An endpoint without errors: the receiver refused some events before it accepted them, one
/// delivery failed, and a kill interrupted several.
fn valid_endpoint() -> Endpoint {
    let mut endpoint = Endpoint {
        account: 7,
        secret: secret(1),
        last: LAST,
        deliveries: (1..=LAST).map(|seq| (seq, delivery(seq))).collect(),
        feed: (1..=LAST).map(event).collect(),
        requests: Vec::new(),
        stalls: vec![Stall { from: time_of(4), to: time_of(5) }],
    };
    for seq in 1..=LAST {
        let (before, after) = (u32::from(seq > 20), 1);
        let refused = if seq == FAILED { MAX_ATTEMPTS } else { usize::from(seq % 5 == 0) };
        for _ in 0..refused {
            endpoint.send(seq, before, Reaction::Refused);
        }
        if seq != FAILED {
            endpoint.send(seq, before, Reaction::Accepted);
        }
        // The last events before the kill belong to different templates.
        let in_flight = [18, 19, 20];
        if seq == 20 {
            for seq in in_flight {
                endpoint.send(seq, after, Reaction::Accepted);
            }
        }
    }
    endpoint
}

fn secret(byte: u8) -> Secret {
    Secret::generate(|bytes| bytes.fill(byte))
}

/// The arrival time of the request at this index.
fn time_of(index: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(index).unwrap()).unwrap()
}

fn event(seq: u64) -> Value {
    json!({"seq": seq, "type": "template.edited", "template_id": (seq % TEMPLATES).to_string()})
}

fn delivery(seq: u64) -> DeliveryRow {
    let template = i64::try_from(seq % TEMPLATES).unwrap();
    let failed = seq == FAILED;
    let status = if failed { "failed" } else { "delivered" }.to_owned();
    DeliveryRow { template, status, attempts: if failed { MAX_ATTEMPTS } else { 1 } }
}

impl Endpoint {
    /// Adds a request, one second after the last one.
    fn send(&mut self, seq: u64, generation: u32, reaction: Reaction) {
        let body = event(seq).to_string();
        self.send_body(seq, body, generation, reaction);
    }

    fn send_body(&mut self, seq: u64, body: String, generation: u32, reaction: Reaction) {
        let mut request = ReceivedRequest {
            generation,
            at: time_of(self.requests.len()),
            path: String::new(),
            id: format!("evt_{}_{seq}_0", self.account),
            timestamp: String::new(),
            signature: String::new(),
            body: body.into_bytes(),
            reaction,
        };
        request.sign(&self.secret, 0);
        self.requests.push(request);
    }

    /// The first request for an event.
    fn first_request(&mut self, seq: u64) -> &mut ReceivedRequest {
        let index = self.first_index(seq);
        &mut self.requests[index]
    }

    /// The index of the first request for an event.
    fn first_index(&self, seq: u64) -> usize {
        let id = format!("evt_{}_{seq}_0", self.account);
        self.requests.iter().position(|request| request.id == id).unwrap()
    }

    fn violations(&self) -> Vec<String> {
        self.check().violations
    }
}

impl ReceivedRequest {
    /// Signs the request with a timestamp this many seconds before its arrival.
    fn sign(&mut self, secret: &Secret, age_seconds: i64) {
        let at = self.at - SignedDuration::from_secs(age_seconds);
        self.timestamp = at.as_second().to_string();
        self.signature = sign(std::slice::from_ref(secret), &self.id, at, &self.body);
    }
}

/// Plants an error in a valid endpoint; part of one of the violations that the checks must report.
type Planted = (fn(&mut Endpoint), &'static str);

const PLANTED: [Planted; 24] = [
    // An event is lost, or was never sent.
    (|it| drop(it.requests.remove(it.first_index(8))), "event 8 is lost"),
    (|it| drop(it.requests.remove(it.first_index(29))), "event 29 is lost"),
    (|it| it.first_request(8).reaction = Reaction::SenderGone, "event 8 is lost"),
    (|it| drop(it.deliveries.remove(&8)), "event 8 has no delivery row"),
    (|it| "waiting".clone_into(&mut it.deliveries.get_mut(&8).unwrap().status), "still waiting"),
    // A delivery fails too early.
    (|it| it.deliveries.get_mut(&FAILED).unwrap().attempts = 9, "9 attempts, 10 received"),
    (|it| drop(it.requests.remove(it.first_index(FAILED))), "10 attempts, 9 received"),
    // An event overtakes one that was not sent before, or that was refused.
    (
        |it| {
            let (one, two) = (it.first_index(6), it.first_index(9));
            it.requests.swap(one, two);
        },
        "event 9 overtook 6",
    ),
    (
        |it| {
            let later = it.requests.remove(it.first_index(13));
            it.requests.insert(it.first_index(10) + 1, later);
        },
        "event 13 overtook 10",
    ),
    (|it| it.first_request(12).reaction = Reaction::Refused, "event 15 overtook 12"),
    // An event is sent after a later one.
    (|it| it.send(27, 2, Reaction::Accepted), "event 27 was sent after 30"),
    // An event is sent while an earlier one is still being retried.
    (
        |it| {
            let later = it.requests.remove(it.first_index(14));
            it.requests.insert(it.first_index(FAILED) + MAX_ATTEMPTS - 1, later);
        },
        "event 11 was sent after 14",
    ),
    // An event is sent twice without a kill.
    (|it| it.send(LAST, 1, Reaction::Accepted), "event 30 was sent again without a kill"),
    (|it| it.send(LAST, 1, Reaction::Reset), "event 30 was sent again without a kill"),
    // More events are sent again after a kill than can have been in flight.
    (
        |it| {
            let first = it.last + 1;
            it.last += MAX_IN_FLIGHT as u64 + 1;
            let new = first..=it.last;
            it.feed.extend(new.clone().map(event));
            it.deliveries.extend(new.clone().map(|seq| {
                (seq, DeliveryRow { template: 100 + seq.cast_signed(), ..delivery(seq) })
            }));
            for generation in [2, 3] {
                new.clone().for_each(|seq| it.send(seq, generation, Reaction::Accepted));
            }
        },
        "9 events were in flight at kill 2",
    ),
    // A repeated request is not the same message.
    (
        |it| it.send_body(20, event(20).to_string() + " ", 2, Reaction::Refused),
        "event 20 was sent again with another id or body",
    ),
    (
        |it| {
            let request = &mut it.requests[0];
            "evt_8_1_0".clone_into(&mut request.id);
            request.sign(&it.secret, 0);
        },
        "evt_8_1_0 is not the id",
    ),
    (
        |it| {
            let index = it.first_index(20) + 4;
            let request = &mut it.requests[index];
            assert_eq!((&*request.id, request.generation), ("evt_7_20_0", 1));
            request.sign(&it.secret, 4);
        },
        "event 20 was sent again with an old timestamp",
    ),
    // A message has no signature, or one of another secret or body.
    (|it| it.requests[3].signature.clear(), "has an invalid signature"),
    (|it| it.requests[3].sign(&secret(2), 0), "has an invalid signature"),
    (|it| it.requests[3].body.push(b' '), "has an invalid signature"),
    // A message has an event that does not exist, or that differs from the feed.
    (|it| it.send(LAST + 1, 1, Reaction::Accepted), "has an unknown event"),
    (|it| it.feed[4]["type"] = "template.deleted".into(), "but was sent as"),
    // The feed skips an event, repeats one, or changes their order.
    (|it| drop(it.feed.remove(7)), "the feed continues with 9, not 8"),
];

const PLANTED_IN_FEED: [Planted; 4] = [
    (|it| drop(it.feed.pop()), "the feed ends with 29, not 30"),
    (|it| it.feed.insert(7, event(7)), "the feed continues with 7, not 8"),
    (|it| it.feed.swap(7, 8), "the feed continues with 9, not 8"),
    (|it| it.feed.push(event(31)), "the feed ends with 31, not 30"),
];

/// A slow machine: the service gave an attempt up and sent the event again and later ones before
/// the receiver read the attempt.
#[test]
fn the_order_of_requests_read_after_their_senders_had_given_up_is_no_violation() {
    let mut late = valid_endpoint();
    late.send(8, 0, Reaction::SenderGone);
    late.requests.last_mut().unwrap().sign(&secret(1), 60);
    assert!(late.violations().is_empty(), "{}", summary(&late.violations()));
}

#[test]
fn the_delivery_checks_find_every_planted_error() {
    let report = valid_endpoint().check();
    assert!(report.violations.is_empty(), "{}", summary(&report.violations));
    let figures = [report.events, report.delivered, report.failed, report.duplicates];
    assert_eq!(figures, [30, 29, 1, 3]);
    // A repeat after a stall is not a violation.
    let mut stalled = valid_endpoint();
    stalled.send(LAST, 1, Reaction::Accepted);
    let count = stalled.requests.len();
    stalled.stalls.push(Stall { from: time_of(count - 2), to: time_of(count - 1) });
    let report = stalled.check();
    assert!(
        report.violations.is_empty() && report.stalled == 1,
        "{report}: {}",
        summary(&report.violations)
    );

    for (plant, expected) in PLANTED.into_iter().chain(PLANTED_IN_FEED) {
        let mut endpoint = valid_endpoint();
        plant(&mut endpoint);
        let violations = endpoint.violations();
        let is_found = violations.iter().any(|violation| violation.contains(expected));
        assert!(is_found, "no check reports {expected:?}: {}", summary(&violations));
    }
}
