//! A receiver of webhooks: the one that `galley` has for those who develop theirs.

use std::path::Path;

use serde_json::Value;

use crate::{
    http::{Connection, Request},
    service::Background,
};

/// A `galley webhook listen`, and where it does.
pub(crate) struct Listener {
    pub(crate) process: Background,
    pub(crate) url: String,
}

impl Listener {
    /// Starts it in `dir`, on a free port.
    pub(crate) fn start(dir: &Path, flags: &[&str]) -> Self {
        let arguments = ["webhook", "listen", "--listen", "127.0.0.1:0"];
        let process = Background::start(dir, &[&arguments[..], flags].concat());
        let url =
            |text: &str| Some(text.split_once("Listening on ")?.1.split_once(' ')?.0.to_owned());
        let said = process.log.wait_for("its address", |text| url(text).is_some());
        Self { process, url: url(&said).unwrap() }
    }

    /// Waits for so many deliveries; answers all that came.
    #[track_caller]
    pub(crate) fn heard(&self, count: usize) -> Vec<Value> {
        let said = self
            .process
            .printed
            .wait_for("a delivery", |text| text.lines().count() >= count && text.ends_with('\n'));
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends it something; answers the status.
    pub(crate) fn post(&self, request: &Request) -> u16 {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut connection = Connection::open(address.parse().unwrap()).unwrap();
        connection.send(&request.bytes()).unwrap();
        connection.answer().unwrap().status
    }
}
