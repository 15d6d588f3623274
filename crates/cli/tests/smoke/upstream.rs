//! `galley upstream …`: an account that mirrors an emulator, which is the provider.

use std::{
    cell::RefCell,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::emulator::Emulator;
use crate::{
    http::TIMEOUT,
    service::{GALLEY, command, galley, json_of, store, until},
};

pub(super) const SECRET_KEY: &str = "the secret key of this test";

/// A store with the account `shop`, and everything that commands on it have printed.
pub(super) struct Mirror {
    pub(super) dir: tempfile::TempDir,
    printed: RefCell<Vec<u8>>,
}

impl Mirror {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let created = galley(dir.path(), &["account", "create", "shop", "--rulebook", "whatsapp"]);
        assert!(created.status.success(), "{created:?}");
        Self { dir, printed: RefCell::default() }
    }

    /// Runs `galley upstream` with this standard input.
    pub(super) fn reading(&self, input: &str, arguments: &[&str]) -> Output {
        self.with_key(SECRET_KEY, input, arguments)
    }

    /// The same with another key.
    pub(super) fn with_key(&self, key: &str, input: &str, arguments: &[&str]) -> Output {
        let mut command = command(GALLEY);
        command.current_dir(self.dir.path()).env("GALLEY_SECRET_KEY", key);
        command.arg("upstream").args(arguments).args(["--store", &store(self.dir.path())]);
        command.args(["--set", "upstream_allow_private=true"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        self.printed.borrow_mut().extend([&*output.stdout, &output.stderr].concat());
        output
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.reading("", arguments)
    }

    /// Runs a command on the account `shop` that succeeds.
    #[track_caller]
    pub(super) fn json(&self, what: &str) -> Value {
        json_of(&self.run(&[what, "shop", "--json"]))
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(super) fn connect(&self, provider: &Emulator, token: &str) -> Output {
        let base_url = base_url(provider);
        let waba = provider.member("waba_id");
        let address = ["connect", "shop", "--base-url", &base_url, "--waba", waba];
        self.reading(token, &[&address[..], &["--token-file", "-", "--json"]].concat())
    }

    /// The exit code of `plan`, and its items as `name state`.
    #[track_caller]
    fn plan(&self) -> (Option<i32>, Vec<String>) {
        let output = self.run(&["plan", "shop", "--json"]);
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let items = plan["items"].as_array().cloned().unwrap_or_default();
        let line = |it: &Value| format!("{} {}", it["name"], it["state"]).replace('"', "");
        (output.status.code(), items.iter().map(line).collect())
    }

    /// Asserts that neither an output nor a file of the store contains the secret.
    #[track_caller]
    pub(super) fn assert_hides(&self, secret: &str) {
        let contains =
            |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!contains(&self.printed.borrow()), "an output contains a secret");
        let mut files = 0;
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files += 1;
                assert!(!contains(&std::fs::read(&path).unwrap()), "{}", path.display());
            }
        }
        assert!(files > 0);
    }
}

pub(super) fn base_url(provider: &Emulator) -> String {
    format!("{}/v23.0", provider.member("url"))
}

pub(super) fn provider(dir: &Path) -> Emulator {
    Emulator::start(dir, &["--faithful", "--no-limits"])
}

/// Creates templates at the provider, which approves them. Returns their ids.
pub(super) fn create(provider: &Emulator, names: &[&str]) -> Vec<String> {
    let ids = names.iter().map(|name| provider.create(name)["id"].as_str().unwrap().to_owned());
    let ids = ids.collect();
    provider.control("POST", "clock", &json!({"advance": "1d"}));
    ids
}

#[test]
fn an_account_mirrors_a_provider_and_the_plan_tells_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let ids = create(&provider, &["order", "receipt"]);
    let created = Instant::now();
    let mirror = Mirror::new();
    let token = provider.member("token").to_owned();

    let connected = json_of(&mirror.connect(&provider, &format!("{token}\n")));
    let hook_token = connected["hook_path"].as_str().unwrap().strip_prefix("/upstream/").unwrap();
    assert!(hook_token.len() > 30, "{connected}");
    let checked = mirror.json("check");
    assert_eq!(checked["templates"], 2);
    assert_eq!(checked["scopes"][0], "whatsapp_business_management", "{checked}");
    assert_eq!(mirror.plan(), (Some(1), vec!["order unknown".into(), "receipt unknown".into()]));

    let dry = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    assert_eq!((&dry["seen"], &dry["new"], &dry["changed"]), (&json!(2), &json!(2), &json!(2)));
    assert_eq!((&dry["complete"], &dry["findings"]), (&json!(true), &json!([])), "{dry}");
    assert_eq!(mirror.json("status")["templates"], 0, "a dry run records nothing");

    let imported = mirror.json("import");
    let calls = imported["calls"].as_u64().unwrap();
    assert!((1..=3).contains(&calls), "{imported}");
    let expected = json!({
        "complete": true, "calls": calls, "seen": 2, "generated": 0, "changed": 2, "missing": 0,
        "suspicious": false, "approvals_ending": 0, "ending": [],
    });
    assert_eq!(imported, expected);
    let status = mirror.json("status");
    assert_eq!((&status["state"], &status["templates"]), (&json!("connected"), &json!(2)));
    assert_eq!((&status["drifted"], &status["gone"]), (&json!(0), &json!(0)), "{status}");
    assert!(status["swept_at"].is_string() && status["read_all_at"].is_string(), "{status}");
    assert_eq!(mirror.plan(), (Some(0), vec!["order same".into(), "receipt same".into()]));
    let dry = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    assert_eq!((&dry["new"], &dry["changed"]), (&json!(0), &json!(0)), "{dry}");

    // The provider tells the time of a change in seconds.
    until(TIMEOUT, "a second has passed", || {
        mirror.json("status");
        created.elapsed() > Duration::from_secs(1)
    });
    let edit = json!({"components": [{"type": "BODY", "text": "Your order has arrived today."}]});
    provider.graph("POST", &ids[0], &edit);
    assert_eq!(mirror.plan(), (Some(1), vec!["order drifted".into(), "receipt same".into()]));
    let synced = mirror.json("sync");
    assert_eq!((&synced["complete"], &synced["changed"]), (&json!(true), &json!(1)), "{synced}");
    assert_eq!(mirror.json("status")["drifted"], 1);
    assert_eq!(mirror.plan().0, Some(1), "the account keeps its content");

    assert!(provider.process.end("TERM").success());
    assert_eq!(mirror.plan(), (Some(2), Vec::new()));
    let status = mirror.json("status");
    assert_eq!(status["degraded"], "unreachable");
    let error = status["error"].as_str().unwrap();
    assert!(error.starts_with("the request was not sent: "), "no code, but the reason: {error}");
    assert!(error.contains("Could not connect to the server"), "{error}");
    assert!(mirror.refused(&["sync", "shop"]).contains("was not sent"));
    mirror.assert_hides(&token);
}

#[test]
fn a_connection_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let mirror = Mirror::new();
    let path = mirror.dir.path();
    let url = base_url(&provider);
    let waba = provider.member("waba_id");
    let connect = |account, url, waba| {
        ["upstream", "connect", account, "--base-url", url, "--waba", waba, "--token-file", "-"]
    };
    let without_key = galley(path, &connect("shop", &url, waba));
    let said = String::from_utf8(without_key.stderr).unwrap();
    assert_eq!(without_key.status.code(), Some(1), "{said}");
    assert!(said.contains("set GALLEY_SECRET_KEY"), "{said}");

    assert!(galley(path, &["account", "create", "old"]).status.success());
    let create = ["account", "create", "fake", "--rulebook", "whatsapp", "--emulator"];
    assert!(galley(path, &create).status.success());
    for (account, url, waba, expected) in [
        ("old", &*url, waba, "has the rulebook v1"),
        ("fake", &url, waba, "is an emulator"),
        ("unknown", &url, waba, "there is no account"),
        ("shop", "ftp://provider.test/v23.0", waba, "must begin with `https://`"),
        ("shop", "https://provider.test/v23.0?x=1", waba, "a query"),
        ("shop", &url, "../1", "the id of the account"),
        ("shop", "http://169.254.169.254/v23.0", waba, "--base-url: The host is a link-local"),
    ] {
        let said = mirror.refused(&connect(account, url, waba)[1..]);
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    let mut private = command(GALLEY);
    private.current_dir(path).env("GALLEY_SECRET_KEY", SECRET_KEY);
    let output = private.args(connect("shop", &url, waba)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("GALLEY_UPSTREAM_ALLOW_PRIVATE=true"), "{said}");

    assert!(mirror.refused(&["status", "shop"]).contains("is not connected"));
    assert_eq!(mirror.plan().0, Some(2), "there is no provider to ask");
    json_of(&mirror.connect(&provider, "a token"));
    let again = mirror.connect(&provider, "a token");
    assert!(String::from_utf8(again.stderr).unwrap().contains("is already connected"));
}

#[test]
fn a_base_url_without_a_version_is_stored_with_a_warning() {
    let mirror = Mirror::new();
    let connect = |account, url| {
        ["connect", account, "--base-url", url, "--waba", "7", "--token-file", "-", "--json"]
    };
    let warned = mirror.reading("a token", &connect("shop", "https://provider.test/"));
    let said = String::from_utf8_lossy(&warned.stderr).into_owned();
    assert!(said.contains("like https://provider.test/v23.0"), "{said}");
    assert!(json_of(&warned)["hook_path"].is_string(), "it is connected all the same");
    json_of(&mirror.run(&["disconnect", "shop", "--yes", "--json"]));
    let quiet = mirror.reading("a token", &connect("shop", "https://provider.test/v23.0"));
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{quiet:?}");
}

#[test]
fn a_token_is_verified_before_it_replaces_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    create(&provider, &["order"]);
    let mirror = Mirror::new();
    let wrong = "wrong-canary-4d7Gk1Zt-token";
    json_of(&mirror.connect(&provider, wrong));
    assert!(mirror.refused(&["import", "shop"]).contains("does not accept the credentials"));
    let status = mirror.json("status");
    assert_eq!(
        (&status["state"], &status["degraded"]),
        (&json!("degraded"), &json!("credentials"))
    );
    assert!(mirror.refused(&["sync", "shop"]).contains("calls rest until"));
    assert_eq!(mirror.plan().0, Some(2));

    let replace = ["token", "shop", "--token-file", "-", "--json"];
    let refused = mirror.reading("another-wrong-canary-token", &replace);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("the new token was not stored"), "{said}");
    let token = provider.member("token");
    let replaced = json_of(&mirror.reading(token, &replace));
    assert_eq!(replaced["state"], "connected", "the provider has accepted the token");
    let status = mirror.json("status");
    assert_eq!((&status["state"], &status["error"]), (&json!("connected"), &json!(null)));
    assert_eq!(mirror.json("check")["templates"], 1);

    assert_eq!(mirror.json("pause")["state"], "paused");
    assert!(mirror.refused(&["import", "shop"]).contains("galley upstream resume"));
    assert_eq!(mirror.json("resume")["state"], "connected");
    assert_eq!(mirror.json("import")["seen"], 1);

    assert!(mirror.refused(&["disconnect", "shop"]).contains("--yes"));
    let gone = json_of(&mirror.run(&["disconnect", "shop", "--yes", "--json"]));
    assert_eq!(gone["state"], "disconnected");
    assert!(mirror.refused(&["status", "shop"]).contains("is not connected"));
    for secret in [wrong, "another-wrong-canary-token", token] {
        mirror.assert_hides(secret);
    }
}

#[test]
fn a_person_decides_about_a_drifted_template() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let ids = create(&provider, &["order"]);
    let mirror = Mirror::new();
    json_of(&mirror.connect(&provider, provider.member("token")));
    mirror.json("import");
    let decide = |what| mirror.run(&[what, "shop", "order", "en_US", "--json"]);
    let push = ["push", "shop", "order", "en_US"];
    assert!(mirror.refused(&push).contains("The provider has the same content"));
    assert!(mirror.refused(&["push", "shop", "order", "de"]).contains("has no template"));

    let edit = json!({"components": [{"type": "BODY", "text": "Your order has arrived today."}]});
    provider.graph("POST", &ids[0], &edit);
    let dry = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    let ending = &dry["ending"][0];
    assert_eq!((&dry["approvals_ending"], &ending["name"]), (&json!(1), &json!("order")), "{dry}");
    assert_eq!((&ending["reason"], &ending["version"]), (&json!("other_content"), &json!(1)));
    let refused = mirror.refused(&["import", "shop"]);
    assert!(refused.contains("would end 1 approval") && refused.contains("--yes"), "{refused}");
    assert_eq!(mirror.json("status")["drifted"], 0, "nothing is recorded");
    let imported = json_of(&mirror.run(&["import", "shop", "--yes", "--json"]));
    assert_eq!((&imported["approvals_ending"], &imported["ending"]), (&json!(1), &dry["ending"]));
    assert_eq!(mirror.json("import")["ending"], json!([]), "nothing is left to confirm");
    let pushed = json_of(&decide("push"));
    assert_eq!((&pushed["kind"], &pushed["state"]), (&json!("edit"), &json!("queued")));
    assert_eq!(mirror.json("status")["operations_queued"], 1);
    let adopted = json_of(&decide("adopt"));
    assert_eq!((&adopted["drifted"], &adopted["abandoned"]), (&json!(true), &json!(1)));
    assert_eq!(adopted["upstream_id"], *ids[0]);
    assert_eq!(mirror.json("status")["operations_queued"], 0);
    assert_eq!(mirror.plan(), (Some(1), vec!["order drifted".into()]));

    let accepted = json_of(&decide("accept"));
    assert_eq!((&accepted["version"], &accepted["status"]), (&json!(2), &json!("APPROVED")));
    assert_eq!(mirror.plan(), (Some(0), vec!["order same".into()]));
    assert!(
        mirror
            .refused(&["accept", "shop", "order", "en_US"])
            .contains("nothing that could be accepted")
    );
}
