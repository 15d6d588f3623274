//! An account with the rulebook `whatsapp`, used through the Graph API over a real connection.

use serde_json::{Value, json};

use crate::{
    http::Request,
    service::{Launch, Service, galley_json},
};

fn call(
    service: &Service,
    account: &Value,
    method: &'static str,
    path: &str,
    body: Vec<u8>,
) -> Value {
    let token = account["token"].as_str().unwrap();
    let request = Request::new(method, path).header("Authorization", &format!("Bearer {token}"));
    let response = service.send(&request.header("file_offset", "0").body(body));
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

#[test]
fn an_uploaded_sample_is_served_and_links_use_the_public_url() {
    let dir = tempfile::tempdir().unwrap();
    let public = "https://templates.example/galley";
    let service =
        Launch::new(dir.path()).variable("GALLEY_PUBLIC_URL", &format!("{public}/")).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--rulebook", "whatsapp"]);
    let waba = account["account_id"].as_str().unwrap();

    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(700_000, 7);
    let begin = "/v23.0/app/uploads?file_name=a.png&file_length=700000&file_type=image/png";
    let upload = call(&service, &account, "POST", begin, Vec::new());
    let path = format!("/v23.0/{}", upload["id"].as_str().unwrap());
    let handle = call(&service, &account, "POST", &path, picture.clone())["h"].clone();

    let list = format!("/v23.0/{waba}/message_templates");
    for name in ["one", "two"] {
        let document = json!({
            "name": name, "language": "en_US", "category": "MARKETING",
            "components": [
                {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}},
                {"type": "BODY", "text": "Good morning"},
            ],
        });
        call(&service, &account, "POST", &list, document.to_string().into_bytes());
    }
    let page = call(&service, &account, "GET", &format!("{list}?limit=1"), Vec::new());
    let next = page["paging"]["next"].as_str().unwrap();
    assert!(next.starts_with(&format!("{public}{list}?limit=1&after=")), "{next}");
    let sample = &page["data"][0]["components"][0]["example"]["header_handle"][0];
    let sample = sample.as_str().unwrap().strip_prefix(public).unwrap();
    let served = service.send(&Request::get(sample));
    assert_eq!(served.status, 200, "{sample}");
    assert!(served.body == picture, "{} bytes were returned", served.body.len());
}
