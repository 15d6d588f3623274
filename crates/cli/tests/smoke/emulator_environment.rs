//! What the environment, settings files and flags decide about `galley emulator`.

use std::{fs, net::TcpListener};

use serde_json::{Value, json};

use super::emulator::{Emulator, emulator};
use crate::service::{Background, GALLEY, command};

/// What a developer's machine may have for a real service.
const OF_A_REAL_SERVICE: [(&str, &str); 8] = [
    ("GALLEY_BOOTSTRAP_KEY", "canary-key"),
    ("GALLEY_BOOTSTRAP_TOKEN", "canary-token"),
    ("GALLEY_BOOTSTRAP_PHONE", "not / valid"),
    ("GALLEY_SECRET_KEY", "canary"),
    ("GALLEY_WEBHOOK_SECRET", "canary"),
    ("GALLEY_CONFIG", "nowhere.toml"),
    ("GALLEY_STORE", "postgres://canary@127.0.0.1:1/production"),
    ("GALLEY_LISTEN", "nowhere"),
];

#[test]
fn ids_and_secrets_from_the_environment_are_used() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("token"), "token-of-the-test-suite\n").unwrap();
    let mut command = emulator(dir.path(), &["--json", "--faithful"]);
    command.envs([
        ("GALLEY_EMULATOR_KEY", "key-of-the-test-suite"),
        ("GALLEY_EMULATOR_TOKEN_FILE", "token"),
        ("GALLEY_EMULATOR_PHONE_NUMBER_ID", "15550001111"),
        ("GALLEY_EMULATOR_WABA_ID", "102290129340398"),
        ("GALLEY_EMULATOR_APP_SECRET", "0123456789abcdef0123456789abcdef"),
        ("GALLEY_PUBLIC_URL", "http://whatsapp:8080/"),
    ]);
    let process = Background::spawn(command);
    let printed = process.printed.wait_for("a line", |text| text.ends_with('\n'));
    let ready: Value = serde_json::from_str(&printed).unwrap();
    for (member, expected) in [
        ("key", "key-of-the-test-suite"),
        ("token", "token-of-the-test-suite"),
        ("phone_number_id", "15550001111"),
        ("waba_id", "102290129340398"),
        ("account_id", "102290129340398"),
        ("app_secret", "0123456789abcdef0123456789abcdef"),
        ("url", "http://whatsapp:8080"),
    ] {
        assert_eq!(ready[member], expected, "{member}");
    }
}

#[test]
fn an_account_with_a_chosen_id_serves_its_templates() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = emulator(dir.path(), &["--json"]);
    command.env("GALLEY_EMULATOR_WABA_ID", "9007199254740991");
    let emulator = Emulator::spawn(command);
    emulator.create("order");
    assert_eq!(emulator.templates(), ["order APPROVED"]);
    let shown = emulator.graph("GET", "9007199254740991", &Value::Null);
    assert_eq!(shown["id"], "9007199254740991");
}

#[test]
fn an_invalid_choice_is_refused_with_its_variable() {
    let dir = tempfile::tempdir().unwrap();
    for (variable, value, expected) in [
        ("GALLEY_EMULATOR_KEY", "a/canary", "use 1 to 128 of the characters"),
        ("GALLEY_EMULATOR_TOKEN", "..", "use 1 to 128 of the characters"),
        ("GALLEY_EMULATOR_PHONE_NUMBER_ID", "+1 555", "use 1 to 256 of the characters"),
        ("GALLEY_EMULATOR_WABA_ID", "0", "a positive whole number below 2^53"),
        ("GALLEY_EMULATOR_WABA_ID", "9007199254740992", "a positive whole number below 2^53"),
        ("GALLEY_EMULATOR_APP_SECRET", "canary", "16"),
    ] {
        let output = emulator(dir.path(), &[]).env(variable, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(variable) && said.contains(expected), "{variable}: {said}");
        assert!(!said.contains("canary"), "{said}");
    }
}

#[test]
fn settings_and_secrets_of_a_real_service_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fs::write(dir.path().join("galley.toml"), "log_level = \"canary\"\n").unwrap();
    let chosen = format!("health_listen = \"{address}\"\npublic_url = \"http://chosen:1\"\n");
    fs::write(dir.path().join("chosen.toml"), chosen).unwrap();
    for (flags, url) in
        [(&[][..], "http://127.0.0.1:"), (&["--config", "chosen.toml"], "http://chosen:1")]
    {
        let mut command = emulator(dir.path(), &[flags, &["--json"]].concat());
        command.envs(OF_A_REAL_SERVICE).env("GALLEY_HEALTH_LISTEN", &address);
        let emulator = Emulator::spawn(command);
        let log = emulator.process.log.wait_for("the address", |log| log.contains("listening on"));
        assert!(emulator.member("url").starts_with(url), "{}", emulator.member("url"));
        for name in ["key", "token", "phone_number_id", "app_secret"] {
            assert!(!emulator.member(name).contains("canary"), "{name}");
        }
        for absent in ["canary", "GALLEY_", "WARN"] {
            assert!(!log.contains(absent), "{absent} in {log}");
        }
    }
}

#[test]
fn what_the_emulator_prints_and_reads_is_no_unknown_setting_of_other_commands() {
    let dir = tempfile::tempdir().unwrap();
    let mut galley = command(GALLEY);
    galley.current_dir(dir.path()).arg("config").envs([
        ("GALLEY_BASE_URL", "http://127.0.0.1:8090/api/v1.0/1/canary"),
        ("GALLEY_EMULATOR_KEY", "canary"),
        ("GALLEY_EMULATOR_WABA_ID", "7"),
    ]);
    let output = galley.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("canary"));
}

#[test]
fn a_faithful_emulator_has_metas_limits_which_seeds_do_not_use_up() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = dir.path().join("seeds");
    fs::create_dir(&seeds).unwrap();
    for name in ["first", "second"] {
        let document = json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Good morning to all of you"}],
        });
        fs::write(seeds.join(format!("{name}.json")), document.to_string()).unwrap();
    }
    let emulator = Emulator::start(dir.path(), &["--faithful", "--seed", "seeds"]);
    for index in 0..100 {
        emulator.create(&format!("order_{index}"));
    }
    let refused = emulator.try_create("next");
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], 80_008, "{refused:?}");
    let list = format!("{}/message_templates?summary=true", emulator.member("waba_id"));
    let summary = emulator.graph("GET", &list, &Value::Null)["summary"].clone();
    let counts = (&summary["message_template_count"], &summary["message_template_limit"]);
    assert_eq!(counts, (&json!(102), &json!(6_000)), "{summary}");
    emulator.control("POST", "clock", &json!({"advance": "1h"}));
    emulator.create("next");
}

#[test]
fn without_limits_a_faithful_emulator_creates_any_number_of_templates() {
    let dir = tempfile::tempdir().unwrap();
    let emulator = Emulator::start(dir.path(), &["--faithful", "--no-limits"]);
    for index in 0..101 {
        emulator.create(&format!("order_{index}"));
    }
}
