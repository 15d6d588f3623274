//! Who may approve what, by the authors of the texts.

use galley_domain::{rulebook::Category, template::Status};
use jiff::Timestamp;

use super::*;

const ANNA: u64 = 1;
const BEN: u64 = 2;
const CARA: u64 = 3;

fn version(number: u64, author: u64, components: &str) -> Version {
    Version {
        number,
        status: Status::Pending,
        category: Category::Utility,
        previous_category: None,
        content: format!(r#"{{"components":[{components}]}}"#),
        created_at: Timestamp::UNIX_EPOCH,
        created_by: Actor::Token(CredentialId(author)),
        decision: None,
    }
}

/// The persons who may not approve the last of these versions, which are numbered from 1.
fn authors(approved: Option<u64>, versions: &[(u64, &str)]) -> Vec<u64> {
    let stored = versions.iter().zip(1..);
    let mut stored: Vec<Version> =
        stored.map(|((author, components), number)| version(number, *author, components)).collect();
    stored.reverse();
    let is_refused = |id: &u64| is_refused(&stored, approved, *id);
    [ANNA, BEN, CARA].into_iter().filter(is_refused).collect()
}

fn is_refused(stored: &[Version], approved: Option<u64>, person: u64) -> bool {
    let author = |it: &Version| VersionAuthor {
        number: it.number,
        author: it.created_by,
        bytes: it.content.len() as u64,
    };
    let authors: Vec<VersionAuthor> = stored.iter().map(author).collect();
    match by_authors(&authors, approved, &[CredentialId(person)].into()) {
        FourEyes::Compare(comparison) => comparison.is_author(stored),
        outcome => outcome == FourEyes::Refused,
    }
}

fn body(text: &str) -> String {
    format!(r#"{{"type":"BODY","text":"{text}"}}"#)
}

fn button(label: &str, url: &str) -> String {
    format!(r#"{{"type":"URL","text":"{label}","url":"https://{url}.example"}}"#)
}

#[test]
fn text_keeps_its_authors_however_it_is_saved_again() {
    let anna = body("Take the parcel of today");
    let other = body("Something else entirely");
    for again in [
        &*anna,
        // A letter, the case and the punctuation.
        &*body("Take the parcel of Tuesday"),
        &*body("TAKE, the... parcel; OF today!"),
        // Another component, another order, samples.
        &format!("{anna},{}", r#"{"type":"FOOTER","text":"Bye"}"#),
        &format!("{},{anna}", r#"{"type":"HEADER","format":"TEXT","text":"News"}"#),
        r#"{"type":"BODY","text":"Take the parcel of today","example":{"body_text":[["a"]]}}"#,
        r#"{"type":"FOOTER","text":"Take the parcel of today"}"#,
    ] {
        assert!(authors(None, &[(ANNA, &anna), (BEN, again)]).contains(&ANNA), "{again}");
        let removed = [(ANNA, &*anna), (BEN, &*other), (BEN, again)];
        assert!(authors(None, &removed).contains(&ANNA), "{again}");
    }
    assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &other)]), [BEN]);
    assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &other), (CARA, &anna)]), [ANNA, CARA]);
}

#[test]
fn text_without_spaces_keeps_its_authors() {
    let anna = body("ご注文の商品は明日の午前中に届きます");
    let again = body("ご注文の商品は今日の午前中に届きますか");
    assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &again)]), [ANNA, BEN]);
    let other = body("お支払いを確認いたしました");
    assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &other)]), [BEN]);
}

#[test]
fn a_corrected_letter_of_a_short_text_without_spaces_leaves_its_author() {
    for (anna, again) in [
        ("お荷物は本日午後に届きます", "お荷物は本日午前に届きます"),
        ("お支払いを確認しました", "お支払いも確認しました"),
        ("今すぐ払う", "今すぐ買う"),
        ("立即付款", "立即退款"),
        ("ซื้อเลย", "ซื้อเลว"),
    ] {
        assert_eq!(
            authors(None, &[(ANNA, &body(anna)), (BEN, &body(again))]),
            [ANNA, BEN],
            "{again}"
        );
    }
    assert_eq!(authors(None, &[(ANNA, &body("立即付款")), (BEN, &body("查看订单"))]), [BEN]);
}

#[test]
fn a_number_in_another_notation_keeps_its_author() {
    let call = |number: &str| {
        format!(r#"{{"type":"PHONE_NUMBER","text":"LABEL","phone_number":"{number}"}}"#)
    };
    let anna = call("+15551234567").replace("LABEL", "Call");
    for (number, authors_of_it) in [
        ("+1 555 123 4567", &[ANNA, BEN][..]),
        ("+1 (555) 123-4567", &[ANNA, BEN]),
        ("+15551234568", &[BEN]),
    ] {
        let again = call(number).replace("LABEL", "Anrufen");
        assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &again)]), authors_of_it, "{number}");
    }
}

#[test]
fn a_url_keeps_its_author_unless_its_host_or_most_of_its_path_is_new() {
    let link =
        |label: &str, url: &str| format!(r#"{{"type":"URL","text":"{label}","url":"{url}"}}"#);
    let anna = link("Pay", "https://evil.example/pay");
    for (url, authors_of_it) in [
        ("https://EVIL.example:443/pay", &[ANNA, BEN][..]),
        ("https://evil.example/pay?now", &[ANNA, BEN]),
        ("https://good.example/order", &[BEN]),
    ] {
        let again = link("Order", url);
        assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &again)]), authors_of_it, "{url}");
    }
    // The host is live, the path is not.
    let live = link("Go", "https://evil.example/go");
    let again = link("Order", "https://evil.example/pay?");
    assert_eq!(authors(Some(1), &[(CARA, &live), (ANNA, &anna), (BEN, &again)]), [ANNA, BEN]);
}

#[test]
fn the_strings_of_a_flow_keep_their_author_however_its_json_is_written() {
    let flow = |json: &str| {
        format!(r#"{{"type":"FLOW","text":"Open","flow_json":{json:?}}}"#).replace("Open", "LABEL")
    };
    let screens = |text: &str| {
        let screen = |id: usize| {
            let text = format!("{text} {id}");
            format!(
                r#"{{"id":"S{id}","terminal":true,"children":[{{"type":"T","text":"{text}"}}]}}"#
            )
        };
        let screens: Vec<String> = (0..400).map(screen).collect();
        format!(r#"{{"version":"6.3","screens":[{}]}}"#, screens.join(","))
    };
    let anna = screens("Send the money to this account");
    assert!(anna.len() > 30 << 10);
    let escaped = anna.replace("Send", "\\u0053end");
    for (again, authors_of_it) in [
        (anna.replacen(':', ": ", 1), &[ANNA, BEN][..]),
        (escaped, &[ANNA, BEN]),
        (anna.replace("money", "euros"), &[ANNA, BEN]),
        (screens("Book a table in our restaurant").replace("\"S", "\"Table"), &[BEN]),
    ] {
        let versions = [(ANNA, &*flow(&anna)), (BEN, &flow(&again).replace("LABEL", "Start"))];
        assert_eq!(authors(None, &versions), authors_of_it, "{}", &again[..200]);
    }
}

#[test]
fn text_keeps_its_authors_in_a_longer_or_shorter_text() {
    let anna = "Transfer 500 euros to the account below";
    let more = "Welcome to our shop. We are open from nine to five, and glad to help you by phone";
    let both = body(&format!("{more}. {anna}. Thank you for shopping with us, see you soon!"));
    assert_eq!(authors(None, &[(ANNA, &body(anna)), (BEN, &both)]), [ANNA, BEN]);
    assert_eq!(authors(None, &[(ANNA, &both), (BEN, &body(anna))]), [ANNA, BEN]);
    // What Anna has added to the text of Ben is hers.
    let versions =
        [(BEN, &*body(more)), (ANNA, &*both), (CARA, &*body(&format!("Good morning. {anna}")))];
    assert_eq!(authors(None, &versions), [ANNA, CARA]);
}

#[test]
fn a_text_about_the_same_subject_is_another_text() {
    for (anna, ben) in [
        (
            "Your order {{1}} has shipped and arrives tomorrow",
            "We have received the payment for your order {{1}}",
        ),
        (
            "ご注文ありがとうございます。商品は明日お届けします。",
            "お支払いの確認ができましたので、発送の準備を始めます。",
        ),
        ("您的订单已发货，预计明天送达。", "我们已收到您的付款，感谢您的支持。"),
        ("🎉", "👍"),
    ] {
        assert_eq!(authors(None, &[(ANNA, &body(anna)), (BEN, &body(ben))]), [BEN], "{ben}");
    }
}

#[test]
fn one_corrected_word_of_a_short_text_leaves_its_author() {
    for text in
        ["Pay now", "Your loan approved", "Your loan was approved", "Win 5000 euros right now"]
    {
        let words: Vec<&str> = text.split(' ').collect();
        for corrected in 0..words.len() {
            let mut again = words.clone();
            again[corrected] = "another";
            let again = body(&again.join(" "));
            assert_eq!(
                authors(None, &[(ANNA, &body(text)), (BEN, &again)]),
                [ANNA, BEN],
                "{again}"
            );
        }
    }
    assert_eq!(authors(None, &[(ANNA, &body("Pay now")), (BEN, &body("Shop later"))]), [BEN]);
}

#[test]
fn a_word_with_vowel_signs_or_tone_marks_is_one_word() {
    for (anna, ben) in [
        ("आपकी व्यवस्था कल पूरी होगी", "नई व्यवस्था आज से लागू है सबके लिए"),
        ("Tiếng Việt rất hay", "Học tiếng Anh mỗi ngày để tiến bộ hơn"),
    ] {
        assert_eq!(authors(None, &[(ANNA, &body(anna)), (BEN, &body(ben))]), [BEN], "{ben}");
    }
    let thai = body("น้ำที่นี่ดีมากครับ");
    let again = body("น้ำที่นี่ดีมากค่ะ");
    assert_eq!(authors(None, &[(ANNA, &thai), (BEN, &again)]), [ANNA, BEN]);
}

#[test]
fn the_longest_body_keeps_its_author_when_a_letter_changes() {
    let anna = body(&"漢字".repeat(2_048));
    let again = body(&format!("々{}", "漢字".repeat(2_047)));
    assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &again)]), [ANNA, BEN]);
}

#[test]
fn a_setting_that_generates_text_keeps_its_author() {
    let code = |label: &str| {
        let button = format!(r#"{{"type":"OTP","otp_type":"COPY_CODE","text":"{label}"}}"#);
        let body = r#"{"type":"BODY","add_security_recommendation":true}"#;
        format!(r#"{body},{{"type":"BUTTONS","buttons":[{button}]}}"#)
    };
    assert_eq!(authors(None, &[(ANNA, &code("Copy code")), (BEN, &code("Kopieren"))]), [ANNA, BEN]);
}

#[test]
fn live_text_has_no_author_and_new_text_beside_it_has() {
    let (live, new) = (body("Take the parcel of today"), body("Take the parcel of tomorrow"));
    assert_eq!(authors(Some(1), &[(ANNA, &live), (BEN, &new)]), [BEN]);
    assert_eq!(authors(Some(1), &[(ANNA, &live), (BEN, &live)]), [0; 0]);
    assert_eq!(authors(Some(1), &[(ANNA, &live), (BEN, &new), (CARA, &live)]), [0; 0]);
    assert_eq!(authors(Some(1), &[(ANNA, &live), (BEN, &new), (CARA, &new)]), [BEN]);
    // What was live before the live version is made live again.
    let other = body("Something else entirely");
    assert_eq!(authors(Some(2), &[(ANNA, &live), (BEN, &other), (CARA, &live)]), [ANNA, CARA]);
}

#[test]
fn combining_live_texts_in_another_way_has_an_author() {
    let buttons = |first: &str, second: &str, body: &str| {
        format!(r#"{body},{{"type":"BUTTONS","buttons":[{first},{second}]}}"#)
    };
    let one = body("Choose what you want");
    let live = buttons(&button("Pay", "shop"), &button("Stop", "list"), &one);
    let swapped = |body: &str| buttons(&button("Stop", "shop"), &button("Pay", "list"), body);
    let other = swapped(&body("Something else entirely"));
    let versions = [(ANNA, &*live), (ANNA, &*swapped(&one)), (BEN, &*other)];
    assert_eq!(authors(Some(1), &versions), [ANNA, BEN]);
}

#[test]
fn a_template_without_texts_has_an_author() {
    let code = r#"{"type":"BODY","add_security_recommendation":true}"#;
    assert_eq!(authors(None, &[(ANNA, code), (BEN, code)]), [ANNA]);
}

#[test]
fn text_that_follows_a_deleted_version_has_unknown_authors() {
    let text = body("Take the parcel of today");
    let versions = [version(9, BEN, &text), version(8, BEN, &text), version(3, CARA, "")];
    assert!(is_refused(&versions, Some(3), ANNA));
    assert!(!is_refused(&versions, Some(8), ANNA), "its text is live");
    let other = [version(9, BEN, &body("Something else entirely")), version(8, BEN, &text)];
    assert!(!is_refused(&other, None, ANNA), "the text is not made live");
}

#[test]
fn an_author_of_many_large_versions_is_refused_without_a_comparison() {
    let many = |bytes: u64, person: u64| {
        let number = |number| VersionAuthor {
            number,
            author: Actor::Token(CredentialId(if number % 2 == 0 { ANNA } else { BEN })),
            bytes,
        };
        let versions: Vec<VersionAuthor> = (1..=9).rev().map(number).collect();
        by_authors(&versions, None, &[CredentialId(person)].into())
    };
    assert_eq!(many(20_000, ANNA), FourEyes::Refused);
    assert_eq!(many(20_000, CARA), FourEyes::Permitted);
    assert!(matches!(many(10_000, ANNA), FourEyes::Compare(_)));
}

#[test]
fn a_person_is_every_token_of_a_chain_of_rotations() {
    let id = CredentialId;
    let rotations = [(id(3), id(4)), (id(1), id(2)), (id(2), id(3)), (id(7), id(8))];
    for token in 1..=4 {
        assert_eq!(tokens_of_person(id(token), &rotations), (1..=4).map(id).collect());
    }
    assert_eq!(tokens_of_person(id(9), &rotations), HashSet::from([id(9)]));
}

#[test]
fn text_that_looks_the_same_keeps_its_author() {
    let anna = body("Prends le café glacé à la crème brûlée");
    for again in [
        "Prends le cafe\u{301} glace\u{301} a\u{300} la cre\u{300}me bru\u{302}le\u{301}e",
        "Prends le ca\u{ad}fé glacé à\u{200b} la crè\u{ad}me brû\u{200d}lée",
    ] {
        assert_eq!(authors(None, &[(ANNA, &anna), (BEN, &body(again))]), [ANNA, BEN], "{again}");
    }
}

#[test]
fn text_keeps_its_authors_with_other_spaces_punctuation_and_case() {
    for (anna, again) in [
        ("Take the parcel of today", "T ake th e parc el o f tod ay"),
        ("Take the parcel of today", "Takethe parcelof today"),
        ("Take the parcel of today", "Ta.ke t-he pa\u{feff}rc\u{2003}el o\u{2028}f to_day"),
        ("Pay now", "P a y n o w"),
        ("Große Grüße", "GROSSE GRÜSSE"),
        ("Ο δρόμος μας", "Ο ΔΡΌΜΟΣ ΜΑΣ"),
        ("ﬁrst oﬀer", "FIRST OFFER"),
        ("🎉🎊", "🎉 \u{200b}🎊 "),
        ("!!!", "! ! !"),
    ] {
        let versions = [(ANNA, &*body(anna)), (BEN, &body(again))];
        assert_eq!(authors(None, &versions), [ANNA, BEN], "{again}");
    }
    assert_eq!(authors(None, &[(ANNA, &body("🎉 🎊")), (BEN, &body("👍 🎊"))]), [BEN]);
    // Also where a live text is written in another way.
    let [live, other] = ["Pay now", "PAY, now!"].map(body);
    assert_eq!(authors(Some(1), &[(CARA, &live), (ANNA, &other)]), [ANNA]);
}

#[test]
fn a_combination_of_live_texts_keeps_its_author_with_invisible_characters() {
    let live = format!("{},{}", button("Pay", "shop"), button("Stop", "list"));
    for pay in ["Pay", "PAY", "Pay ", "P\u{200b}ay"] {
        let [anna, ben] = ["Pay", pay].map(|label| button(label, "list"));
        let versions = [(CARA, &*live), (ANNA, &*anna), (BEN, &*ben)];
        assert!(authors(Some(1), &versions).contains(&ANNA), "{pay:?}");
    }
}

#[test]
fn all_tokens_of_a_rotation_are_one_person() {
    let id = CredentialId;
    let rotations: Vec<_> =
        (1..50).map(|old| (id(old), id(old + 1))).chain([(id(70), id(71))]).collect();
    for token in [1, 25, 50] {
        assert_eq!(tokens_of_person(id(token), &rotations).len(), 50);
    }
    assert_eq!(tokens_of_person(id(70), &rotations), HashSet::from([id(70), id(71)]));
    assert_eq!(tokens_of_person(id(99), &rotations), HashSet::from([id(99)]));
}
