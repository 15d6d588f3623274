//! Secrets that commands read from files and standard input, and secrets stored in plain text.

use std::{
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    listener::Listener,
    service::{GALLEY, Launch, command, galley, galley_json, json_of, store},
};

/// Secrets that cannot occur by chance.
const KEY: &str = "given-key-8fQ2vZr61LxTn40pWd";
const TOKEN: &str = "given-tk-Jm5Yc93hRk7BsE2uGa";

const ALLOW_PRIVATE: [&str; 2] = ["--set", "webhooks_allow_private=true"];
/// Nothing listens here.
const UNREACHABLE: &str = "http://127.0.0.1:9/";

/// Writes a file that only its owner can read. Returns its path.
fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs `galley` with this standard input.
fn galley_reading(dir: &Path, input: &str, arguments: &[&str]) -> Output {
    let mut command = command(GALLEY);
    command.current_dir(dir).args(arguments).args(["--store", &store(dir)]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn keys_and_tokens_are_read_from_a_file_or_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "key", &format!("{KEY}\n"));
    let create = ["account", "create", "shop", "--key-file", &file, "--token-file", "-", "--json"];
    let output = galley_reading(dir.path(), &format!("{TOKEN}\r\n"), &create);
    let account = json_of(&output);
    assert_eq!([&account["key"], &account["token"]], [KEY, TOKEN]);
    let created = format!("created the store {}\n", dir.path().join("galley.db").display());
    assert_eq!(stderr(&output), created, "and no warning");

    for kind in ["key", "token"] {
        let (first, second) = (format!("{kind}-1-{KEY}"), format!("{kind}-2-{KEY}"));
        let file = write(dir.path(), "secret", &first);
        let created = galley_json(dir.path(), &[kind, "create", "shop", "--secret-file", &file]);
        assert_eq!(created[kind], first);
        let id = created["id"].to_string();
        let rotate = [kind, "rotate", &id, "--secret-file", "-", "--json"];
        assert_eq!(json_of(&galley_reading(dir.path(), &second, &rotate))[kind], second);
    }
}

#[test]
fn a_secret_file_that_cannot_be_used_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, lines) = (write(dir.path(), "empty", "\n"), write(dir.path(), "lines", "ca\nnary"));
    let invalid = write(dir.path(), "invalid", "ca/nary");
    let missing = dir.path().join("missing").display().to_string();
    for (flags, expected) in [
        (&["--key-file", &*empty][..], &["empty", "is empty"][..]),
        (&["--key-file", &lines], &["lines", "several lines"]),
        (&["--key-file", &invalid], &["API key", "characters A-Z"]),
        (&["--token-file", &missing], &["missing", "cannot be opened"]),
        (&["--key-file", "-", "--token-file", "-"], &["--key-file and --token-file", "only one"]),
        (&["--key-file", &lines, "--key", "k"], &["--key-file", "cannot be used with"]),
    ] {
        let output = galley_reading(dir.path(), "", &[&["account", "create", "a"], flags].concat());
        let stderr = stderr(&output);
        assert!(!output.status.success(), "{flags:?}");
        for expected in expected {
            assert!(stderr.contains(expected), "{flags:?}: {stderr}");
        }
        assert!(!stderr.contains("nary"), "{stderr}");
    }
    assert_eq!(galley_json(dir.path(), &["account", "list"]), json!([]));
}

#[test]
fn a_secret_file_that_other_users_can_read_causes_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "key", KEY);
    for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let output = galley(dir.path(), &["account", "create", "shop", "--key-file", &file]);
        assert!(output.status.success(), "{output:?}");
        let stderr = stderr(&output);
        assert_eq!(stderr.contains("is readable by every user"), warns, "{mode:o}: {stderr}");
        assert_eq!(stderr.contains(&file), warns && !stderr.contains(KEY), "{mode:o}: {stderr}");
    }
}

#[test]
fn webhook_secrets_and_verify_tokens_are_read_from_files_and_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "waba", "--rulebook", "whatsapp"]);
    let secret = write(dir.path(), "app-secret", "0123456789abcdef0123456789abcdef\n");
    let verify_token = write(dir.path(), "verify-token", "known-4d7Gk1Zt-to-both\n");
    let given = ["--secret-file", &secret, "--verify-token-file", &verify_token];
    let listener = Listener::start(dir.path(), &[&["--json"], &given[..]].concat());
    let add = ["webhook", "add", "waba", &listener.url, "--format", "whatsapp"];
    let added = galley_json(dir.path(), &[&add[..], &given, &ALLOW_PRIVATE].concat());
    assert_eq!(added["secret"], "0123456789abcdef0123456789abcdef");

    let id = added["id"].as_str().unwrap();
    let change = ["webhook", "change", "waba", id, "--verify-token-file", "-"];
    let change = [&change[..], &ALLOW_PRIVATE].concat();
    let output = galley_reading(dir.path(), "known-4d7Gk1Zt-to-both", &change);
    assert!(output.status.success(), "{output:?}");
    let output = galley_reading(dir.path(), "another", &change);
    assert!(stderr(&output).contains("403 instead of 200"), "{output:?}");
}

/// The row of `galley doctor` about webhook secrets, and whether the command succeeded.
fn doctor(dir: &Path) -> (Value, bool) {
    let output = galley(dir, &["doctor", "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = rows.as_array().unwrap().iter().find(|it| it["subject"] == "webhook secrets");
    (row.unwrap_or_else(|| panic!("{rows}")).clone(), output.status.success())
}

#[test]
fn webhook_secrets_in_plain_text_are_reported_until_they_are_rotated_with_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let launch = || Launch::new(dir.path()).flags(&ALLOW_PRIVATE);
    let none = launch().start();
    none.log.wait_for("the notice", |log| log.contains("INFO GALLEY_SECRET_KEY is not set"));
    drop(none);
    assert_eq!(doctor(dir.path()).0["verdict"], "good");

    let webhook = |key: &str, arguments: &[&str]| {
        let mut command = command(GALLEY);
        command.current_dir(dir.path()).arg("webhook").args(arguments).args(ALLOW_PRIVATE);
        command.args(["--json", "--store", &store(dir.path())]).env("GALLEY_SECRET_KEY", key);
        let output = command.output().unwrap();
        (json_of(&output), stderr(&output))
    };
    let (added, warning) = webhook("", &["add", "default", UNREACHABLE]);
    for expected in ["stored in plain text", "GALLEY_SECRET_KEY", "galley webhook rotate"] {
        assert!(warning.contains(expected), "{expected}: {warning}");
    }
    let (row, success) = doctor(dir.path());
    assert!(
        row["seen"].as_str().unwrap().starts_with("1 of 1 in plain text: set GALLEY_SECRET_KEY")
    );
    assert_eq!((&row["verdict"], success), (&json!("WARNING"), true));
    let key = "a key of more than sixteen characters";
    for launch in [launch(), launch().variable("GALLEY_SECRET_KEY", key)] {
        let service = launch.start();
        let log = service.log.wait_for("the warning", |log| log.contains("in plain text: set"));
        assert!(log.contains("WARN") && log.contains("plain=1"), "{log}");
    }

    let id = added["id"].as_str().unwrap();
    let (_, warning) = webhook(key, &["rotate", "default", id]);
    assert_eq!(warning, "");
    let (row, _) = doctor(dir.path());
    assert_eq!((&row["seen"], &row["verdict"]), (&json!("0 of 1 in plain text"), &json!("good")));
}
