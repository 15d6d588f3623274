//! The branches of the decisions about uploads.

use galley_domain::id::AccountId;

use super::*;
use crate::MEDIA_QUOTA_UNIT_BYTES;

const UNIT: u64 = MEDIA_QUOTA_UNIT_BYTES;

fn new(length: u64, quota: u64) -> NewUpload {
    NewUpload {
        account: AccountId::new(1).unwrap(),
        id: "u".to_owned(),
        handle: "h".to_owned(),
        file_name: String::new(),
        file_type: "image/png".to_owned(),
        length,
        quota,
        at: Timestamp::UNIX_EPOCH,
        emulated_at: None,
    }
}

fn stored(received: u64, length: u64) -> StoredUpload {
    let upload = Upload {
        file_name: String::new(),
        file_type: "image/png".to_owned(),
        length,
        received,
        handle: None,
        sniffed: None,
        created_at: Timestamp::UNIX_EPOCH,
        emulated_at: None,
    };
    StoredUpload { number: 1, handle: "h".to_owned(), upload }
}

fn part(offset: u64, len: usize, remaining: u64, quota: u64) -> Part {
    Part { offset, bytes: vec![0; len], remaining, quota }
}

fn planned(received: u64, length: u64, part: &Part, used: u64) -> Result<u64, AppendOutcome> {
    AppendPlan::new(&stored(received, length), part, used).map(|plan| plan.received)
}

#[test]
fn an_upload_begins_within_its_limits() {
    let limit = u64::from(MAX_OPEN_UPLOADS);
    for (length, unfinished, used, expected) in [
        (1, limit - 1, 0, None),
        (UNIT, 0, UNIT, None),
        (0, limit, 9 * UNIT, Some(BeginUploadOutcome::InvalidLength)),
        (MAX_UPLOAD_BYTES + 1, 0, 0, Some(BeginUploadOutcome::InvalidLength)),
        (1, limit, 9 * UNIT, Some(BeginUploadOutcome::TooMany)),
        (UNIT + 1, 0, UNIT, Some(BeginUploadOutcome::QuotaExceeded(UNIT))),
        (1, 0, u64::MAX, Some(BeginUploadOutcome::QuotaExceeded(u64::MAX))),
    ] {
        let begun = plan_upload(&new(length, 2 * UNIT), Uploaded { unfinished, used });
        assert_eq!(begun.err(), expected, "{length} {unfinished} {used}");
    }
}

#[test]
fn a_file_uses_the_quota_from_its_first_byte_until_it_is_deleted() {
    let begun = plan_upload(&new(1, UNIT), Uploaded::default());
    assert_eq!(begun, Ok(QuotaChange { before: 0, after: UNIT }));
    for (bytes, expected) in [(0, UNIT + 4), (1, UNIT + 4), (UNIT + 1, 2 * UNIT + 4)] {
        assert_eq!(quota_bytes(bytes, "name"), expected);
    }
}

#[test]
fn a_part_continues_where_the_upload_is_and_fits_into_it() {
    assert_eq!(planned(5, 10, &part(5, 3, 2, UNIT), UNIT), Ok(8));
    assert_eq!(planned(5, 10, &part(4, 3, 0, UNIT), UNIT), Err(AppendOutcome::OffsetMismatch(5)));
    assert_eq!(planned(5, 10, &part(5, 3, 3, UNIT), UNIT), Err(AppendOutcome::TooLong(10)));
}

#[test]
fn a_part_without_bytes_reports_the_state_of_the_upload() {
    assert_eq!(planned(5, 10, &part(5, 0, 0, 0), UNIT), Err(AppendOutcome::Received(5)));
    let complete = AppendOutcome::Complete { handle: "h".to_owned(), sniffed: None };
    assert_eq!(planned(10, 10, &part(10, 0, 0, 0), UNIT), Err(complete));
}

#[test]
fn only_a_part_that_needs_more_of_the_quota_is_refused_for_it() {
    let unit = usize::try_from(UNIT).unwrap();
    let grows = part(5, unit, 0, UNIT);
    assert_eq!(planned(5, 3 * UNIT, &grows, UNIT), Err(AppendOutcome::QuotaExceeded(UNIT)));
    assert_eq!(planned(5, 3 * UNIT, &part(5, 1, 0, 0), UNIT), Ok(6), "a lowered quota");
}

#[test]
fn an_append_is_split_into_chunks_without_a_gap() {
    let bytes = vec![7; 2 * UPLOAD_CHUNK_BYTES + 1];
    let shape = |offset, bytes: &[u8]| -> Vec<(u64, usize, u64)> {
        let shape = |part: Part| (part.offset, part.bytes.len(), part.remaining);
        parts(offset, bytes, 0).map(shape).collect()
    };
    let chunk = UPLOAD_CHUNK_BYTES as u64;
    let expected = [
        (3, UPLOAD_CHUNK_BYTES, chunk + 1),
        (3 + chunk, UPLOAD_CHUNK_BYTES, 1),
        (3 + 2 * chunk, 1, 0),
    ];
    assert_eq!(shape(3, &bytes), expected);
    assert_eq!(shape(3, &bytes[..UPLOAD_CHUNK_BYTES]), [(3, UPLOAD_CHUNK_BYTES, 0)]);
    assert_eq!(shape(3, &[]), [(3, 0, 0)]);
}

#[test]
fn only_a_short_last_chunk_is_extended_and_only_up_to_the_length_of_a_chunk() {
    assert_eq!(extended_below(1), MIN_CHUNK_BYTES);
    assert_eq!(extended_below(UPLOAD_CHUNK_BYTES - MIN_CHUNK_BYTES + 1), MIN_CHUNK_BYTES);
    assert_eq!(extended_below(UPLOAD_CHUNK_BYTES), 1, "no stored chunk is empty");
}

#[test]
fn an_unused_file_is_stored_longer_than_templates_may_reference_it() {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let cutoffs = RemovalCutoffs::expired(now);
    assert_eq!(cutoffs.unfinished, unfinished_cutoff(now));
    assert_eq!(unused_cutoff(now) - cutoffs.unused, 3_600_000);
    let earliest = RemovalCutoffs::expired(Timestamp::MIN);
    assert_eq!(earliest.unfinished, millis(Timestamp::MIN));
}
