//! Galley's signatures against the published Standard Webhooks library, in both directions.

use std::slice::from_ref;

use galley_server::delivery::{
    ID_HEADER, InvalidSecret, SIGNATURE_HEADER, Secret, SignatureError, SignatureHeaders,
    TIMESTAMP_HEADER, sign, verify,
};
use hyper::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use standardwebhooks::Webhook;

const ID: &str = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";
const BODY: &[u8] = r#"{"seq":1,"type":"template.created","data":{"name":"grüße"}}"#.as_bytes();

/// A secret for each number.
fn secret(number: u8) -> Secret {
    Secret::generate(|bytes| bytes.fill(number))
}

#[expect(clippy::disallowed_methods, reason = "the published verifier reads the system clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Whether the published verifier accepts the signature.
fn is_accepted(secret: &Secret, id: &str, at: Timestamp, signature: &str, body: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(ID_HEADER, id.parse().unwrap());
    headers.insert(TIMESTAMP_HEADER, at.as_second().into());
    headers.insert(SIGNATURE_HEADER, signature.parse().unwrap());
    Webhook::new(&secret.reveal()).unwrap().verify(body, &headers).is_ok()
}

#[test]
fn the_published_verifier_accepts_galleys_signatures_and_no_modified_ones() {
    let (shared, at) = (secret(1), now());
    let signature = sign(from_ref(&shared), ID, at, BODY);
    assert!(is_accepted(&shared, ID, at, &signature, BODY));
    assert!(!is_accepted(&secret(2), ID, at, &signature, BODY));
    assert!(!is_accepted(&shared, "msg_other", at, &signature, BODY));
    assert!(!is_accepted(&shared, ID, at + SignedDuration::from_secs(1), &signature, BODY));
    assert!(!is_accepted(&shared, ID, at, &signature, b"{}"));
    assert!(!is_accepted(&shared, ID, at, &signature.replace("v1,", "v2,"), BODY));
}

#[test]
fn during_a_rotation_both_secrets_verify() {
    let (old, new, at) = (secret(1), secret(2), now());
    let signature = sign(&[new.clone(), old.clone()], ID, at, BODY);
    assert_eq!(signature.split(' ').count(), 2);
    for known in [&old, &new] {
        assert!(is_accepted(known, ID, at, &signature, BODY));
        let signed = SignatureHeaders {
            id: ID,
            timestamp: &at.as_second().to_string(),
            signature: &signature,
        };
        assert_eq!(verify(known, signed, BODY, at), Ok(()));
    }
    assert!(!is_accepted(&secret(3), ID, at, &signature, BODY));
}

#[test]
fn galley_accepts_published_signatures_and_no_modified_ones() {
    let at: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let (shared, seconds) = (secret(1), at.as_second());
    let published = Webhook::new(&shared.reveal()).unwrap();
    let signature = published.sign(ID, seconds, BODY).unwrap();
    assert_eq!(signature, sign(from_ref(&shared), ID, at, BODY));
    let (timestamp, later) = (seconds.to_string(), (seconds + 1).to_string());
    let signed = SignatureHeaders { id: ID, timestamp: &timestamp, signature: &signature };
    assert_eq!(verify(&shared, signed, BODY, at), Ok(()));
    let mismatch = Err(SignatureError::Mismatch);
    assert_eq!(verify(&secret(2), signed, BODY, at), mismatch);
    assert_eq!(verify(&shared, SignatureHeaders { id: "msg_other", ..signed }, BODY, at), mismatch);
    assert_eq!(
        verify(&shared, SignatureHeaders { timestamp: &later, ..signed }, BODY, at),
        mismatch
    );
    assert_eq!(verify(&shared, signed, b"{}", at), mismatch);
    let unversioned = signature.replace("v1,", "");
    let shorter = &signature[..signature.len() - 8];
    for forged in ["", " ", "v1,", "v1,AAAA", &unversioned, shorter, &format!("v1a{signature}")] {
        assert_eq!(
            verify(&shared, SignatureHeaders { signature: forged, ..signed }, BODY, at),
            mismatch,
            "{forged}"
        );
    }
    let among_others = format!("v1a,xyz v1,!!! {signature} v9,abc");
    assert_eq!(
        verify(&shared, SignatureHeaders { signature: &among_others, ..signed }, BODY, at),
        Ok(())
    );
}

#[test]
fn a_message_is_valid_for_five_minutes() {
    let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let (shared, timestamp) = (secret(1), at.as_second().to_string());
    let signature = sign(from_ref(&shared), ID, at, BODY);
    let signed = SignatureHeaders { id: ID, timestamp: &timestamp, signature: &signature };
    let verify_after =
        |seconds| verify(&shared, signed, BODY, at + SignedDuration::from_secs(seconds));
    assert_eq!(verify_after(300), Ok(()));
    assert_eq!(verify_after(301), Err(SignatureError::TooOld));
    assert_eq!(verify_after(-300), Ok(()));
    assert_eq!(verify_after(-301), Err(SignatureError::TooNew));
    for invalid in ["", "now", "1.5", "99999999999999999999", "9223372036854775807"] {
        let signed = SignatureHeaders { timestamp: invalid, ..signed };
        assert_eq!(
            verify(&shared, signed, BODY, at),
            Err(SignatureError::InvalidTimestamp),
            "{invalid}"
        );
    }
}

#[test]
fn the_example_of_the_standard_has_its_signature() {
    let known = Secret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
    let at = Timestamp::from_second(1_649_367_553).unwrap();
    let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    let signature = sign(&[known], "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", at, body);
    assert_eq!(signature, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
}

#[test]
fn a_revealed_secret_parses_back_and_debug_output_hides_it() {
    let shared = secret(7);
    let text = shared.reveal();
    assert!(text.starts_with("whsec_") && text.len() == 6 + 44);
    assert_eq!(Secret::parse(&text).unwrap().reveal(), text);
    assert_eq!(Secret::parse(text.trim_end_matches('=')).unwrap().reveal(), text);
    assert_eq!(format!("{shared:?}"), "Secret(…)");
    let encoded = |bytes: usize| format!("whsec_{}", "AAAA".repeat(bytes / 3));
    for valid in [encoded(24), encoded(63)] {
        Secret::parse(&valid).unwrap();
    }
    for invalid in ["", "whsec_", "whsec_!", &text[6..], &encoded(21), &encoded(66), "whsec_AAAA"] {
        assert_eq!(Secret::parse(invalid).unwrap_err(), InvalidSecret, "{invalid}");
    }
}
