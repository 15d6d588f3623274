//! A look at what an endpoint got, in all its lives and those of its senders: no event is lost,
//! none overtakes another of its template, none comes twice but for a kill.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use galley_server::delivery::{Secret, SignatureHeaders, verify};
use jiff::SignedDuration;
use serde_json::Value;

use super::{
    Count,
    receiver::{Arrival, Reaction, Stall},
};

/// How many events are on their way to an endpoint at once: so many can be in flight at a kill.
pub(super) const AT_ONCE: usize = 8;

/// How long an attempt may take.
pub(super) const TIMEOUT: SignedDuration = SignedDuration::from_millis(500);

/// How often an event is tried before it is given up.
pub(super) const ATTEMPTS: usize = 10;

/// What the service says about an event on its way to an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) template: i64,
    pub(super) status: String,
    pub(super) attempts: usize,
}

/// An endpoint, and everything that is known of what was sent to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// The account's number, which is in the ids of its messages.
    pub(super) account: i64,
    pub(super) secret: Secret,
    /// The account's last event; the endpoint wants all from the first on.
    pub(super) last: u64,
    /// By the numbers of the events.
    pub(super) listed: BTreeMap<u64, Listed>,
    /// The feed as somebody else has read it.
    pub(super) feed: Vec<Value>,
    /// In their order.
    pub(super) arrivals: Vec<Arrival>,
    pub(super) stalls: Vec<Stall>,
}

/// What came of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) events: usize,
    pub(super) delivered: usize,
    pub(super) failed: usize,
    pub(super) requests: Count,
    /// How often an event was taken that had been taken before.
    pub(super) duplicates: usize,
    /// How many events were in flight at a kill and sent again, at most.
    pub(super) in_flight: usize,
    /// How many were sent again because everything stood still.
    pub(super) stalled: usize,
    /// How often somebody who followed the feed was cut off.
    pub(super) interrupted: usize,
    pub(super) faults: Vec<String>,
}

impl Tally {
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
        self.faults.extend(other.faults);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, delivered, failed, requests, duplicates, in_flight, .. } = self;
        writeln!(f, "{events} events, {delivered} delivered, {failed} failed")?;
        writeln!(f, "  requests:     {requests}")?;
        write!(f, "  taken twice:  {duplicates}; {in_flight} in flight at one kill at most")?;
        writeln!(f, ", {} when everything stood still", self.stalled)?;
        write!(f, "  feed:         read to its end, cut off {} times", self.interrupted)
    }
}

impl Endpoint {
    pub(super) fn examine(&self) -> Tally {
        let mut tally = Tally { events: self.listed.len(), ..Tally::default() };
        let mut all = Vec::new();
        let mut requests: BTreeMap<u64, Vec<&Arrival>> = BTreeMap::new();
        for arrival in &self.arrivals {
            tally.requests.add(arrival.reaction.label());
            match self.read(arrival) {
                Ok(seq) => {
                    all.push((seq, arrival));
                    requests.entry(seq).or_default().push(arrival);
                }
                Err(fault) => tally.faults.push(fault),
            }
        }
        for seq in 1..=self.last {
            let requests = requests.get(&seq).map_or(&[][..], Vec::as_slice);
            match self.is_done(seq, requests) {
                Ok(true) => tally.delivered += 1,
                Ok(false) => tally.failed += 1,
                Err(fault) => tally.faults.push(fault),
            }
        }
        let faults = requests.iter().filter_map(|(seq, all)| is_same_again(*seq, all).err());
        tally.faults.extend(faults);
        tally.faults.extend(self.is_in_order(&all).err());
        self.repetitions(&requests, &mut tally);
        tally.faults.extend(is_whole(&self.feed, self.last).err());
        tally
    }

    /// The number of the event, if this message is really about one, and from whom it should be.
    fn read(&self, arrival: &Arrival) -> Result<u64, String> {
        let Arrival { id, timestamp, signature, body, at, .. } = arrival;
        let signed = SignatureHeaders { id, timestamp, signature };
        let is_signed = verify(&self.secret, signed, body, *at);
        is_signed.map_err(|error| format!("{id} is not signed: {error}"))?;
        let told: Value = serde_json::from_slice(body)
            .map_err(|error| format!("{id} is not JSON: {error}: {body:?}"))?;
        let seq = told["seq"].as_u64().filter(|seq| (1..=self.last).contains(seq));
        let seq = seq.ok_or_else(|| format!("{id} is about no event: {told}"))?;
        if !id.starts_with(&format!("evt_{}_{seq}_", self.account)) {
            return Err(format!("{id} is another id than that of event {seq}"));
        }
        let place = usize::try_from(seq).unwrap() - 1;
        match self.feed.get(place) {
            Some(event) if *event != told => {
                Err(format!("event {seq} is {event} in the feed, but was sent as {told}"))
            }
            _ => Ok(seq),
        }
    }

    /// Whether an event was delivered, rather than given up: it has to be one of these.
    fn is_done(&self, seq: u64, sent: &[&Arrival]) -> Result<bool, String> {
        let listed = self.listed.get(&seq);
        let listed = listed.ok_or_else(|| format!("event {seq} vanished: it is not listed"))?;
        let Listed { status, attempts, .. } = listed;
        let (tried, taken) = (sent.len(), sent.iter().any(|it| it.reaction == Reaction::Taken));
        match &**status {
            "delivered" if taken => Ok(true),
            "delivered" => Err(format!("event {seq} is lost: nobody has taken it")),
            "failed" if *attempts == ATTEMPTS && tried >= ATTEMPTS => Ok(false),
            "failed" => {
                Err(format!("event {seq} was given up after {attempts} ({tried}) attempts"))
            }
            other => Err(format!("event {seq} is still {other}")),
        }
    }

    /// No event is sent before every earlier one of its template was taken or given up, and none
    /// after a later one.
    fn is_in_order(&self, all: &[(u64, &Arrival)]) -> Result<(), String> {
        let mut lines: HashMap<i64, Vec<u64>> = HashMap::new();
        for (seq, listed) in &self.listed {
            lines.entry(listed.template).or_default().push(*seq);
        }
        let mut taken = HashSet::new();
        let is_done = |taken: &HashSet<u64>, seq: &u64| {
            taken.contains(seq) || self.listed[seq].status == "failed"
        };
        // Where in the line of its template the last request was.
        let mut places: HashMap<i64, usize> = HashMap::new();
        for (seq, arrival) in all {
            let Some(Listed { template, .. }) = self.listed.get(seq) else { continue };
            let line = &lines[template];
            let place = line.iter().position(|it| it == seq).unwrap();
            let last = places.entry(*template).or_default();
            let Some(earlier) = line.get(*last..place) else {
                let later = line[*last];
                return Err(format!("event {seq} was sent after {later} of the same template"));
            };
            if let Some(earlier) = earlier.iter().find(|it| !is_done(&taken, it)) {
                return Err(format!("event {seq} overtook {earlier} of the same template"));
            }
            *last = place;
            if arrival.reaction == Reaction::Taken {
                taken.insert(*seq);
            }
        }
        Ok(())
    }

    /// What was taken is sent again only if the sender was killed before it could note that, or if
    /// everything stood still for so long that it gave up.
    fn repetitions(&self, requests: &BTreeMap<u64, Vec<&Arrival>>, tally: &mut Tally) {
        // How many events were in flight, as far as that can be seen, when a life ended.
        let mut in_flight: BTreeMap<u32, usize> = BTreeMap::new();
        for (seq, all) in requests {
            let mut taken = false;
            for pair in all.windows(2) {
                let [before, after] = pair else { continue };
                if before.reaction == Reaction::Taken {
                    taken = true;
                    if before.life < after.life {
                        *in_flight.entry(before.life).or_default() += 1;
                    } else if self.is_stalled(before, after) {
                        tally.stalled += 1;
                    } else {
                        tally.faults.push(format!("event {seq} was sent again without a kill"));
                    }
                }
                tally.duplicates += usize::from(taken && after.reaction == Reaction::Taken);
            }
        }
        for (life, number) in in_flight {
            tally.in_flight = tally.in_flight.max(number);
            if number > AT_ONCE {
                let fault = format!("{number} events were in flight at kill {life}: too many");
                tally.faults.push(fault);
            }
        }
    }

    fn is_stalled(&self, before: &Arrival, after: &Arrival) -> bool {
        self.stalls.iter().any(|it| it.from <= after.at && before.at <= it.to + TIMEOUT)
    }
}

/// Every repetition is the same message, signed anew.
fn is_same_again(seq: u64, all: &[&Arrival]) -> Result<(), String> {
    let seconds = |arrival: &Arrival| arrival.timestamp.parse::<i64>().unwrap_or_default();
    for pair in all.windows(2) {
        let [before, after] = pair else { continue };
        if (&before.id, &before.body) != (&after.id, &after.body) {
            return Err(format!("event {seq} was sent again with another id or body"));
        }
        // A repetition within a second cannot be told by its time; one after a lease can.
        let anew = before.life != after.life && before.reaction == Reaction::Taken;
        if seconds(after) < seconds(before) + i64::from(anew) {
            return Err(format!("event {seq} was sent again with an old timestamp"));
        }
    }
    Ok(())
}

/// Whether somebody who followed the feed saw every event once and in its order.
fn is_whole(feed: &[Value], last: u64) -> Result<(), String> {
    let numbers = feed.iter().map(|event| event["seq"].as_u64().unwrap_or_default());
    for (seen, expected) in numbers.zip(1..) {
        if seen != expected {
            return Err(format!("the feed goes on with {seen}, not {expected}"));
        }
    }
    if feed.len() as u64 == last {
        Ok(())
    } else {
        Err(format!("the feed ends with {}, not {last}", feed.len()))
    }
}
