//! `POST {base}/message_templates/{id}/render`.

use axum::http::Method;
use serde_json::{Value, json};

use super::app::TestApp;
use crate::harness::TestResponse;

async fn render(app: &TestApp, id: &str, values: &Value) -> TestResponse {
    app.call(Method::POST, &format!("/{id}/render"), values).await
}

async fn order(app: &TestApp) -> String {
    let document = json!({
        "name": "order_shipped", "language": "en_US", "category": "UTILITY",
        "allow_category_change": true,
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"},
            {
                "type": "BODY", "text": "Hi {{2}}, order {{1}} is on its way.",
                "example": {"body_text": [["4711", "Ada"]]},
            },
            {"type": "FOOTER", "text": "The shop"},
            {"type": "BUTTONS", "buttons": [
                {"type": "QUICK_REPLY", "text": "Thanks"},
                {"type": "URL", "text": "Track", "url": "https://shop.example/{{1}}"},
            ]},
        ],
    });
    app.create(&document).await.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn positional_values_produce_the_texts_and_the_payload() {
    let app = TestApp::start().await;
    let id = order(&app).await;
    let values = json!({"header": ["4711"], "body": ["4711", "Ada"], "buttons": {"1": "4711?a=b"}});
    let response = render(&app, &id, &values).await;
    assert_eq!(response.status, 200, "{response:?}");
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        response.json(),
        json!({
            "texts": {
                "header": "Order 4711", "body": "Hi Ada, order 4711 is on its way.",
                "footer": "The shop",
                "buttons": [
                    {"type": "QUICK_REPLY", "text": "Thanks"},
                    {"type": "URL", "text": "Track", "url": "https://shop.example/4711?a=b"},
                ],
            },
            "payload": {
                "messaging_product": "whatsapp",
                "type": "template",
                "template": {
                    "name": "order_shipped",
                    "language": {"code": "en_US"},
                    "components": [
                        {"type": "header", "parameters": [text("4711")]},
                        {"type": "body", "parameters": [text("4711"), text("Ada")]},
                        {
                            "type": "button", "sub_type": "url", "index": "1",
                            "parameters": [text("4711?a=b")],
                        },
                    ],
                },
            },
        })
    );
}

#[tokio::test]
async fn every_invalid_value_is_listed() {
    let app = TestApp::start().await;
    let id = order(&app).await;
    let values =
        json!({"header": [], "body": ["a\nb", 7, "more"], "buttons": {"0": "x", "1": " "}});
    let problem = render(&app, &id, &values).await.problem(422, "invalid-values");
    let mut violations: Vec<String> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["pointer"].as_str().unwrap(), it["rule"].as_str().unwrap()))
        .collect();
    violations.sort_unstable();
    assert_eq!(
        violations,
        [
            "/body/0 value-line-break",
            "/body/1 wrong-type",
            "/body/2 value-superfluous",
            "/buttons/0 value-superfluous",
            "/buttons/1 empty",
            "/header/0 value-missing",
        ]
    );
    render(&app, &id, &json!({})).await.problem(422, "invalid-values");
    render(&app, "7", &json!({})).await.problem(404, "template-unknown");
}
