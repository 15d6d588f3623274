//! No secret leaves, except in the place that needs it.

use super::*;
use crate::AuthHeader;

/// The proof of the app secret, from an independent implementation.
const PROOF: &str = "1dc9ded40ad6ad520d84e86ed9599fe681207893aa58c72af337ba28d5514e4d";

fn with_app_secret(script: &Arc<Script>) -> GraphUpstream<Arc<Script>> {
    let mut dialect = Dialect::new("https://graph.example/v23.0", "17").unwrap();
    dialect.app_secret = Some(Secret::new(APP_SECRET));
    GraphUpstream::new(Arc::clone(script), dialect, Secret::new(TOKEN))
}

#[tokio::test]
async fn every_call_carries_the_proof_and_only_the_header_carries_the_token() {
    let ok = r#"{"id":"upload:17","success":true,"h":"4::x","data":[],"name":"a"}"#;
    let script = Script::with_bodies(&[ok; 10]);
    let upstream = with_app_secret(&script);
    let query = PageQuery { after: None, limit: 1, with_components: true };
    upstream.page(query).await.unwrap();
    let _ = upstream.read(&id("7")).await;
    upstream.find("a", "en").await.unwrap();
    upstream.create("{}").await.unwrap();
    upstream.edit(&id("7"), "{}").await.unwrap();
    upstream.delete("a", Some(&id("7"))).await.unwrap();
    let _ = upstream.check().await;
    let file = MediaFile { name: "a".to_owned(), media_type: "b".to_owned(), bytes: vec![7] };
    upstream.upload("99", file).await.unwrap();
    let requests = script.requests();
    assert_eq!(requests.len(), 9);
    for request in &requests {
        let url = request.url.as_str();
        assert!(url.ends_with(&format!("appsecret_proof={PROOF}")), "{url}");
        assert!(!url.contains(TOKEN) && !url.contains(APP_SECRET), "{url}");
        let with_token: Vec<&str> = headers(request)
            .into_iter()
            .filter(|(_, value)| value.contains(TOKEN))
            .map(|it| it.0)
            .collect();
        assert_eq!(with_token, ["authorization"]);
        assert_hidden(&format!("{request:?}"));
    }
    assert_hidden(&format!("{upstream:?}"));
}

fn assert_hidden(text: &str) {
    for secret in [TOKEN, APP_SECRET, PROOF] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test]
async fn an_error_that_quotes_a_secret_does_not_pass_it_on() {
    let text = format!(
        r#"{{"error":{{"message":"Malformed access token {TOKEN}","code":190,"error_user_title":"{APP_SECRET}","error_user_msg":"Bearer {TOKEN} with {PROOF}"}}}}"#
    );
    let script = Script::new([
        Ok(response(401, &text)),
        Ok(response(500, &text.replace("190", "2"))),
        Ok(response(200, &text)),
    ]);
    let upstream = with_app_secret(&script);
    for expected in ["credentials", "unknown", "credentials"] {
        let failure = upstream.create("{}").await.unwrap_err();
        assert_eq!(failure.as_str(), expected);
        assert_hidden(&format!("{failure:?} {failure}"));
        assert!(failure.to_string().contains("[redacted]"));
    }
}

#[tokio::test]
async fn the_token_in_the_link_to_the_next_page_is_dropped() {
    let script = Script::with_bodies(&[&page(&[template(1, "a", "en")], Some("c1"))]);
    let query = PageQuery { after: None, limit: 1, with_components: true };
    let found = upstream(&script).page(query).await.unwrap();
    assert_hidden(&format!("{found:?}"));
    assert_eq!(found.after.as_deref(), Some("c1"));
}

#[tokio::test]
async fn a_provider_with_a_header_of_its_own_gets_the_token_there() {
    let script = Script::with_bodies(&[r#"{"success":true}"#]);
    let mut dialect = Dialect::new("https://waba.example", "17").unwrap();
    dialect.auth = AuthHeader::Named("d360-api-key".to_owned());
    let upstream = GraphUpstream::new(Arc::clone(&script), dialect, Secret::new(TOKEN));
    upstream.delete("a", None).await.unwrap();
    assert_eq!(headers(&script.requests()[0])[0], ("d360-api-key", TOKEN));
}
