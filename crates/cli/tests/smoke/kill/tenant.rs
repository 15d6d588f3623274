//! The two accounts of the kill harness: one approves valid templates automatically, the other
//! has a manual review.

use std::path::Path;

use galley_domain::template::Review;
use serde_json::Value;

use crate::{
    http::{Connection, Request, Response},
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
    /// Creates the account. The service creates the first account itself.
    pub(super) fn create(&self, dir: &Path) {
        let Self { account, review, phone, key, token } = self;
        let name = ["account", "create", account, "--review", review.as_str()];
        let credentials = ["--phone", phone, "--key", key, "--token", token];
        galley_json(dir, &[&name[..], &credentials].concat());
    }

    /// A request below the account's base path.
    pub(super) fn request(&self, method: &'static str, tail: &str) -> Request {
        let Self { phone, key, token, .. } = self;
        let path = format!("/api/v1.0/{phone}/{key}{tail}");
        Request::new(method, path).header("Authorization", &format!("Bearer {token}"))
    }

    /// A request below the path of the account's templates.
    pub(super) fn template_request(&self, method: &'static str, tail: &str) -> Request {
        self.request(method, &format!("/message_templates{tail}"))
    }

    pub(super) fn template_request_with_body(
        &self,
        method: &'static str,
        tail: &str,
        body: &Value,
    ) -> Request {
        let request =
            self.template_request(method, tail).header("Content-Type", "application/json");
        request.body(body.to_string())
    }

    pub(super) fn read_template(&self, tail: &str, connection: &mut Connection) -> Response {
        call(connection, &self.template_request("GET", tail))
    }
}

pub(super) fn call(connection: &mut Connection, request: &Request) -> Response {
    connection.send(&request.bytes()).unwrap();
    connection.read_response().unwrap()
}
