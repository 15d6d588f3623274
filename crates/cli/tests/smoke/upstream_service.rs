//! A service that runs while an account is connected.

use serde_json::{Value, json};

use super::upstream::{Mirror, SECRET_KEY, create, provider};
use crate::{
    http::Request,
    service::{GALLEY, Launch, command, galley_json, json_of},
};

#[test]
fn a_running_service_leaves_the_first_look_to_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    create(&provider, &["order"]);
    let mirror = Mirror::new();
    let _service = Launch::with(command(GALLEY), mirror.dir.path())
        .flags(&["--set", "upstream_allow_private=true"])
        .variable("GALLEY_SECRET_KEY", SECRET_KEY)
        .start();
    json_of(&mirror.connect(&provider, provider.member("token")));
    let status = mirror.json("status");
    assert_eq!((&status["templates"], &status["sweep_began_at"]), (&json!(0), &Value::Null));
    mirror.json("check");
    let imported = mirror.json("import");
    assert_eq!((&imported["complete"], &imported["seen"]), (&json!(true), &json!(1)));
    assert_eq!(mirror.json("status")["templates"], 1);
}

#[test]
fn templates_created_after_connect_wait_for_the_provider() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let mirror = Mirror::new();
    let service = Launch::with(command(GALLEY), mirror.dir.path())
        .flags(&["--set", "upstream_allow_private=true", "--set", "upstream_sync=false"])
        .variable("GALLEY_SECRET_KEY", SECRET_KEY)
        .start();
    let created = galley_json(mirror.dir.path(), &["token", "create", "shop"]);
    let token = created["token"].as_str().unwrap().to_owned();
    let account = galley_json(mirror.dir.path(), &["account", "show", "shop"]);
    let waba = account["id"].as_str().unwrap().to_owned();
    let submit = |name: &str| {
        let document = json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Your order has arrived."}],
        });
        let request = Request::new("POST", format!("/v23.0/{waba}/message_templates"));
        let request = request.header("Authorization", &format!("Bearer {token}"));
        let response = service.send(&request.body(document.to_string()));
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    };
    // The service knows the account from now on.
    assert_eq!(submit("before")["status"], "APPROVED");
    json_of(&mirror.connect(&provider, provider.member("token")));
    let after = submit("after");
    assert_eq!(after["status"], "PENDING", "{after}");
    assert_eq!(after["galley_upstream"]["state"], "queued", "{after}");
}
