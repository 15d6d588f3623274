//! What the command line says about settings, good and bad.

use std::{net::TcpListener, path::Path, process::Output};

use crate::service::{GALLEY, command, galley};

fn serve(dir: &Path, flags: &[&str]) -> Output {
    galley(dir, &[&["serve"], flags].concat())
}

#[test]
fn a_taken_port_says_so_and_names_the_flag() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = serve(dir.path(), &["--listen", &address]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for word in [&*address, "taken", "--listen"] {
        assert!(complaint.contains(word), "{word:?} in {complaint}");
    }
    assert!(!dir.path().join("galley.db").exists(), "a start that fails leaves nothing behind");
}

#[test]
fn two_bad_settings_are_both_complained_of() {
    let dir = tempfile::tempdir().unwrap();
    let output = serve(dir.path(), &["--set", "body_timeout=soon", "--set", "access_log=perhaps"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for word in ["body_timeout", "soon", "access_log", "perhaps"] {
        assert!(complaint.contains(word), "{word:?} in {complaint}");
    }
}

#[test]
fn bad_settings_of_webhooks_are_complained_of_together_and_without_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["serve", "--set", "events_kept=4d"]);
    command.args(["--set", "webhooks_retries=never"]).env("GALLEY_SECRET_KEY", "a-canary");
    let output = command.env("GALLEY_WEBHOOKS_ALLOW_PRIVATE", "perhaps").output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for word in ["events_kept", "4d", "webhooks_retries", "never", "GALLEY_WEBHOOKS_ALLOW_PRIVATE"]
    {
        assert!(complaint.contains(word), "{word:?} in {complaint}");
    }
    assert!(complaint.contains("GALLEY_SECRET_KEY is shorter than 16"), "{complaint}");
    assert!(!complaint.contains("canary"), "{complaint}");
}

#[test]
fn the_configuration_is_shown_with_its_sources_and_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("galley.toml"), "log_level = \"warn\"\n").unwrap();
    for format in [&["config"][..], &["config", "--json"]] {
        let mut command = command(GALLEY);
        command.current_dir(dir.path()).args(format).env("GALLEY_LISTEN", "127.0.0.1:4321");
        command.env("GALLEY_BOOTSTRAP_KEY", "a-canary-nobody-may-see");
        command.env("GALLEY_BOOTSTRAP_TOKEN", "a-canary-nobody-may-see");
        command.env("GALLEY_SECRET_KEY", "a-canary-nobody-may-see");
        let output = command.output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shown}");
        let words = ["127.0.0.1:4321", "GALLEY_LISTEN", "galley.toml", "GALLEY_BOOTSTRAP_KEY"];
        for word in words.into_iter().chain(["GALLEY_SECRET_KEY", "***", "webhooks_retries"]) {
            assert!(shown.contains(word), "{word:?} in {shown}");
        }
        let all = shown + &String::from_utf8(output.stderr).unwrap();
        assert!(!all.contains("canary"), "{all}");
    }
}
