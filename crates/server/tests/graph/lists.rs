//! Lists: filters in all notations, pages in both directions, counts.

use serde_json::{Value, json};

use super::{
    service::{PUBLIC, Service, TOKEN, hello},
    uploads::{PNG, begin, send},
};

async fn with_templates() -> Service {
    let service = Service::start().await;
    for (name, language, category) in [
        ("one", "en_US", "MARKETING"),
        ("two", "en_US", "UTILITY"),
        ("two", "de", "UTILITY"),
        ("three", "es", "MARKETING"),
    ] {
        let mut document = hello(name);
        document["language"] = json!(language);
        document["category"] = json!(category);
        if name == "three" {
            document["components"][0]["text"] = json!("The weather is fine");
        }
        service.create(&document).await.expect_success();
    }
    service
}

#[tokio::test]
async fn filters_have_several_notations() {
    let service = with_templates().await;
    for (query, names) in [
        ("", &["three", "two", "two", "one"][..]),
        ("?status=approved", &["three", "two", "two", "one"]),
        ("?status=APPROVED,PENDING", &["three", "two", "two", "one"]),
        ("?status=%5B%22APPROVED%22%5D", &["three", "two", "two", "one"]),
        ("?status=PENDING", &[]),
        ("?status=ARCHIVED", &[]),
        ("?status=ARCHIVED,approved", &["three", "two", "two", "one"]),
        ("?category=utility", &["two", "two"]),
        ("?category=[%22UTILITY%22,%22MARKETING%22]", &["three", "two", "two", "one"]),
        ("?language=de", &["two"]),
        ("?language=%00", &[]),
        ("?language=de,es", &["three", "two"]),
        ("?language=[%22de%22,%22en_US%22]&category=UTILITY", &["two", "two"]),
        ("?name=two", &["two", "two"]),
        ("?name=two&language=de", &["two"]),
        ("?name=tw", &[]),
        ("?content=weather", &["three"]),
        ("?name_or_content=tw", &["two", "two"]),
        ("?quality_score=UNKNOWN", &["three", "two", "two", "one"]),
        ("?quality_score=GREEN", &[]),
        ("?quality_score=[%22GREEN%22,%22unknown%22]", &["three", "two", "two", "one"]),
        ("?unknown=this&status=", &["three", "two", "two", "one"]),
    ] {
        assert_eq!(service.list_names(query).await, names, "{query}");
    }
    for (query, code) in [
        ("?status=LIVE", 100),
        ("?category=[", 100),
        ("?category=OTHER", 100),
        ("?quality_score=BLUE", 100),
        ("?limit=0", 100),
        ("?limit=many", 100),
        ("?content=!", 100),
        ("?after=nowhere", 131_059),
        ("?before=-1", 131_059),
    ] {
        service.get(&format!("{}{query}", service.templates())).await.expect_error(400, code, None);
    }
}

#[tokio::test]
async fn paging_links_are_absolute_and_need_no_header() {
    let service = with_templates().await;
    let first =
        service.get(&format!("{}?limit=2&fields=name", service.templates())).await.expect_success();
    let paging = &first["paging"];
    let ids: Vec<&Value> = first["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(paging["cursors"], json!({"before": ids[0], "after": ids[1]}));
    assert_eq!(paging.get("previous"), None);
    let next = paging["next"].as_str().unwrap();
    let start =
        format!("{PUBLIC}/v23.0/{}/message_templates?limit=2&fields=name&after=", service.shop);
    assert!(
        next.starts_with(&start) && next.ends_with(&format!("&access_token={TOKEN}")),
        "{next}"
    );

    let second = follow(&service, next).await;
    assert_eq!(names(&second), ["two", "one"]);
    assert_eq!(second["paging"].get("next"), None, "{second}");
    let back = follow(&service, second["paging"]["previous"].as_str().unwrap()).await;
    assert_eq!(back["data"], first["data"]);
    assert_eq!(back["paging"].get("previous"), None, "{back}");
    assert_eq!(back["paging"]["next"], paging["next"]);

    let after = second["paging"]["cursors"]["after"].as_str().unwrap();
    let end = service.get(&format!("{}?after={after}", service.templates())).await.expect_success();
    assert_eq!(end["data"], json!([]));
    assert_eq!(end["paging"].get("next"), None, "{end}");
    let last = follow(&service, end["paging"]["previous"].as_str().unwrap()).await;
    assert_eq!(names(&last), ["three", "two", "two", "one"], "the page before the cursor");
    let newest = paging["cursors"]["before"].as_str().unwrap();
    let start = format!("{}?limit=2&before={newest}", service.templates());
    let start = service.get(&start).await.expect_success();
    assert_eq!((&start["data"], start["paging"].get("previous")), (&json!([]), None));
    let on = follow(&service, start["paging"]["next"].as_str().unwrap()).await;
    assert_eq!(names(&on), names(&first));
    let empty = service.get(&format!("{}?name=x", service.templates())).await.expect_success();
    assert_eq!(empty["paging"]["cursors"], json!({"before": "", "after": ""}));
}

/// Requests a URL unchanged, without any header.
async fn follow(service: &Service, url: &str) -> Value {
    let path = url.strip_prefix(PUBLIC).unwrap();
    let request = axum::http::Request::builder().uri(path).body(axum::body::Body::empty());
    service.send(request.unwrap()).await.expect_success()
}

fn names(list: &Value) -> Vec<&str> {
    let templates = list["data"].as_array().unwrap().iter();
    templates.map(|template| template["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_summary_has_all_members_even_for_an_empty_list() {
    let service = with_templates().await;
    for (query, total) in [
        ("summary=true", 4),
        ("summary=total_count,message_template_count&category=UTILITY&limit=1", 2),
        ("summary=true&name=two&language=de", 1),
        ("summary=true&status=PENDING", 0),
        ("summary=true&status=ARCHIVED", 0),
    ] {
        let list = service.get(&format!("{}?{query}", service.templates())).await.expect_success();
        let expected = json!({
            "total_count": total, "message_template_count": 4,
            "message_template_limit": 6_000, "are_translations_complete": true,
        });
        assert_eq!(list["summary"], expected, "{query}");
    }
    for query in ["", "?summary=false"] {
        let list = service.get(&format!("{}{query}", service.templates())).await.expect_success();
        assert_eq!(list.get("summary"), None);
    }
}

#[tokio::test]
async fn a_list_does_not_contain_templates_of_another_account() {
    let service = with_templates().await;
    let list = format!("/v23.0/{}/message_templates", service.stranger);
    let response = service
        .call_as(super::service::STRANGER, axum::http::Method::GET, &list, &Value::Null)
        .await;
    assert_eq!(response.expect_success()["data"], json!([]));
}

#[tokio::test]
async fn list_items_contain_the_stored_text_except_for_samples_and_empty_components() {
    let service = Service::start().await;
    let upload = begin(&service, PNG.len()).await;
    let sent = send(&service, &upload, None, PNG).await.expect_success();
    let handle = sent["h"].as_str().unwrap();
    let url = format!("{PUBLIC}/media/{}", handle.strip_prefix("4::galley.").unwrap());
    let header = |handle: &str| json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    let body = json!({
        "type": "BODY", "text": "Say \"hi\" \\ to\n{{1}}, \u{e9}\u{1f600}!",
        "example": {"body_text": [["a/b"]]},
    });
    for (name, handle) in [("own_sample", handle), ("other_sample", "4::aW1n")] {
        let mut document = hello(name);
        document["components"] = json!([header(handle), body]);
        document["message_send_ttl_seconds"] = json!(43_200);
        document["bid_spec"] = json!({"b": 1.50, "a": [1e25, {}, [], "\u{1f}/"]});
        document["degrees_of_freedom_spec"] =
            json!({"creative_features_spec": {"image_touchups": {"enroll_status": "OPT_IN"}}});
        service.create(&document).await.expect_success();
    }
    let mut code = hello("code");
    let otp = json!({"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]});
    code["category"] = json!("AUTHENTICATION");
    code["components"] = json!([{"type": "BODY"}, {"type": "FOOTER"}, otp]);
    service.create(&code).await.expect_success();

    let fields = "name,message_send_ttl_seconds,components,bid_spec,degrees_of_freedom_spec";
    let list = service.get(&format!("{}?fields={fields}", service.templates())).await;
    let items = list.expect_success()["data"].clone();
    let id = |index: usize| items[index]["id"].as_str().unwrap();
    let with_sample = |name: &str, sample: &str, id: &str| {
        format!(
            r#"{{"name":"{name}","message_send_ttl_seconds":43200,"degrees_of_freedom_spec":{{"creative_features_spec":[{{"key":"image_touchups","value":{{"enroll_status":"OPT_IN"}}}}]}},"bid_spec":{{"a":[1e+25,{{}},[],"\u001f/"],"b":1.5}},"components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["{sample}"]}}}},{{"type":"BODY","text":"Say \"hi\" \\ to\n{{{{1}}}}, é😀!","example":{{"body_text":[["a/b"]]}}}}],"id":"{id}"}}"#
        )
    };
    let code = format!(
        r#"{{"name":"code","components":[{{"type":"BODY","add_security_recommendation":false}},{{"type":"BUTTONS","buttons":[{{"type":"OTP","otp_type":"COPY_CODE","text":"Copy code"}}]}}],"id":"{}"}}"#,
        id(0)
    );
    let (other, own) =
        (with_sample("other_sample", "4::aW1n", id(1)), with_sample("own_sample", &url, id(2)));
    let (before, after) = (id(0), id(2));
    let expected = format!(
        r#"{{"data":[{code},{other},{own}],"paging":{{"cursors":{{"before":"{before}","after":"{after}"}}}}}}"#
    );
    assert_eq!(list.text(), expected);
}
