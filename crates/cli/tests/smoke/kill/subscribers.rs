//! The subscribers to the two accounts of the kill harness: for each account a webhook endpoint and
//! a reader of the event feed.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use galley_server::delivery::Secret;
use serde_json::{Value, json};

use super::{
    deliveries::{DeliveryReport, DeliveryRow, Endpoint},
    feed_reader::FeedReader,
    receiver::Receiver,
    rng::Rng,
    tenant::{TENANTS, Tenant, call},
};
use crate::{http::Connection, service::Service};

/// Webhook settings of the harness's services.
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

/// Time limit of the remaining deliveries. The service probes an endpoint that is down once a minute.
const DRAIN_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) struct Subscribers {
    receiver: Receiver,
    accounts: Vec<Subscriber>,
}

struct Subscriber {
    tenant: &'static Tenant,
    /// The id of the endpoint.
    id: String,
    secret: Secret,
    feed_reader: FeedReader,
}

impl Subscribers {
    /// Subscribes to all events, before the first one.
    pub(super) fn subscribe(service: &Service, rng: Rng) -> Self {
        let receiver = Receiver::start(rng);
        let mut connection = Connection::open(service.address).unwrap();
        let subscribe = |tenant: &'static Tenant| {
            let url = format!("http://{}{}", receiver.address, path(tenant));
            let request =
                tenant.request("POST", "/webhooks").header("Content-Type", "application/json");
            let response = call(&mut connection, &request.body(json!({"url": url}).to_string()));
            assert_eq!(response.status, 201, "{response:?}");
            let created = response.json();
            let member = |name: &str| created[name].as_str().unwrap().to_owned();
            let secret = Secret::parse(&member("secret")).unwrap();
            Subscriber { tenant, id: member("id"), secret, feed_reader: FeedReader::start(tenant) }
        };
        let accounts = TENANTS.iter().map(subscribe).collect();
        Self { receiver, accounts }
    }

    /// Call it after each service start.
    pub(super) fn service_started(&self, address: SocketAddr) {
        self.accounts.iter().for_each(|it| it.feed_reader.connect_to(address));
    }

    /// Call it after each kill, before the next start.
    pub(super) fn service_killed(&self) {
        self.receiver.service_killed();
    }

    /// Waits until all events are delivered and read, or until the time limit; the checks report
    /// undelivered events. Returns the failed deliveries that the service lists, for each account.
    pub(super) fn drain(&self, service: &Service) -> Vec<Vec<u64>> {
        self.receiver.accept_everything();
        let mut connection = Connection::open(service.address).unwrap();
        let started = Instant::now();
        while !self.accounts.iter().all(|it| it.is_drained(&mut connection))
            && started.elapsed() < DRAIN_TIMEOUT
        {}
        self.accounts.iter().map(|it| it.failed(&mut connection)).collect()
    }

    /// Checks all received requests against the delivery table.
    pub(super) fn check(self, failed: &[Vec<u64>], store: &rusqlite::Connection) -> DeliveryReport {
        let Self { receiver, accounts } = self;
        let mut report = DeliveryReport::default();
        for (it, failed) in accounts.into_iter().zip(failed) {
            let requests = receiver.requests(&path(it.tenant));
            let feed = it.feed_reader.finish();
            report.interrupted += feed.interrupted;
            report.violations.extend(feed.violations);
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
                deliveries: read_deliveries(store, &it.id),
                feed: feed.events,
                requests,
                stalls: receiver.stalls(),
            };
            let stored = endpoint.deliveries.iter().filter(|(_, row)| row.status == "failed");
            if stored.clone().map(|(seq, _)| *seq).ne(failed.iter().copied()) {
                let stored = stored.collect::<Vec<_>>();
                report.violations.push(format!("listed as failed: {failed:?}, not {stored:?}"));
            }
            report.add(endpoint.check());
        }
        report
    }
}

impl Subscriber {
    fn is_drained(&self, connection: &mut Connection) -> bool {
        // No more events occur: this request returns after one second, which paces the polling.
        call(connection, &self.tenant.request("GET", "/events?after=latest&wait=1"));
        let endpoint = self.get("", connection);
        let waiting = self.get("/deliveries?status=waiting&limit=1", connection);
        let newest = self.get("/deliveries?limit=1", connection)["data"][0]["seq"].as_u64();
        endpoint["behind"] == 0
            && waiting["data"] == json!([])
            && newest.unwrap_or_default() <= self.feed_reader.events_read()
    }

    /// The events whose deliveries the service lists as failed.
    fn failed(&self, connection: &mut Connection) -> Vec<u64> {
        let (mut failed, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/deliveries?status=failed&limit=100{after}"), connection);
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

    fn get(&self, tail: &str, connection: &mut Connection) -> Value {
        let response =
            call(connection, &self.tenant.request("GET", &format!("/webhooks/{}{tail}", self.id)));
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }
}

fn path(tenant: &Tenant) -> String {
    format!("/hooks/{}", tenant.account)
}

fn read_deliveries(store: &rusqlite::Connection, id: &str) -> BTreeMap<u64, DeliveryRow> {
    let query = "SELECT seq, template_id, status, attempts FROM delivery WHERE webhook_id = ?1";
    let mut query = store.prepare(query).unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        let (seq, attempts): (i64, i64) = (row.get(0)?, row.get(3)?);
        let attempts = usize::try_from(attempts).unwrap();
        let delivery = DeliveryRow { template: row.get(1)?, status: row.get(2)?, attempts };
        Ok((u64::try_from(seq).unwrap(), delivery))
    };
    query.query_map([id], row).unwrap().map(Result::unwrap).collect()
}
