//! Accounts and phone numbers created with the command line while the service runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    http::{Request, Response},
    service::{Launch, Service, document, galley, galley_json, until},
};

/// Creates a template as the account that `galley account create --json` printed.
fn create(service: &Service, account: &Value, phone: &str, name: &str) -> Response {
    let member = |name: &str| account[name].as_str().unwrap();
    let path = format!("/api/v1.0/{phone}/{}/message_templates", member("key"));
    let request = Request::new("POST", path)
        .header("Authorization", &format!("Bearer {}", member("token")))
        .body(document(name, "Hello!").to_string());
    service.send(&request)
}

#[test]
fn account_create_prints_four_members_that_work_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop"]);
    let members: Vec<_> = account.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["account_id", "key", "phone_number_id", "token"]);
    assert!(account.as_object().unwrap().values().all(Value::is_string));
    let phone = account["phone_number_id"].as_str().unwrap();
    let created = create(&service, &account, phone, "by_the_new_account");
    assert_eq!(created.status, 201, "{created:?}");
}

#[test]
fn account_create_uses_the_given_phones_and_secrets_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let arguments = ["account", "create", "moved", "--phone", "4911", "--phone", "4922"];
    let secrets = ["--rulebook", "v1", "--review", "auto", "--key", "k1", "--token", "t1"];
    let output = galley(dir.path(), &[&arguments[..], &secrets, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let account: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(account["phone_number_id"], "4911");
    assert_eq!([&account["key"], &account["token"]], ["k1", "t1"]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("weak") && !warning.contains("k1"), "{warning}");
    assert_eq!(create(&service, &account, "4911", "one").status, 201);
    assert_eq!(create(&service, &account, "4922", "two").status, 201);
    create(&service, &account, "4933", "three").is_problem(404, "phone-unknown");
}

#[test]
fn an_account_that_accepts_any_phone_owns_a_phone_after_its_first_use() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let one = galley_json(dir.path(), &["account", "create", "one"]);
    let two = galley_json(dir.path(), &["account", "create", "two"]);
    assert_eq!(create(&service, &one, "777", "first_account").status, 201);
    create(&service, &two, "777", "second_account").is_problem(404, "phone-unknown");
    assert_eq!(create(&service, &one, "777", "again").status, 201);
}

#[test]
fn phones_are_added_and_listed_while_the_service_runs() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    create(&service, &account, "200", "early").is_problem(404, "phone-unknown");
    galley_json(dir.path(), &["phone", "add", "shop", "200"]);
    assert_eq!(
        create(&service, &account, "200", "late").status,
        201,
        "a new phone works immediately"
    );
    let phones = galley_json(dir.path(), &["phone", "list", "shop"]);
    assert_eq!(phones, json!([{"phone_number_id": "100"}, {"phone_number_id": "200"}]));

    galley_json(dir.path(), &["account", "create", "other", "--phone", "300"]);
    let output = galley(dir.path(), &["phone", "add", "shop", "300"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("another account"));
}

#[test]
fn a_removed_phone_is_refused_and_another_account_can_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let one = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let two = galley_json(dir.path(), &["account", "create", "other"]);
    assert_eq!(create(&service, &one, "100", "one").status, 201);
    create(&service, &two, "100", "two").is_problem(404, "phone-unknown");
    assert_eq!(galley_json(dir.path(), &["phone", "remove", "shop", "100"])["removed"], "100");
    until(Duration::from_secs(5), "the number is refused", || {
        create(&service, &one, "100", "three").status == 404
    });
    assert_eq!(create(&service, &two, "100", "two").status, 201);
    let output = galley(dir.path(), &["phone", "remove", "shop", "100"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("does not own"));
}

#[test]
fn a_disabled_account_gets_403_until_it_is_enabled() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    assert_eq!(create(&service, &account, "100", "before").status, 201);
    galley_json(dir.path(), &["account", "disable", "shop"]);
    until(Duration::from_secs(5), "a disabled account is refused", || {
        create(&service, &account, "100", "before").status == 403
    });
    create(&service, &account, "100", "refused").is_problem(403, "account-disabled");
    service.assert_works("other_accounts_still_work");
    assert!(galley_json(dir.path(), &["account", "show", "shop"])["disabled_at"].is_string());

    galley_json(dir.path(), &["account", "enable", "shop"]);
    until(Duration::from_secs(5), "an enabled account is accepted", || {
        create(&service, &account, "100", "before").status == 409
    });
}

#[test]
fn the_operator_sets_one_limit_of_an_account_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Launch::new(dir.path()).start().end().0.success());
    galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let limit = |arguments: &[&str]| {
        galley_json(dir.path(), &[&["account", "limit", "shop"], arguments].concat())
    };
    assert_eq!(limit(&["--requests-per-second", "50"])["requests_per_second"], 50);
    assert_eq!(limit(&["250"])["requests_per_second"], 50);
    let shown = galley_json(dir.path(), &["account", "show", "shop"]);
    assert_eq!(
        (&shown["template_limit"], &shown["requests_per_second"]),
        (&json!(250), &json!(50))
    );
    assert!(limit(&["--requests-per-second", "none"])["requests_per_second"].is_null());
    assert_eq!(galley_json(dir.path(), &["account", "show", "shop"])["template_limit"], 250);
    let limited = limit(&["--stored-bytes", "2MiB", "--phone-numbers", "5"]);
    assert_eq!(limited["stored_bytes_limit"], 2 << 20);
    assert_eq!(limited["phone_number_limit"], 5);
    assert!(limit(&["--stored-bytes", "none"])["stored_bytes_limit"].is_null());
    let limited = limit(&["--stored-bytes", "default"]);
    assert_eq!(limited["stored_bytes_limit"], 32_u64 << 30);
    assert_eq!(limited["phone_number_limit"], 5);
    assert_eq!(galley_json(dir.path(), &["account", "show", "shop"])["stored_bytes"], 0);
    for invalid in [
        &["--requests-per-second", "0"][..],
        &["--requests-per-second", "many"],
        &["--stored-bytes", "2MB"],
        &["--phone-numbers", "0"],
        &[],
    ] {
        let output = galley(dir.path(), &[&["account", "limit", "shop"], invalid].concat());
        assert!(!output.status.success(), "{invalid:?}");
    }
}

#[test]
fn the_operator_sets_and_removes_the_template_limit_of_an_account() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "other", "--phone", "200"]);
    let limited = galley_json(dir.path(), &["account", "limit", "other", "1"]);
    assert_eq!(limited["template_limit"], 1);
    assert_eq!(galley_json(dir.path(), &["account", "show", "other"])["template_limit"], 1);
    assert_eq!(create(&service, &account, "200", "one").status, 201);
    create(&service, &account, "200", "two").is_problem(429, "limit-reached");
    galley_json(dir.path(), &["account", "limit", "other", "none"]);
    assert_eq!(create(&service, &account, "200", "two").status, 201);
    for invalid in ["0", "many", "-1"] {
        assert!(
            !galley(dir.path(), &["account", "limit", "other", "--", invalid]).status.success()
        );
    }
}
