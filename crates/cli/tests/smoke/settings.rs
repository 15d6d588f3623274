//! How the command line reports valid and invalid settings.

use std::{net::TcpListener, path::Path, process::Output};

use crate::service::{GALLEY, command, galley};

fn serve(dir: &Path, flags: &[&str]) -> Output {
    galley(dir, &[&["serve"], flags].concat())
}

#[test]
fn a_port_in_use_is_reported_with_the_flag_to_change_it() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output = serve(dir.path(), &["--listen", &address]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for expected in [&*address, "already in use", "--listen"] {
        assert!(stderr.contains(expected), "{expected:?} in {stderr}");
    }
    assert!(!dir.path().join("galley.db").exists(), "a failed start creates no store");
}

#[test]
fn all_invalid_settings_are_reported_together() {
    let dir = tempfile::tempdir().unwrap();
    let output = serve(dir.path(), &["--set", "body_timeout=soon", "--set", "access_log=perhaps"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for expected in ["body_timeout", "soon", "access_log", "perhaps"] {
        assert!(stderr.contains(expected), "{expected:?} in {stderr}");
    }
}

#[test]
fn invalid_webhook_settings_are_reported_together_without_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["serve", "--set", "events_kept=4d"]);
    command.args(["--set", "webhooks_retries=never"]).env("GALLEY_SECRET_KEY", "a-canary");
    let output = command.env("GALLEY_WEBHOOKS_ALLOW_PRIVATE", "perhaps").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for expected in
        ["events_kept", "4d", "webhooks_retries", "never", "GALLEY_WEBHOOKS_ALLOW_PRIVATE"]
    {
        assert!(stderr.contains(expected), "{expected:?} in {stderr}");
    }
    assert!(stderr.contains("GALLEY_SECRET_KEY is shorter than 16"), "{stderr}");
    assert!(!stderr.contains("canary"), "{stderr}");
}

#[test]
fn config_shows_sources_and_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("galley.toml"), "log_level = \"warn\"\n").unwrap();
    for format in [&["config"][..], &["config", "--json"]] {
        let mut command = command(GALLEY);
        command.current_dir(dir.path()).args(format).env("GALLEY_LISTEN", "127.0.0.1:4321");
        command.env("GALLEY_BOOTSTRAP_KEY", "a-canary-that-must-stay-secret");
        command.env("GALLEY_BOOTSTRAP_TOKEN", "a-canary-that-must-stay-secret");
        command.env("GALLEY_SECRET_KEY", "a-canary-that-must-stay-secret");
        let output = command.output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shown}");
        let texts = ["127.0.0.1:4321", "GALLEY_LISTEN", "galley.toml", "GALLEY_BOOTSTRAP_KEY"];
        for expected in texts.into_iter().chain(["GALLEY_SECRET_KEY", "***", "webhooks_retries"]) {
            assert!(shown.contains(expected), "{expected:?} in {shown}");
        }
        let all = shown + &String::from_utf8(output.stderr).unwrap();
        assert!(!all.contains("canary"), "{all}");
    }
}
