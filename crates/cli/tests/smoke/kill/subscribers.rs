//! Those who want to know what happens in the two accounts of the kill harness: for each an
//! endpoint that events are sent to, and somebody who follows the feed.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use galley_server::delivery::Secret;
use serde_json::{Value, json};

use super::{
    deliveries::{Endpoint, Listed, Tally},
    dice::Dice,
    feed::Follower,
    receiver::Receiver,
    tenant::{TENANTS, Tenant, call},
};
use crate::{http::Connection, service::Service};

/// How the services of the harness deliver.
pub(super) const SETTINGS: [&str; 8] = [
    "--set",
    "webhooks_allow_private=true",
    "--set",
    "webhooks_timeout=500ms",
    "--set",
    "webhooks_per_second=1000",
    "--set",
    "webhooks_retries=0s 20ms 50ms 100ms 100ms 100ms 100ms 100ms 100ms 100ms",
];

/// How long the rest of the deliveries may take: an endpoint that was down is probed once a minute.
const REST: Duration = Duration::from_mins(2);

pub(super) struct Subscribers {
    receiver: Receiver,
    of: Vec<Subscriber>,
}

struct Subscriber {
    tenant: &'static Tenant,
    /// The id of the endpoint.
    id: String,
    secret: Secret,
    follower: Follower,
}

impl Subscribers {
    /// Subscribes to everything before anything has happened.
    pub(super) fn subscribe(service: &Service, dice: Dice) -> Self {
        let receiver = Receiver::start(dice);
        let mut calls = Connection::open(service.address).unwrap();
        let subscribe = |tenant: &'static Tenant| {
            let url = format!("http://{}{}", receiver.address, path(tenant));
            let request =
                tenant.ask("POST", "/webhooks").header("Content-Type", "application/json");
            let answer = call(&mut calls, &request.body(json!({"url": url}).to_string()));
            assert_eq!(answer.status, 201, "{answer:?}");
            let made = answer.json();
            let member = |name: &str| made[name].as_str().unwrap().to_owned();
            let secret = Secret::parse(&member("secret")).unwrap();
            Subscriber { tenant, id: member("id"), secret, follower: Follower::start(tenant) }
        };
        let of = TENANTS.iter().map(subscribe).collect();
        Self { receiver, of }
    }

    /// To be told of every service that is there.
    pub(super) fn meet(&self, address: SocketAddr) {
        self.of.iter().for_each(|it| it.follower.go_on(address));
    }

    /// To be told of every service that was killed, before the next one is started.
    pub(super) fn mourn(&self) {
        self.receiver.sender_is_gone();
    }

    /// Waits until nothing is left to be delivered or read; what is left all the same is found by
    /// those who look. Answers what the service lists as failed, for each account.
    pub(super) fn wait_for_the_rest(&self, service: &Service) -> Vec<Vec<u64>> {
        self.receiver.relent();
        let mut calls = Connection::open(service.address).unwrap();
        let begun = Instant::now();
        while !self.of.iter().all(|it| it.waits_for_nothing(&mut calls)) && begun.elapsed() < REST {
        }
        self.of.iter().map(|it| it.failed(&mut calls)).collect()
    }

    /// Looks at everything that was sent, and at what the file says of it.
    pub(super) fn examine(self, failed: &[Vec<u64>], store: &rusqlite::Connection) -> Tally {
        let Self { receiver, of } = self;
        let mut tally = Tally::default();
        for (it, failed) in of.into_iter().zip(failed) {
            let arrivals = receiver.arrivals(&path(it.tenant));
            let followed = it.follower.end();
            tally.interrupted += followed.interrupted;
            tally.faults.extend(followed.faults);
            let (account, last) = store
                .query_row(
                    "SELECT id, last_seq FROM account WHERE name = ?1",
                    [it.tenant.account],
                    |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)),
                )
                .unwrap();
            let endpoint = Endpoint {
                account,
                secret: it.secret,
                last: u64::try_from(last).unwrap(),
                listed: listed(store, &it.id),
                feed: followed.events,
                arrivals,
                stalls: receiver.stalls(),
            };
            let gave_up = endpoint.listed.iter().filter(|(_, listed)| listed.status == "failed");
            if gave_up.clone().map(|(seq, _)| *seq).ne(failed.iter().copied()) {
                let gave_up = gave_up.collect::<Vec<_>>();
                tally.faults.push(format!("listed as failed: {failed:?}, not {gave_up:?}"));
            }
            tally.add(endpoint.examine());
        }
        tally
    }
}

impl Subscriber {
    fn waits_for_nothing(&self, calls: &mut Connection) -> bool {
        // Nothing happens any more: whoever asks for news has the pause that is needed here.
        call(calls, &self.tenant.ask("GET", "/events?after=latest&wait=1"));
        let endpoint = self.get("", calls);
        let waiting = self.get("/deliveries?status=waiting&limit=1", calls);
        let newest = self.get("/deliveries?limit=1", calls)["data"][0]["seq"].as_u64();
        endpoint["behind"] == 0
            && waiting["data"] == json!([])
            && newest.unwrap_or_default() <= self.follower.seen()
    }

    /// Which events the service lists as failed.
    fn failed(&self, calls: &mut Connection) -> Vec<u64> {
        let (mut failed, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/deliveries?status=failed&limit=100{after}"), calls);
            let data = page["data"].as_array().unwrap();
            failed.extend(data.iter().filter_map(|delivery| delivery["seq"].as_u64()));
            match page["paging"]["next"] {
                Value::Null => break,
                _ => after = format!("&after={}", failed[failed.len() - 1]),
            }
        }
        failed.reverse();
        failed
    }

    fn get(&self, tail: &str, calls: &mut Connection) -> Value {
        let answer = call(calls, &self.tenant.ask("GET", &format!("/webhooks/{}{tail}", self.id)));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

fn path(tenant: &Tenant) -> String {
    format!("/hooks/{}", tenant.account)
}

fn listed(store: &rusqlite::Connection, id: &str) -> BTreeMap<u64, Listed> {
    let query = "SELECT seq, template_id, status, attempts FROM delivery WHERE webhook_id = ?1";
    let mut query = store.prepare(query).unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        let (seq, attempts): (i64, i64) = (row.get(0)?, row.get(3)?);
        let attempts = usize::try_from(attempts).unwrap();
        let listed = Listed { template: row.get(1)?, status: row.get(2)?, attempts };
        Ok((u64::try_from(seq).unwrap(), listed))
    };
    query.query_map([id], row).unwrap().map(Result::unwrap).collect()
}
