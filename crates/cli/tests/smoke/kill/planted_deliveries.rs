//! What a fault of the delivery could do to an endpoint, made up: the look at what it got has to
//! find all of it.

use galley_server::delivery::{Secret, sign};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    brief,
    deliveries::{AT_ONCE, ATTEMPTS, Endpoint, Listed},
    receiver::{Arrival, Reaction, Stall},
};

/// Every third event is of the same template.
const TEMPLATES: u64 = 3;

/// The last event; one of them fails.
const LAST: u64 = 30;
const FAILED: u64 = 11;

/// An endpoint of which everything is as it should be: some events were refused before they were
/// taken, one was given up, and as many as can be were in flight at a kill.
fn good() -> Endpoint {
    let mut endpoint = Endpoint {
        account: 7,
        secret: secret(1),
        last: LAST,
        listed: (1..=LAST).map(|seq| (seq, listed(seq))).collect(),
        feed: (1..=LAST).map(event).collect(),
        arrivals: Vec::new(),
        stalls: vec![Stall { from: moment(4), to: moment(5) }],
    };
    for seq in 1..=LAST {
        let (before, after) = (u32::from(seq > 20), 1);
        let refused = if seq == FAILED { ATTEMPTS } else { usize::from(seq % 5 == 0) };
        for _ in 0..refused {
            endpoint.send(seq, before, Reaction::Refused);
        }
        if seq != FAILED {
            endpoint.send(seq, before, Reaction::Taken);
        }
        // The last events before the kill are of a template each.
        let in_flight = [18, 19, 20];
        if seq == 20 {
            for seq in in_flight {
                endpoint.send(seq, after, Reaction::Taken);
            }
        }
    }
    endpoint
}

fn secret(byte: u8) -> Secret {
    Secret::generate(|bytes| bytes.fill(byte))
}

/// When a request arrives.
fn moment(place: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(place).unwrap()).unwrap()
}

fn event(seq: u64) -> Value {
    json!({"seq": seq, "type": "template.edited", "template_id": (seq % TEMPLATES).to_string()})
}

fn listed(seq: u64) -> Listed {
    let template = i64::try_from(seq % TEMPLATES).unwrap();
    let failed = seq == FAILED;
    let status = if failed { "failed" } else { "delivered" }.to_owned();
    Listed { template, status, attempts: if failed { ATTEMPTS } else { 1 } }
}

impl Endpoint {
    /// One more request, a second after the last one.
    fn send(&mut self, seq: u64, life: u32, reaction: Reaction) {
        let body = event(seq).to_string();
        self.send_body(seq, body, life, reaction);
    }

    fn send_body(&mut self, seq: u64, body: String, life: u32, reaction: Reaction) {
        let mut arrival = Arrival {
            life,
            at: moment(self.arrivals.len()),
            path: String::new(),
            id: format!("evt_{}_{seq}_0", self.account),
            timestamp: String::new(),
            signature: String::new(),
            body: body.into_bytes(),
            reaction,
        };
        arrival.sign(&self.secret, 0);
        self.arrivals.push(arrival);
    }

    /// The first request for an event.
    fn of(&mut self, seq: u64) -> &mut Arrival {
        let place = self.first(seq);
        &mut self.arrivals[place]
    }

    /// Where that stands.
    fn first(&self, seq: u64) -> usize {
        let id = format!("evt_{}_{seq}_0", self.account);
        self.arrivals.iter().position(|arrival| arrival.id == id).unwrap()
    }

    fn faults(&self) -> Vec<String> {
        self.examine().faults
    }
}

impl Arrival {
    /// Signs it as of some seconds before it arrived.
    fn sign(&mut self, secret: &Secret, before: i64) {
        let at = self.at - SignedDuration::from_secs(before);
        self.timestamp = at.as_second().to_string();
        self.signature = sign(std::slice::from_ref(secret), &self.id, at, &self.body);
    }
}

/// What is done to the good one, and what has to be said about it among other things.
type Planted = (fn(&mut Endpoint), &'static str);

const PLANTED: [Planted; 24] = [
    // An event is lost on the way, or before.
    (|it| drop(it.arrivals.remove(it.first(8))), "event 8 is lost"),
    (|it| drop(it.arrivals.remove(it.first(29))), "event 29 is lost"),
    (|it| it.of(8).reaction = Reaction::Unheard, "event 8 is lost"),
    (|it| drop(it.listed.remove(&8)), "event 8 vanished"),
    (|it| "waiting".clone_into(&mut it.listed.get_mut(&8).unwrap().status), "still waiting"),
    // It is given up too early.
    (|it| it.listed.get_mut(&FAILED).unwrap().attempts = 9, "given up after 9 (10)"),
    (|it| drop(it.arrivals.remove(it.first(FAILED))), "given up after 10 (9)"),
    // One overtakes another that was never sent before, or that was refused before.
    (
        |it| {
            let (one, two) = (it.first(6), it.first(9));
            it.arrivals.swap(one, two);
        },
        "event 9 overtook 6",
    ),
    (
        |it| {
            let later = it.arrivals.remove(it.first(13));
            it.arrivals.insert(it.first(10) + 1, later);
        },
        "event 13 overtook 10",
    ),
    (|it| it.of(12).reaction = Reaction::Refused, "event 15 overtook 12"),
    // One comes after a later one, for whatever reason.
    (|it| it.send(27, 2, Reaction::Taken), "event 27 was sent after 30"),
    // One comes while another is still tried.
    (
        |it| {
            let later = it.arrivals.remove(it.first(14));
            it.arrivals.insert(it.first(FAILED) + ATTEMPTS - 1, later);
        },
        "event 11 was sent after 14",
    ),
    // One comes twice far from a kill, whether it is taken or not.
    (|it| it.send(LAST, 1, Reaction::Taken), "event 30 was sent again without a kill"),
    (|it| it.send(LAST, 1, Reaction::Reset), "event 30 was sent again without a kill"),
    // More come again after a kill than can have been in flight.
    (
        |it| {
            let first = it.last + 1;
            it.last += AT_ONCE as u64 + 1;
            let new = first..=it.last;
            it.feed.extend(new.clone().map(event));
            it.listed.extend(
                new.clone()
                    .map(|seq| (seq, Listed { template: 100 + seq.cast_signed(), ..listed(seq) })),
            );
            for life in [2, 3] {
                new.clone().for_each(|seq| it.send(seq, life, Reaction::Taken));
            }
        },
        "9 events were in flight at kill 2",
    ),
    // A repetition is not the same message.
    (
        |it| it.send_body(20, event(20).to_string() + " ", 2, Reaction::Refused),
        "event 20 was sent again with another id or body",
    ),
    (
        |it| {
            let arrival = &mut it.arrivals[0];
            "evt_8_1_0".clone_into(&mut arrival.id);
            arrival.sign(&it.secret, 0);
        },
        "evt_8_1_0 is another id",
    ),
    (
        |it| {
            let place = it.first(20) + 4;
            let arrival = &mut it.arrivals[place];
            assert_eq!((&*arrival.id, arrival.life), ("evt_7_20_0", 1));
            arrival.sign(&it.secret, 4);
        },
        "event 20 was sent again with an old timestamp",
    ),
    // A message is not signed, not with this secret, or not as it is.
    (|it| it.arrivals[3].signature.clear(), "is not signed"),
    (|it| it.arrivals[3].sign(&secret(2), 0), "is not signed"),
    (|it| it.arrivals[3].body.push(b' '), "is not signed"),
    // It tells of something that did not happen, or that happened otherwise.
    (|it| it.send(LAST + 1, 1, Reaction::Taken), "is about no event"),
    (|it| it.feed[4]["type"] = "template.deleted".into(), "but was sent as"),
    // The feed leaves something out, tells it twice, or in another order.
    (|it| drop(it.feed.remove(7)), "the feed goes on with 9, not 8"),
];

const PLANTED_IN_FEED: [Planted; 4] = [
    (|it| drop(it.feed.pop()), "the feed ends with 29, not 30"),
    (|it| it.feed.insert(7, event(7)), "the feed goes on with 7, not 8"),
    (|it| it.feed.swap(7, 8), "the feed goes on with 9, not 8"),
    (|it| it.feed.push(event(31)), "the feed ends with 31, not 30"),
];

#[test]
fn what_a_fault_could_do_to_an_endpoint_is_found() {
    let tally = good().examine();
    assert!(tally.faults.is_empty(), "{}", brief(&tally.faults));
    let figures = [tally.events, tally.delivered, tally.failed, tally.duplicates];
    assert_eq!(figures, [30, 29, 1, 3]);
    // What is sent again because everything stood still is no fault.
    let mut stalled = good();
    stalled.send(LAST, 1, Reaction::Taken);
    let place = stalled.arrivals.len();
    stalled.stalls.push(Stall { from: moment(place - 2), to: moment(place - 1) });
    let tally = stalled.examine();
    assert!(tally.faults.is_empty() && tally.stalled == 1, "{tally}: {}", brief(&tally.faults));

    for (plant, said) in PLANTED.into_iter().chain(PLANTED_IN_FEED) {
        let mut endpoint = good();
        plant(&mut endpoint);
        let faults = endpoint.faults();
        let noticed = faults.iter().any(|fault| fault.contains(said));
        assert!(noticed, "nobody says {said:?}: {}", brief(&faults));
    }
}
