//! The two accounts of the kill harness: in one a valid template is approved at once, in the
//! other a reviewer decides.

use std::path::Path;

use galley_domain::template::Review;
use serde_json::Value;

use crate::{
    http::{Answer, Connection, Request},
    service::{KEY, PHONE, TOKEN, galley_json},
};

#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) account: &'static str,
    pub(super) review: Review,
    pub(super) phone: &'static str,
    key: &'static str,
    token: &'static str,
}

pub(super) static TENANTS: [Tenant; 2] = [
    Tenant { account: "default", review: Review::Auto, phone: PHONE, key: KEY, token: TOKEN },
    Tenant {
        account: "reviewed",
        review: Review::Manual,
        phone: "15550002222",
        key: "key-of-the-reviewed-7Hd2Qx9LmP",
        token: "token-of-the-reviewed-4Ws8Rv1ZkT",
    },
];

impl Tenant {
    /// Makes the account; the first one is made by the service itself.
    pub(super) fn found(&self, dir: &Path) {
        let Self { account, review, phone, key, token } = self;
        let name = ["account", "create", account, "--review", review.as_str()];
        let credentials = ["--phone", phone, "--key", key, "--token", token];
        galley_json(dir, &[&name[..], &credentials].concat());
    }

    /// A request for whatever of the account.
    pub(super) fn ask(&self, method: &'static str, tail: &str) -> Request {
        let Self { phone, key, token, .. } = self;
        let path = format!("/api/v1.0/{phone}/{key}{tail}");
        Request::new(method, path).header("Authorization", &format!("Bearer {token}"))
    }

    /// A request for one of its templates, or for what `tail` names instead.
    pub(super) fn request(&self, method: &'static str, tail: &str) -> Request {
        self.ask(method, &format!("/message_templates{tail}"))
    }

    pub(super) fn with_body(&self, method: &'static str, tail: &str, body: &Value) -> Request {
        let request = self.request(method, tail).header("Content-Type", "application/json");
        request.body(body.to_string())
    }

    pub(super) fn read(&self, tail: &str, calls: &mut Connection) -> Answer {
        call(calls, &self.request("GET", tail))
    }
}

pub(super) fn call(calls: &mut Connection, request: &Request) -> Answer {
    calls.send(&request.bytes()).unwrap();
    calls.answer().unwrap()
}
