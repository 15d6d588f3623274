//! A webhook receiver: the `galley webhook listen` command.

use std::path::Path;

use serde_json::Value;

use crate::{
    http::{Connection, Request},
    service::Background,
};

/// A running `galley webhook listen` and its URL.
pub(crate) struct Listener {
    pub(crate) process: Background,
    pub(crate) url: String,
}

impl Listener {
    /// Starts the command in `dir`, on a free port.
    pub(crate) fn start(dir: &Path, flags: &[&str]) -> Self {
        let arguments = ["webhook", "listen", "--listen", "127.0.0.1:0"];
        let process = Background::start(dir, &[&arguments[..], flags].concat());
        let url =
            |text: &str| Some(text.split_once("Listening on ")?.1.split_once(' ')?.0.to_owned());
        let output = process.log.wait_for("its address", |text| url(text).is_some());
        Self { process, url: url(&output).unwrap() }
    }

    /// Waits for `count` deliveries. Returns all deliveries received so far.
    #[track_caller]
    pub(crate) fn received(&self, count: usize) -> Vec<Value> {
        let output = self
            .process
            .printed
            .wait_for("a delivery", |text| text.lines().count() >= count && text.ends_with('\n'));
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends a request to the receiver. Returns the status.
    pub(crate) fn post(&self, request: &Request) -> u16 {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut connection = Connection::open(address.parse().unwrap()).unwrap();
        connection.send(&request.bytes()).unwrap();
        connection.read_response().unwrap().status
    }
}
