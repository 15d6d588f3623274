//! A service that receives the webhooks of a provider, whose secrets appear nowhere.

use galley_server::delivery::{Secret, sign_meta};
use serde_json::json;

use super::upstream::{Mirror, SECRET_KEY, create, provider};
use crate::{
    http::{Request, TIMEOUT, find},
    service::{GALLEY, Launch, command, json_of, until},
};

const APP_SECRET: &str = "canary-app-secret-c7Xk20vQpLm49";

#[test]
fn a_webhook_makes_the_service_read_and_no_output_contains_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let ids = create(&provider, &["order"]);
    let mirror = Mirror::new();
    let token = provider.member("token").to_owned();
    let connected = json_of(&mirror.connect(&provider, "a-token-that-the-provider-refuses"));
    // The import begins, and the service continues it.
    assert!(!mirror.reading("", &["import", "shop"]).status.success());
    let replace = ["token", "shop", "--token-file", "-", "--json"];
    json_of(&mirror.reading(&token, &replace));
    let secret = ["app-secret", "shop", "--app-secret-file", "-", "--json"];
    json_of(&mirror.reading(APP_SECRET, &secret));
    let replaced = mirror.json("hook");
    assert_ne!(connected["hook_path"], replaced["hook_path"]);
    let path = replaced["hook_path"].as_str().unwrap();

    let mut service = Launch::with(command(GALLEY), mirror.dir.path())
        .flags(&["--log-format", "json", "--set", "log_level=trace"])
        .flags(&["--set", "upstream_allow_private=true"])
        .variable("GALLEY_SECRET_KEY", SECRET_KEY)
        .start();
    until(TIMEOUT, "the import has ended", || mirror.json("status")["templates"] == 1);

    let confirm = |path: &str| {
        let token = path.rsplit('/').next().unwrap();
        let query = format!("hub.mode=subscribe&hub.verify_token={token}&hub.challenge=4711");
        service.send(&Request::get(format!("{path}?{query}")))
    };
    let confirmed = confirm(path);
    assert_eq!((confirmed.status, confirmed.text()), (200, "4711".to_owned()));
    let old = confirm(connected["hook_path"].as_str().unwrap());
    assert_eq!(old.status, 404, "{old:?}");

    let edit = json!({"components": [{"type": "BODY", "text": "Your order has arrived today."}]});
    provider.graph("POST", &ids[0], &edit);
    let body = json!({"object": "whatsapp_business_account", "entry": [{
        "id": provider.member("waba_id"), "changes": [{
            "field": "message_template_components_update",
            "value": {"message_template_id": ids[0].parse::<u64>().unwrap()},
        }],
    }]})
    .to_string();
    let signature = sign_meta(&Secret::from_app_secret(APP_SECRET).unwrap(), body.as_bytes());
    let send = |signature: &str| {
        let request = Request::new("POST", path.to_owned()).body(body.clone());
        service.send(&request.header("X-Hub-Signature-256", signature))
    };
    let refused = send("sha256=00");
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(mirror.json("status")["drifted"], 0);
    assert_eq!(send(&signature).status, 200);
    until(TIMEOUT, "the template was read", || mirror.json("status")["drifted"] == 1);

    let metrics = service.send(&Request::get("/metrics")).text();
    for call in ["page", "read", "check"] {
        let line = format!("galley_upstream_calls_total{{call=\"{call}\",outcome=\"success\"}} ");
        let count = metrics.split(&line).nth(1).and_then(|rest| rest.lines().next());
        assert!(count.is_some_and(|count| count != "0"), "{line} in {metrics}");
    }
    service.signal("TERM");
    assert!(service.wait().success());
    let log = service.log.text();
    assert!(log.contains("/upstream/{hook_token}"), "{log}");
    let hook_tokens = [&connected, &replaced]
        .map(|it| it["hook_path"].as_str().unwrap().strip_prefix("/upstream/").unwrap().to_owned());
    for secret in [&*hook_tokens[0], &*hook_tokens[1], APP_SECRET, &*token] {
        for text in [&log, &metrics] {
            assert!(find(text.as_bytes(), secret.as_bytes()).is_none(), "found a secret in {text}");
        }
    }
    mirror.assert_hides(APP_SECRET);
    mirror.assert_hides(&token);
}
