//! Our signatures before somebody else's verifier, and the other way round.

use std::slice::from_ref;

use galley_server::delivery::{
    ID_HEADER, NotASecret, NotVerified, SIGNATURE_HEADER, Secret, Signed, TIMESTAMP_HEADER, sign,
    verify,
};
use hyper::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use standardwebhooks::Webhook;

const ID: &str = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";
const BODY: &[u8] = r#"{"seq":1,"type":"template.created","data":{"name":"grüße"}}"#.as_bytes();

/// Different for each number.
fn secret(number: u8) -> Secret {
    Secret::generate(|bytes| bytes.fill(number))
}

#[expect(clippy::disallowed_methods, reason = "their verifier looks at the clock by itself")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Whether their verifier believes it.
fn believed(secret: &Secret, id: &str, at: Timestamp, signature: &str, body: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(ID_HEADER, id.parse().unwrap());
    headers.insert(TIMESTAMP_HEADER, at.as_second().into());
    headers.insert(SIGNATURE_HEADER, signature.parse().unwrap());
    Webhook::new(&secret.reveal()).unwrap().verify(body, &headers).is_ok()
}

#[test]
fn the_published_verifier_believes_us_and_nobody_who_changed_something() {
    let (ours, at) = (secret(1), now());
    let signature = sign(from_ref(&ours), ID, at, BODY);
    assert!(believed(&ours, ID, at, &signature, BODY));
    assert!(!believed(&secret(2), ID, at, &signature, BODY));
    assert!(!believed(&ours, "msg_other", at, &signature, BODY));
    assert!(!believed(&ours, ID, at + SignedDuration::from_secs(1), &signature, BODY));
    assert!(!believed(&ours, ID, at, &signature, b"{}"));
    assert!(!believed(&ours, ID, at, &signature.replace("v1,", "v2,"), BODY));
}

#[test]
fn while_a_secret_is_changed_both_are_good() {
    let (old, new, at) = (secret(1), secret(2), now());
    let signature = sign(&[new.clone(), old.clone()], ID, at, BODY);
    assert_eq!(signature.split(' ').count(), 2);
    for known in [&old, &new] {
        assert!(believed(known, ID, at, &signature, BODY));
        let signed =
            Signed { id: ID, timestamp: &at.as_second().to_string(), signature: &signature };
        assert_eq!(verify(known, signed, BODY, at), Ok(()));
    }
    assert!(!believed(&secret(3), ID, at, &signature, BODY));
}

#[test]
fn we_believe_the_published_signer_and_nobody_who_changed_something() {
    let at: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let (ours, seconds) = (secret(1), at.as_second());
    let theirs = Webhook::new(&ours.reveal()).unwrap();
    let signature = theirs.sign(ID, seconds, BODY).unwrap();
    assert_eq!(signature, sign(from_ref(&ours), ID, at, BODY));
    let (timestamp, later) = (seconds.to_string(), (seconds + 1).to_string());
    let signed = Signed { id: ID, timestamp: &timestamp, signature: &signature };
    assert_eq!(verify(&ours, signed, BODY, at), Ok(()));
    let not = Err(NotVerified::Signature);
    assert_eq!(verify(&secret(2), signed, BODY, at), not);
    assert_eq!(verify(&ours, Signed { id: "msg_other", ..signed }, BODY, at), not);
    assert_eq!(verify(&ours, Signed { timestamp: &later, ..signed }, BODY, at), not);
    assert_eq!(verify(&ours, signed, b"{}", at), not);
    let unversioned = signature.replace("v1,", "");
    let shorter = &signature[..signature.len() - 8];
    for forged in ["", " ", "v1,", "v1,AAAA", &unversioned, shorter, &format!("v1a{signature}")] {
        assert_eq!(
            verify(&ours, Signed { signature: forged, ..signed }, BODY, at),
            not,
            "{forged}"
        );
    }
    let among_others = format!("v1a,xyz v1,!!! {signature} v9,abc");
    assert_eq!(verify(&ours, Signed { signature: &among_others, ..signed }, BODY, at), Ok(()));
}

#[test]
fn a_message_is_believed_for_five_minutes() {
    let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let (ours, timestamp) = (secret(1), at.as_second().to_string());
    let signature = sign(from_ref(&ours), ID, at, BODY);
    let signed = Signed { id: ID, timestamp: &timestamp, signature: &signature };
    let verdict = |seconds| verify(&ours, signed, BODY, at + SignedDuration::from_secs(seconds));
    assert_eq!(verdict(300), Ok(()));
    assert_eq!(verdict(301), Err(NotVerified::TooOld));
    assert_eq!(verdict(-300), Ok(()));
    assert_eq!(verdict(-301), Err(NotVerified::TooNew));
    for nonsense in ["", "now", "1.5", "99999999999999999999", "9223372036854775807"] {
        let signed = Signed { timestamp: nonsense, ..signed };
        assert_eq!(verify(&ours, signed, BODY, at), Err(NotVerified::Timestamp), "{nonsense}");
    }
}

#[test]
fn the_example_of_the_standard_gives_its_signature() {
    let known = Secret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
    let at = Timestamp::from_second(1_649_367_553).unwrap();
    let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    let signature = sign(&[known], "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", at, body);
    assert_eq!(signature, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
}

#[test]
fn a_secret_reads_back_as_it_was_revealed_and_is_never_shown_otherwise() {
    let ours = secret(7);
    let text = ours.reveal();
    assert!(text.starts_with("whsec_") && text.len() == 6 + 44);
    assert_eq!(Secret::parse(&text).unwrap().reveal(), text);
    assert_eq!(Secret::parse(text.trim_end_matches('=')).unwrap().reveal(), text);
    assert_eq!(format!("{ours:?}"), "Secret(…)");
    let encoded = |bytes: usize| format!("whsec_{}", "AAAA".repeat(bytes / 3));
    for good in [encoded(24), encoded(63)] {
        Secret::parse(&good).unwrap();
    }
    for bad in ["", "whsec_", "whsec_!", &text[6..], &encoded(21), &encoded(66), "whsec_AAAA"] {
        assert_eq!(Secret::parse(bad).unwrap_err(), NotASecret, "{bad}");
    }
}
