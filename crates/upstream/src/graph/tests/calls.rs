//! The requests of every call.

use super::*;

const HEADERS: &str = "id,name,language,status,category,previous_category,correct_category,quality_score,rejected_reason,last_updated_time,source";
const CONTENT: &str = "parameter_format,components,sub_category,message_send_ttl_seconds,cta_url_link_tracking_opted_out,degrees_of_freedom_spec,library_template_name,display_format";
const SUMMARY: &str = "summary=total_count,message_template_count,message_template_limit";

#[tokio::test]
async fn a_page_is_read_by_cursor_and_the_link_to_the_next_page_is_not_followed() {
    let first = page(&[template(1, "a", "en")], Some("c1"));
    let first = first.replace(
        r#""paging""#,
        r#""summary":{"total_count":2,"message_template_count":9,"message_template_limit":6000},"paging""#,
    );
    let script = Script::with_bodies(&[&first, &page(&[template(2, "b", "en")], None)]);
    let upstream = upstream(&script);
    let query = PageQuery { after: None, limit: 50, with_components: false };
    let one = upstream.page(query.clone()).await.unwrap();
    assert_eq!((one.total, one.limit, one.unreadable), (Some(2), Some(6_000), 0));
    assert_eq!(one.after.as_deref(), Some("c1"));
    let query = PageQuery { after: one.after, with_components: true, ..query };
    let two = upstream.page(query).await.unwrap();
    assert_eq!((two.after, two.total), (None, None), "the last page has a cursor, but no link");
    assert_eq!(two.templates[0].id, id("2"));
    assert_eq!(
        script.lines(),
        [
            format!("GET /17/message_templates?fields={HEADERS}&limit=50&{SUMMARY}"),
            format!("GET /17/message_templates?fields={HEADERS},{CONTENT}&limit=50&after=c1"),
        ]
    );
    for request in script.requests() {
        let expected =
            [("authorization", "Bearer EAAG-canary-token"), ("accept", "application/json")];
        assert_eq!(headers(&request), expected);
        assert_eq!((request.kind, request.body.len()), (Some(CallKind::Page), 0));
        assert_eq!(request.url.host_str(), Some("graph.example"));
    }
}

#[tokio::test]
async fn documents_are_kept_byte_for_byte_and_unreadable_templates_are_counted() {
    let strange = r#"{ "id" : 1234567890123456789, "name":"a","language":"en-US", "status":"MOON",
        "category":"UTILITY","components":[{"type":"HOLOGRAM","x":{"\u0041":1.50,"A":2}} ,{"type":"BODY"}] }"#;
    let body = format!(
        r#"{{"paging":{{}},"data":[ {strange} ,{{"id":"8"}},7,{}],"other":[]}}"#,
        template(9, "b", "de")
    );
    let script = Script::with_bodies(&[&body]);
    let query = PageQuery { after: None, limit: 100, with_components: true };
    let page = upstream(&script).page(query).await.unwrap();
    assert_eq!((page.templates.len(), page.unreadable, page.after), (2, 2, None));
    assert_eq!(page.templates[0].document.as_deref(), Some(strange));
    assert_eq!(page.templates[0].status.as_str(), "MOON");
    assert_eq!(page.templates[1].document.as_deref(), Some(&*template(9, "b", "de")));
}

#[tokio::test]
async fn a_search_ends_when_the_list_repeats_itself() {
    let empty = |after: &str| page(&[], Some(after));
    let shown = |after| page(&[template(1, "a", "en")], Some(after));
    let cycle = |length: usize| (0..10).map(|it| empty(&format!("c{}", it % length))).collect();
    for pages in [cycle(1), cycle(3), cycle(10), vec![shown("c1"), empty("c2"), shown("c3")]] {
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        let script = Script::with_bodies(&pages);
        let failure = upstream(&script).find("order", "en").await.unwrap_err();
        assert_eq!((failure.as_str(), script.lines().len()), ("unknown", pages.len()));
    }
}

#[tokio::test]
async fn a_read_that_shows_another_template_has_failed() {
    let script = Script::with_bodies(&[&template(8, "a", "en")]);
    let failure = upstream(&script).read(&id("7")).await.unwrap_err();
    assert_eq!(failure, CallFailure::OtherTemplate);
    // A search reads what a list without components shows.
    for other in [template(9, "order", "en"), template(3, "other", "en")] {
        let script = Script::with_bodies(&[
            &page(&[template(1, "a", "en")], Some("c1")),
            &page(&[template(3, "order", "en")], None),
            &other,
        ]);
        let failure = upstream(&script).find("order", "en").await.unwrap_err();
        assert_eq!(failure, CallFailure::OtherTemplate, "{other}");
    }
}

#[tokio::test]
async fn fields_that_the_provider_does_not_know_are_left_out_from_then_on() {
    let unknown = r#"{"error":{"message":"(#100) Tried accessing nonexisting field (display_format)","type":"OAuthException","code":100}}"#;
    let found = template(7, "a", "en");
    let script = Script::new([
        Ok(response(400, unknown)),
        Ok(response(200, &found)),
        Ok(response(200, &found)),
    ]);
    let upstream = upstream(&script);
    assert_eq!(upstream.read(&id("7")).await.unwrap().name, "a");
    assert_eq!(upstream.read(&id("7")).await.unwrap().name, "a");
    let has_new =
        script.lines().iter().map(|it| it.contains("last_updated_time")).collect::<Vec<_>>();
    assert_eq!(has_new, [true, false, false]);
    assert!(script.lines()[2].contains("source"), "only what is refused is left out");
    // A later session does not ask for them again.
    let refused = upstream.refused_fields();
    let script = Script::new([Ok(response(200, &found))]);
    let upstream = super::upstream(&script).without_refused_fields(refused);
    assert_eq!(upstream.read(&id("7")).await.unwrap().name, "a");
    assert!(!script.lines()[0].contains("last_updated_time"));
    // Another error of the same code is not about the fields.
    let script = Script::new((0..3).map(|_| Ok(response(400, unknown))));
    let upstream = super::upstream(&script);
    assert_eq!(upstream.read(&id("7")).await.unwrap_err().as_str(), "refused");
    let query = PageQuery { after: None, limit: 1, with_components: false };
    let script_lines = |index: usize| script.lines()[index].clone();
    assert!(
        script_lines(0).contains("display_format") && !script_lines(1).contains("display_format")
    );
    *script.responses.lock().unwrap() = VecDeque::from([Ok(response(200, &page(&[], None)))]);
    upstream.page(query).await.unwrap();
    assert!(script_lines(3).contains("last_updated_time,source"));
}

/// A provider with some of the new fields, which names the one that it refuses, or none.
#[tokio::test]
async fn each_new_field_is_left_out_where_it_is_refused_and_no_other() {
    let refusal = |field: &str| {
        let message = format!("(#100) Tried accessing nonexisting field{field} on node type (T)");
        Ok(response(400, &format!(r#"{{"error":{{"message":"{message}","code":100}}}}"#)))
    };
    let (time, source) = (" (last_updated_time)", " (source)");
    for (refused, kept) in [
        (vec![], [true, true]),
        (vec![source], [true, false]),
        (vec![time], [false, true]),
        (vec![time, source], [false, false]),
        (vec![source, time], [false, false]),
        // An error that names none may be about something else: it has to come twice.
        (vec![""], [true, true]),
        // The source is the newest one. The others are left out without it before all are.
        (vec!["", ""], [true, false]),
        (vec!["", "", ""], [false, true]),
        (vec!["", "", "", ""], [false, false]),
        (vec!["", "", time], [false, true]),
        (vec![source, ""], [false, false]),
    ] {
        let template = template(7, "a", "en").replacen('{', r#"{"source":"AUTO_GENERATED","#, 1);
        let pages = (0..2).map(|_| Ok(response(200, &page(std::slice::from_ref(&template), None))));
        let script = Script::new(refused.iter().map(|field| refusal(field)).chain(pages));
        let upstream = upstream(&script);
        for _ in 0..2 {
            let query = PageQuery { after: None, limit: 1, with_components: true };
            assert!(upstream.page(query).await.unwrap().templates[0].is_generated());
        }
        let lines = script.lines();
        assert_eq!(lines.len(), refused.len() + 2, "{refused:?}");
        for line in &lines[refused.len()..] {
            let asked = ["last_updated_time", "source"].map(|field| line.contains(field));
            assert_eq!(asked, kept, "{refused:?}: {line}");
            assert_eq!(line.contains("display_format"), kept[0], "{line}");
        }
        // A later session leaves out only what was named: another error may have been about something else.
        let named = [(source, super::super::WITHOUT_SOURCE), (time, super::super::WITHOUT_OTHERS)];
        let named = named.iter().filter(|(field, _)| refused.contains(field)).map(|it| it.1);
        assert_eq!(upstream.refused_fields(), named.sum::<u8>(), "{refused:?}");
    }
}

#[tokio::test]
async fn a_generated_template_is_found_only_if_there_is_no_other() {
    let generated = template(7, "order", "en").replacen('{', r#"{"source":"AUTO_GENERATED","#, 1);
    let (own, deleted) = (template(8, "order", "en"), template(9, "order", "en"));
    let deleted = deleted.replace("APPROVED", "DELETED");
    for (templates, expected) in [
        (vec![generated.clone(), own.clone()], "8"),
        (vec![own, generated.clone()], "8"),
        (vec![deleted.clone(), generated.clone()], "7"),
        (vec![generated, deleted], "7"),
    ] {
        let script = Script::with_bodies(&[&page(&templates, None)]);
        let found = upstream(&script).find("order", "en").await.unwrap().unwrap();
        assert_eq!(found.id, id(expected), "{templates:?}");
    }
}

#[tokio::test]
async fn a_template_is_read_by_its_id() {
    let script = Script::with_bodies(&[&template(7, "a", "en")]);
    let found = upstream(&script).read(&id("7")).await.unwrap();
    assert_eq!(found.document.as_deref(), Some(&*template(7, "a", "en")));
    assert_eq!(script.lines(), [format!("GET /7?fields={HEADERS},{CONTENT}")]);
    assert_eq!(script.requests()[0].kind, Some(CallKind::Read));
}

#[tokio::test]
async fn a_template_is_found_by_name_and_language_in_one_call() {
    let others =
        [template(1, "order_old", "en"), template(2, "order", "de"), template(3, "order", "en-US")];
    let script = Script::with_bodies(&[&page(&others, None)]);
    let found = upstream(&script).find("order", "en_US").await.unwrap().unwrap();
    assert_eq!((found.id, found.document.is_some()), (id("3"), true));
    let line = format!(
        "GET /17/message_templates?fields={HEADERS},{CONTENT}&limit=100&{SUMMARY}&name=order"
    );
    assert_eq!(script.lines(), [line]);
    let script = Script::with_bodies(&[&page(&others, None)]);
    assert_eq!(upstream(&script).find("order", "fr").await, Ok(None));
}

#[tokio::test]
async fn a_provider_that_ignores_the_filter_is_searched_page_by_page() {
    let script = Script::with_bodies(&[
        &page(&[template(1, "a", "en")], Some("c1")),
        &page(&[template(2, "b", "en")], Some("c2")),
        &page(&[template(3, "order", "en")], Some("c3")),
        &template(3, "order", "en"),
    ]);
    let found = upstream(&script).find("order", "en").await.unwrap().unwrap();
    assert_eq!((found.id, found.document.is_some()), (id("3"), true));
    let lines = script.lines();
    assert!(lines[1].ends_with(&format!("fields={HEADERS}&limit=100&after=c1&name=order")));
    assert!(lines[2].contains("after=c2") && lines[3].starts_with("GET /3?"), "{lines:?}");
    let first = Ok(response(200, &page(&[template(1, "a", "en")], Some("c1"))));
    let script = Script::new([first].into_iter().chain((0..4).map(|_| Ok(response(500, "")))));
    let failure = upstream(&script).find("order", "en").await.unwrap_err();
    assert_eq!(failure.as_str(), "unknown", "half of a list does not say that it is absent");
}

#[tokio::test]
async fn a_search_goes_on_with_smaller_pages_after_one_that_was_too_large() {
    let too_large = r#"{"error":{"message":"Please reduce the amount of data","code":1}}"#;
    let first = page(&[template(1, "a", "en")], Some("c1"));
    let script = Script::new([
        Ok(response(500, too_large)),
        Ok(response(200, &first)),
        Ok(response(502, "")),
        Err(TransportError::Unknown("timeout".to_owned())),
        Ok(response(200, &page(&[template(3, "order", "en")], Some("c2")))),
        Ok(response(200, &template(3, "order", "en"))),
    ]);
    let found = upstream(&script).find("order", "en").await.unwrap().unwrap();
    assert_eq!((found.id, found.document.is_some()), (id("3"), true));
    let lines = script.lines();
    let list = |query: &str| format!("GET /17/message_templates?{query}&name=order");
    let header = |query: &str| list(&format!("fields={HEADERS}&{query}"));
    let content = format!("fields={HEADERS},{CONTENT}&limit=100&{SUMMARY}");
    assert_eq!(
        lines[..5],
        [
            list(&content),
            header(&format!("limit=50&{SUMMARY}")),
            header("limit=50&after=c1"),
            header("limit=25&after=c1"),
            header("limit=12&after=c1"),
        ]
    );
    assert!(lines[5].starts_with("GET /3?"), "{lines:?}");
    // A fourth failure, and one that is not about the page, end the search.
    let script = Script::new((0..4).map(|_| Ok(response(500, too_large))));
    let failure = upstream(&script).find("order", "en").await.unwrap_err();
    assert_eq!((failure.as_str(), script.lines().len()), ("too_much_data", 4));
    let script = Script::new([Err(TransportError::NotSent("refused".to_owned()))]);
    let failure = upstream(&script).find("order", "en").await.unwrap_err();
    assert_eq!((failure.as_str(), script.lines().len()), ("not_sent", 1));
}

#[tokio::test]
async fn a_deleted_template_is_found_only_if_there_is_no_other() {
    let deleted = template(1, "order", "en").replace("APPROVED", "PENDING_DELETION");
    let both = [deleted.clone(), template(2, "order", "en")];
    let script = Script::with_bodies(&[&page(&both, None), &page(&[deleted], None)]);
    let upstream = upstream(&script);
    assert_eq!(upstream.find("order", "en").await.unwrap().unwrap().id, id("2"));
    assert_eq!(upstream.find("order", "en").await.unwrap().unwrap().id, id("1"));
}

#[tokio::test]
async fn a_create_sends_the_document_unchanged_and_returns_id_status_and_category() {
    let script = Script::with_bodies(&[r#"{"id":"55","status":"PENDING","category":"MARKETING"}"#]);
    let document = r#"{"name":"a", "components":[ ]}"#;
    let created = upstream(&script).create(document).await.unwrap();
    assert_eq!((created.id, created.category.as_deref()), (id("55"), Some("MARKETING")));
    assert_eq!(script.lines(), ["POST /17/message_templates"]);
    let request = &script.requests()[0];
    assert_eq!(request.body, document.as_bytes());
    assert_eq!(request.kind, Some(CallKind::Create));
    assert_eq!(headers(request)[2], ("content-type", "application/json"));
}

#[tokio::test]
async fn an_edit_and_a_delete_need_a_success() {
    let script = Script::with_bodies(&[
        r#"{"success":true}"#,
        r#"{"success":true,"id":"7","name":"a","category":"UTILITY"}"#,
        r#"{"id":"7","name":"a"}"#,
        r#"{"success":false}"#,
        "{}",
        r#"{"success":true}"#,
        r#"{"success":true}"#,
    ]);
    let upstream = upstream(&script);
    for _ in 0..3 {
        assert_eq!(upstream.edit(&id("7"), "{}").await, Ok(()));
    }
    for _ in 0..2 {
        assert_eq!(upstream.edit(&id("7"), "{}").await.unwrap_err().as_str(), "unknown");
    }
    assert_eq!(upstream.delete("a&b", Some(&id("7"))).await, Ok(()));
    assert_eq!(upstream.delete("a", None).await, Ok(()));
    let lines = script.lines();
    assert_eq!(lines[0], "POST /7");
    assert_eq!(lines[5], "DELETE /17/message_templates?name=a&b&hsm_id=7");
    assert_eq!(lines[6], "DELETE /17/message_templates?name=a");
    let query = script.requests()[5].url.query().unwrap().to_owned();
    assert_eq!(query, "name=a%26b&hsm_id=7", "the name cannot add a parameter");
}

#[tokio::test]
async fn a_template_is_put_aside_and_taken_back_at_the_address_of_the_archive() {
    let reason = format!("The token {TOKEN} may not archive a PENDING template.");
    let script = Script::with_bodies(&[
        r#"{"archived_templates":["7"],"failed_templates":{}}"#,
        r#"{"unarchived_templates":[7],"failed_templates":{}}"#,
        &format!(r#"{{"archived_templates":[],"failed_templates":{{"7":"{reason}"}}}}"#),
        r#"{"archived_templates":["8"],"failed_templates":{"8":"no"}}"#,
        r#"{"success":true}"#,
    ]);
    let upstream = upstream(&script);
    assert_eq!(upstream.archive(&id("7")).await, Ok(()));
    assert_eq!(upstream.unarchive(&id("7")).await, Ok(()));
    let CallFailure::Refused(error) = upstream.archive(&id("7")).await.unwrap_err() else {
        panic!("a template that is listed as failed is refused")
    };
    assert_eq!(error.message, "The token [redacted] may not archive a PENDING template.");
    for _ in 0..2 {
        // The response says nothing about the template.
        assert_eq!(upstream.archive(&id("7")).await.unwrap_err().as_str(), "unknown");
    }
    let requests = script.requests();
    let urls: Vec<&str> = requests.iter().map(|it| it.url.as_str()).take(2).collect();
    assert_eq!(
        urls,
        [
            "https://graph.example/17/message_templates/archive",
            "https://graph.example/17/message_templates/unarchive",
        ]
    );
    assert_eq!(requests[0].body, br#"{"hsm_ids":["7"]}"#);
    assert_eq!(requests[0].method, Method::Post);
    let kinds: Vec<_> = requests.iter().filter_map(|it| it.kind).take(2).collect();
    assert_eq!(kinds, [CallKind::Archive, CallKind::Unarchive]);
    assert_eq!(headers(&requests[0])[0], ("authorization", "Bearer EAAG-canary-token"));
}

#[tokio::test]
async fn a_sample_is_declared_and_sent() {
    let session = r#"{"id":"upload:MTph==?sig=ARZ_x%2F&v=1"}"#;
    let script = Script::with_bodies(&[session, r#"{"h":"4::aW1h"}"#]);
    let file = MediaFile {
        name: "a b.png".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: vec![1, 2, 3],
    };
    let upstream = upstream(&script).with_deadline(Duration::from_secs(10));
    assert_eq!(upstream.upload("99", file).await.as_deref(), Ok("4::aW1h"));
    assert_eq!(
        script.lines(),
        [
            "POST /99/uploads?file_name=a b.png&file_length=3&file_type=image/png",
            "POST /upload:MTph==?sig=ARZ_x/&v=1",
        ]
    );
    let requests = script.requests();
    assert_eq!(requests[0].deadline, Duration::from_secs(10));
    assert!(requests[1].deadline > Duration::from_mins(1));
    assert_eq!(requests[1].body, [1, 2, 3]);
    assert_eq!(
        headers(&requests[1]),
        [
            ("authorization", "OAuth EAAG-canary-token"),
            ("accept", "application/json"),
            ("file_offset", "0"),
            ("content-type", "application/octet-stream"),
        ]
    );
    let elsewhere = Script::with_bodies(&[r#"{"id":"https://elsewhere.example/x"}"#]);
    let file = MediaFile { name: String::new(), media_type: String::new(), bytes: Vec::new() };
    let failure = super::upstream(&elsewhere).upload("99", file).await.unwrap_err();
    assert_eq!((failure.as_str(), elsewhere.requests().len()), ("unknown", 1));
}

#[tokio::test]
async fn a_check_reads_the_account_and_counts_its_templates() {
    let list = r#"{"data":[],"summary":{"total_count":12,"message_template_limit":250}}"#;
    let mut with_usage = response(200, list);
    let usage = r#"{"17":[{"type":"whatsapp_business_management","call_count":41,"total_cputime":1,"total_time":2,"estimated_time_to_regain_access":0}]}"#;
    with_usage.headers.push(("X-Business-Use-Case-Usage".to_owned(), usage.to_owned()));
    let script = Script::new([Ok(response(200, r#"{"id":"17","name":"Shop"}"#)), Ok(with_usage)]);
    let upstream = upstream(&script);
    let report = upstream.check().await.unwrap();
    assert_eq!(report.name.as_deref(), Some("Shop"));
    assert_eq!((report.templates, report.template_limit), (Some(12), Some(250)));
    assert_eq!(report.usage.map(|it| it.percent), Some(41));
    assert_eq!(upstream.usage(), report.usage);
    assert_eq!(script.lines()[0], "GET /17?fields=id,name");
    assert_eq!(script.requests()[0].kind, Some(CallKind::Check));
    let other = Script::with_bodies(&[r#"{"id":"18","name":"Shop"}"#]);
    assert_eq!(super::upstream(&other).check().await.unwrap_err().as_str(), "unknown");
}

#[tokio::test]
async fn a_sample_is_fetched_without_credentials() {
    let script = Script::new([
        Ok(response(200, "bytes")),
        Ok(response(410, "")),
        Ok(response(302, "")),
        Err(TransportError::NotSent("private address".to_owned())),
    ]);
    let upstream = upstream(&script);
    let link = "https://cdn.example/v/t61?oe=66F";
    assert_eq!(upstream.fetch(link, 1_000).await, Ok(b"bytes".to_vec()));
    for expected in ["gone", "unknown", "not_sent"] {
        assert_eq!(upstream.fetch(link, 1_000).await.unwrap_err().as_str(), expected);
    }
    for other in ["4::aW1h", "file:///etc/passwd", ""] {
        assert_eq!(upstream.fetch(other, 1_000).await.unwrap_err().as_str(), "gone", "{other}");
    }
    let requests = script.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[0].url.as_str(), link);
    assert!(requests[0].headers.is_empty());
    assert_eq!((requests[0].kind, requests[0].max_response_bytes), (None, 1_000));
}

#[tokio::test]
async fn a_token_inspects_itself() {
    let scopes = r#""scopes":["whatsapp_business_management","public_profile"]"#;
    let script = Script::with_bodies(&[
        &format!(r#"{{"data":{{"is_valid":true,"expires_at":1800000000,{scopes}}}}}"#),
        &format!(r#"{{"data":{{"is_valid":true,"expires_at":0,{scopes}}}}}"#),
        r#"{"data":{"is_valid":false,"error":{"code":190,"message":"expired"},"scopes":[]}}"#,
        r#"{"id":"7"}"#,
    ]);
    let upstream = upstream(&script);
    let info = upstream.token_info().await.unwrap();
    assert_eq!(info.expires_at, jiff::Timestamp::from_second(1_800_000_000).ok());
    assert_eq!((info.is_valid, info.scopes.len()), (true, 2));
    assert_eq!(upstream.token_info().await.unwrap().expires_at, None, "0 means never");
    assert!(!upstream.token_info().await.unwrap().is_valid);
    assert_eq!(upstream.token_info().await.unwrap_err().as_str(), "unknown");
    assert_eq!(script.lines()[0], format!("GET /debug_token?input_token={TOKEN}"));
    assert_eq!(script.requests()[0].kind, Some(CallKind::Check));
}

#[tokio::test]
async fn the_app_inspects_a_token_that_may_not_inspect_itself() {
    let refusal = r#"{"error":{"code":100,"message":"You must provide an app access token"}}"#;
    let info = r#"{"data":{"is_valid":true,"expires_at":0,"scopes":[]}}"#;
    let responses = || [Ok(response(400, refusal)), Ok(response(200, info))];
    let mut dialect = Dialect::new("https://graph.example/v23.0", "17").unwrap();
    dialect.app_secret = Some(Secret::new(APP_SECRET));
    let script = Script::new(responses());
    let without_id = GraphUpstream::new(Arc::clone(&script), dialect.clone(), Secret::new(TOKEN));
    assert_eq!(without_id.token_info().await.unwrap_err().as_str(), "refused");
    dialect.app_id = Some("99".to_owned());
    let script = Script::new(responses());
    let upstream = GraphUpstream::new(Arc::clone(&script), dialect, Secret::new(TOKEN));
    assert!(upstream.token_info().await.unwrap().is_valid);
    let requests = script.requests();
    let app_token = format!("Bearer 99|{APP_SECRET}");
    assert_eq!(headers(&requests[1])[0], ("authorization", &*app_token));
    for request in &requests {
        assert!(!format!("{request:?}").contains(TOKEN), "the query is not shown");
    }
}
