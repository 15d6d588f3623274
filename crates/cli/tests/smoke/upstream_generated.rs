//! What `galley upstream` shows of templates that the provider generates, and of those that it misses.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use super::upstream::Mirror;
use crate::service::json_of;

/// The list of a provider: names and sources.
#[derive(Default)]
struct Provider(Mutex<Vec<(String, &'static str)>>);

impl Provider {
    /// Answers until the test process ends. Returns its address.
    fn start(self: &Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v23.0", listener.local_addr().unwrap());
        let provider = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming() {
                provider.answer(&mut stream.unwrap());
            }
        });
        url
    }

    fn set(&self, own: usize, generated: usize) {
        let own = (0..own).map(|it| (format!("order_{it:02}"), "BUSINESS"));
        let generated = (0..generated).map(|it| (format!("auto_generated_{it}"), "AUTO_GENERATED"));
        *self.0.lock().unwrap() = own.chain(generated).collect();
    }

    fn answer(&self, stream: &mut TcpStream) {
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
        let body = if head.contains("/message_templates?") {
            let listed = self.0.lock().unwrap();
            let data: Vec<Value> =
                listed.iter().map(|(name, source)| template(name, source)).collect();
            json!({"summary": {"total_count": data.len()}, "data": data})
        } else {
            json!({"data": {"is_valid": true}})
        };
        let (body, length) = (body.to_string(), body.to_string().len());
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}

fn template(name: &str, source: &str) -> Value {
    json!({
        "id": name, "name": name, "language": "en_US", "status": "APPROVED", "category": "UTILITY",
        "source": source, "components": [{"type": "BODY", "text": "Your order is on its way."}],
    })
}

#[test]
fn generated_templates_are_shown_apart_and_missing_ones_by_name() {
    let provider = Arc::new(Provider::default());
    let base_url = provider.start();
    let mirror = Mirror::new();
    let connect = ["connect", "shop", "--base-url", &base_url, "--waba", "17"];
    json_of(&mirror.reading("token", &[&connect[..], &["--token-file", "-", "--json"]].concat()));
    provider.set(30, 40);
    let dry = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    let counts = (&dry["seen"], &dry["generated"], &dry["new"], &dry["changed"]);
    assert_eq!(counts, (&json!(70), &json!(40), &json!(30), &json!(30)), "{dry}");
    let imported = mirror.json("import");
    let counts = (&imported["seen"], &imported["generated"], &imported["changed"]);
    assert_eq!(counts, (&json!(70), &json!(40), &json!(30)), "{imported}");
    let plan = mirror.run(&["plan", "shop", "--json"]);
    assert_eq!(plan.status.code(), Some(0), "generated templates are no difference: {plan:?}");
    assert_eq!(json_of(&plan)["generated"], 40);
    let of = |source: &str| {
        let listed = json_of(&mirror.run(&["templates", "shop", "--source", source, "--json"]));
        let listed = listed.as_array().unwrap().clone();
        (listed.len(), listed.first().map(|it| it.get("template_id").is_some()))
    };
    assert_eq!((of("AUTO_GENERATED"), of("BUSINESS")), ((40, Some(false)), (30, Some(true))));
    assert_eq!(mirror.json("templates").as_array().map(Vec::len), Some(70));

    provider.set(30, 0);
    let synced = mirror.json("sync");
    assert_eq!((&synced["complete"], &synced["suspicious"]), (&json!(true), &json!(false)));
    let status = mirror.json("status");
    let counts = (&status["state"], &status["templates"], &status["generated"]);
    assert_eq!(counts, (&json!("connected"), &json!(30), &json!(0)), "{status}");
    assert_eq!((status.get("unseen"), status.get("unseen_templates")), (None, None));

    provider.set(5, 0);
    mirror.json("sync");
    let status = mirror.json("status");
    assert_eq!((&status["state"], &status["unseen"]), (&json!("suspicious"), &json!(25)));
    let names = status["unseen_templates"].as_array().unwrap();
    assert_eq!((names.len(), &names[0]), (20, &json!("order_05 en_US")));
}

#[test]
fn a_generated_template_that_was_imported_is_no_difference() {
    let provider = Arc::new(Provider::default());
    let base_url = provider.start();
    let mirror = Mirror::new();
    let connect = ["connect", "shop", "--base-url", &base_url, "--waba", "17"];
    json_of(&mirror.reading("token", &[&connect[..], &["--token-file", "-", "--json"]].concat()));
    let set = |source| *provider.0.lock().unwrap() = vec![("auto_generated_1".to_owned(), source)];
    // The provider does not show the right source at first.
    set("BUSINESS");
    mirror.json("import");
    assert_eq!(mirror.json("status")["templates"], 1, "it is in the account");
    set("AUTO_GENERATED");
    mirror.json("sync");
    let plan = mirror.run(&["plan", "shop", "--json"]);
    assert_eq!(json_of(&plan), json!({"items": [], "generated": 1}));
    assert_eq!(plan.status.code(), Some(0));
}
