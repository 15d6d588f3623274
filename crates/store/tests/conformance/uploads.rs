//! Cases about resumable uploads.

use std::sync::Arc;

use galley_domain::id::AccountId;
use galley_store::{
    AppendOutcome, Author, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES,
    MEDIA_QUOTA_UNIT_BYTES, MEDIA_READ_BYTES, Media, NewUpload, RetentionCursor,
    UPLOAD_CHUNK_BYTES, Upload,
};
use galley_test_macros::on_both_databases;

use super::fixture::{Shared, account, noon};

pub(crate) const DAY: i64 = 24 * 3_600_000;

/// A quota that no case exceeds.
pub(crate) const QUOTA: u64 = u32::MAX as u64;

/// Reads all bytes of a file by its handle.
pub(crate) async fn bytes_of(store: &Shared, handle: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let chunk = store.media_chunk(handle, bytes.len() as u64).await.unwrap();
        if chunk.is_empty() {
            return bytes;
        }
        assert!(chunk.len() <= UPLOAD_CHUNK_BYTES);
        bytes.extend(chunk);
    }
}

pub(crate) async fn assert_integrity(store: &Shared) {
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
}

pub(crate) fn upload(account: AccountId, id: &str, length: usize) -> NewUpload {
    NewUpload {
        account,
        id: id.to_owned(),
        handle: format!("4::{id}"),
        file_name: format!("{id}.png"),
        file_type: "image/png".to_owned(),
        length: length as u64,
        quota: QUOTA,
        at: noon(0),
        emulated_at: None,
    }
}

pub(crate) async fn begin(store: &Shared, new: NewUpload) {
    assert_eq!(store.begin_upload(new).await.unwrap(), BeginUploadOutcome::Begun);
}

pub(crate) async fn append(
    store: &Shared,
    account: AccountId,
    id: &str,
    offset: usize,
    bytes: &[u8],
) -> AppendOutcome {
    store.append_upload(account, id, offset as u64, bytes, QUOTA, noon(5)).await.unwrap()
}

pub(crate) async fn received(store: &Shared, account: AccountId, id: &str) -> Option<u64> {
    store.upload(account, id, noon(5)).await.unwrap().map(|upload| upload.received)
}

/// Bytes with a PNG signature; no two chunks are equal.
pub(crate) fn png(length: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let words = (0_u32..).flat_map(|word| word.wrapping_mul(2_654_435_761).to_be_bytes());
    bytes.extend(words.take(length.saturating_sub(bytes.len())));
    bytes.truncate(length);
    bytes
}

fn complete(handle: &str, sniffed: Option<&str>) -> AppendOutcome {
    AppendOutcome::Complete { handle: handle.to_owned(), sniffed: sniffed.map(str::to_owned) }
}

#[on_both_databases]
async fn a_file_uploaded_in_parts_reads_back_by_its_handle(store: &Shared) {
    let account = account(store, "a").await;
    let file = png(3 * UPLOAD_CHUNK_BYTES + 17);
    begin(store, upload(account, "u1", file.len())).await;
    let stored = store.upload(account, "u1", noon(5)).await.unwrap().unwrap();
    let expected = Upload {
        file_name: "u1.png".to_owned(),
        file_type: "image/png".to_owned(),
        length: file.len() as u64,
        received: 0,
        handle: None,
        sniffed: None,
        created_at: noon(0),
        emulated_at: None,
    };
    assert_eq!(stored, expected);
    // Small parts, one larger than a chunk, an empty one, and the rest.
    let mut from = 0;
    for to in
        [1, 2, 9, 5_000, 5_001, 2 * UPLOAD_CHUNK_BYTES + 5_000, 2 * UPLOAD_CHUNK_BYTES + 5_000]
    {
        let appended = append(store, account, "u1", from, &file[from..to]).await;
        assert_eq!(appended, AppendOutcome::Received(to as u64));
        assert_eq!(received(store, account, "u1").await, Some(to as u64));
        from = to;
    }
    assert_eq!(store.media("4::u1").await.unwrap(), None, "the file is not complete");
    assert!(store.media_chunk("4::u1", 0).await.unwrap().is_empty(), "the file is not complete");
    let png = Some("image/png");
    assert_eq!(append(store, account, "u1", from, &file[from..]).await, complete("4::u1", png));
    let stored = store.upload(account, "u1", noon(5)).await.unwrap().unwrap();
    let (handle, sniffed) = (Some("4::u1".to_owned()), png.map(str::to_owned));
    assert_eq!(stored, Upload { received: file.len() as u64, handle, sniffed, ..expected });
    let media = Media {
        file_type: "image/png".to_owned(),
        file_name: "u1.png".to_owned(),
        length: file.len() as u64,
        emulated_at: None,
        faithful: None,
    };
    assert_eq!(store.media("4::u1").await.unwrap(), Some(media));
    assert!(bytes_of(store, "4::u1").await == file);
    for offset in [1, 8, 4_999, 5_000, UPLOAD_CHUNK_BYTES, file.len() - 1] {
        let chunk = store.media_chunk("4::u1", offset as u64).await.unwrap();
        assert!(!chunk.is_empty() && file[offset..].starts_with(&chunk), "from {offset}");
        assert!(chunk.len() <= MEDIA_READ_BYTES, "a download holds {} bytes", chunk.len());
    }
    for beyond in [file.len() as u64, u64::MAX] {
        assert!(store.media_chunk("4::u1", beyond).await.unwrap().is_empty());
    }
    // An empty append to a complete file succeeds.
    assert_eq!(append(store, account, "u1", file.len(), &[]).await, complete("4::u1", png));
    for other in ["4::u2", "u1", ""] {
        assert_eq!(store.media(other).await.unwrap(), None);
    }
}

#[on_both_databases]
async fn bytes_at_a_wrong_offset_are_refused(store: &Shared) {
    let account = account(store, "a").await;
    let file_type = "text/plain".to_owned();
    begin(store, NewUpload { file_type, ..upload(account, "u1", 10) }).await;
    assert_eq!(append(store, account, "u1", 1, b"x").await, AppendOutcome::OffsetMismatch(0));
    assert_eq!(append(store, account, "u1", 0, b"0123").await, AppendOutcome::Received(4));
    for offset in [0, 3, 5, 100, usize::MAX] {
        assert_eq!(
            append(store, account, "u1", offset, b"x").await,
            AppendOutcome::OffsetMismatch(4)
        );
    }
    // Bytes beyond the declared length are refused completely.
    assert_eq!(append(store, account, "u1", 4, b"4567890").await, AppendOutcome::TooLong(10));
    let large = vec![b'x'; 2 * UPLOAD_CHUNK_BYTES];
    assert_eq!(append(store, account, "u1", 4, &large).await, AppendOutcome::TooLong(10));
    assert_eq!(received(store, account, "u1").await, Some(4));
    assert_eq!(append(store, account, "u1", 4, b"456789").await, complete("4::u1", None));
    assert_eq!(append(store, account, "u1", 0, b"0").await, AppendOutcome::OffsetMismatch(10));
    assert_eq!(append(store, account, "u1", 10, b"x").await, AppendOutcome::TooLong(10));
    assert_eq!(append(store, account, "u2", 0, b"x").await, AppendOutcome::NoUpload);
    let media = store.media("4::u1").await.unwrap();
    // The declared type is text; the bytes do not indicate a type.
    let file_type = "application/octet-stream".to_owned();
    assert_eq!(
        media,
        Some(Media {
            file_type,
            file_name: "u1.png".to_owned(),
            length: 10,
            emulated_at: None,
            faithful: None,
        })
    );
    assert_eq!(bytes_of(store, "4::u1").await, b"0123456789");
}

#[on_both_databases]
async fn an_upload_is_visible_only_to_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    begin(store, upload(mine, "u1", 4)).await;
    assert_eq!(store.upload(theirs, "u1", noon(5)).await.unwrap(), None);
    assert_eq!(append(store, theirs, "u1", 0, b"x").await, AppendOutcome::NoUpload);
    assert_eq!(received(store, mine, "u1").await, Some(0));
    // Ids and handles are unique.
    let again = upload(theirs, "u1", 4);
    assert_eq!(store.begin_upload(again.clone()).await.unwrap(), BeginUploadOutcome::DuplicateId);
    let again = NewUpload { id: "u2".to_owned(), ..again };
    assert_eq!(store.begin_upload(again).await.unwrap(), BeginUploadOutcome::DuplicateId);
    assert_eq!(received(store, theirs, "u2").await, None);
}

#[on_both_databases]
async fn beginning_an_upload_respects_the_quota(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let page = usize::try_from(MEDIA_QUOTA_UNIT_BYTES).unwrap();
    // A file uses whole quota units plus 6 bytes for its name.
    let file_quota = MEDIA_QUOTA_UNIT_BYTES + 6;
    let sized =
        |account, id, length| NewUpload { quota: 3 * file_quota, ..upload(account, id, length) };
    begin(store, sized(mine, "u1", page)).await;
    begin(store, sized(mine, "u2", 1)).await;
    let refused = store.begin_upload(sized(mine, "u3", page + 1)).await.unwrap();
    assert_eq!(refused, BeginUploadOutcome::QuotaExceeded(2 * file_quota));
    begin(store, sized(mine, "u3", page)).await;
    let refused = store.begin_upload(sized(mine, "u4", 1)).await.unwrap();
    assert_eq!(refused, BeginUploadOutcome::QuotaExceeded(3 * file_quota));
    begin(store, sized(theirs, "u5", page)).await;
    let longer = "n".repeat(9) + ".png";
    let named = NewUpload { file_name: longer, quota: 4 * file_quota + 6, ..upload(mine, "u4", 1) };
    let refused = store.begin_upload(named.clone()).await.unwrap();
    assert_eq!(refused, BeginUploadOutcome::QuotaExceeded(3 * file_quota));
    begin(store, NewUpload { quota: 4 * file_quota + 7, ..named }).await;
    assert_integrity(store).await;
}

#[on_both_databases]
async fn appending_to_an_upload_respects_the_quota(store: &Shared) {
    let account = account(store, "a").await;
    let file = png(10 * UPLOAD_CHUNK_BYTES);
    let quota = file.len() as u64 + MEDIA_QUOTA_UNIT_BYTES + 12;
    for id in ["u1", "u2"] {
        // Nothing has been received yet, so each upload would fit.
        begin(store, NewUpload { quota, ..upload(account, id, file.len()) }).await;
    }
    let send = |id: &'static str, offset: usize, to: usize| {
        store.append_upload(account, id, offset as u64, &file[offset..to], quota, noon(5))
    };
    let half = 5 * UPLOAD_CHUNK_BYTES;
    assert_eq!(send("u1", 0, half).await.unwrap(), AppendOutcome::Received(half as u64));
    // The bytes that fit were stored; the client can continue after it has freed space.
    let stored = quota - MEDIA_QUOTA_UNIT_BYTES;
    assert_eq!(send("u2", 0, file.len()).await.unwrap(), AppendOutcome::QuotaExceeded(stored));
    assert_eq!(received(store, account, "u2").await, Some(half as u64));
    assert_integrity(store).await;
    assert!(store.cancel_upload(account, "u1", noon(5)).await.unwrap());
    let rest = send("u2", half, file.len()).await.unwrap();
    assert!(matches!(rest, AppendOutcome::Complete { .. }), "{rest:?}");
    assert_integrity(store).await;
}

#[on_both_databases]
async fn an_upload_has_a_minimum_and_a_maximum_length(store: &Shared) {
    let account = account(store, "a").await;
    let largest = usize::try_from(MAX_UPLOAD_BYTES).unwrap();
    for (length, expected) in [
        (0, BeginUploadOutcome::InvalidLength),
        (1, BeginUploadOutcome::Begun),
        (largest, BeginUploadOutcome::Begun),
        (largest + 1, BeginUploadOutcome::InvalidLength),
        (usize::MAX, BeginUploadOutcome::InvalidLength),
    ] {
        let new = upload(account, &format!("u{length}"), length);
        assert_eq!(store.begin_upload(new).await.unwrap(), expected, "{length}");
    }
    let file = png(largest);
    let id = format!("u{largest}");
    assert!(matches!(append(store, account, &id, 0, &file).await, AppendOutcome::Complete { .. }));
    assert!(bytes_of(store, &format!("4::{id}")).await == file);
}

#[on_both_databases]
async fn an_account_has_a_maximum_number_of_unfinished_uploads(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    for index in 0..MAX_OPEN_UPLOADS {
        begin(store, upload(mine, &format!("u{index}"), 1)).await;
    }
    let next = upload(mine, "next", 1);
    assert_eq!(store.begin_upload(next.clone()).await.unwrap(), BeginUploadOutcome::TooMany);
    begin(store, upload(theirs, "theirs", 1)).await;
    assert!(store.cancel_upload(mine, "u7", noon(5)).await.unwrap());
    begin(store, next).await;
    let another = upload(mine, "another", 1);
    assert_eq!(store.begin_upload(another.clone()).await.unwrap(), BeginUploadOutcome::TooMany);
    // Expired uploads do not count, even if they have not been deleted.
    begin(store, NewUpload { at: noon(DAY), ..another }).await;
}

#[on_both_databases]
async fn an_unfinished_upload_expires_after_a_day(store: &Shared) {
    let account = account(store, "a").await;
    let file = png(20 * UPLOAD_CHUNK_BYTES);
    for (id, at) in [("old", 0), ("untouched", 0), ("done", 0), ("young", 1)] {
        begin(store, NewUpload { at: noon(at), ..upload(account, id, file.len()) }).await;
    }
    append(store, account, "done", 0, &file).await;
    for id in ["old", "young"] {
        append(store, account, id, 0, &file[..file.len() - 1]).await;
    }
    let at = |id: &'static str, plus| store.upload(account, id, noon(plus));
    assert!(at("old", DAY - 1).await.unwrap().is_some());
    assert_eq!(at("old", DAY).await.unwrap(), None);
    let last = file.len() as u64 - 1;
    let late = store.append_upload(account, "old", last, b"x", QUOTA, noon(DAY)).await.unwrap();
    assert_eq!(late, AppendOutcome::NoUpload);
    let deleted =
        store.delete_expired_records(RetentionCursor::default(), noon(DAY)).await.unwrap();
    assert_eq!(deleted, RetentionCursor { deleted_uploads: 2, ..RetentionCursor::default() });
    let again = store.delete_expired_records(RetentionCursor::default(), noon(DAY)).await.unwrap();
    assert_eq!(again, RetentionCursor::default());
    // Deleted permanently, whatever the clock says; newer and complete uploads stay.
    assert_eq!(at("old", 5).await.unwrap(), None);
    assert_eq!(at("untouched", 5).await.unwrap(), None);
    let finished =
        store.append_upload(account, "young", last, b"x", QUOTA, noon(DAY)).await.unwrap();
    assert!(matches!(finished, AppendOutcome::Complete { .. }), "{finished:?}");
    assert!(at("done", 100 * DAY).await.unwrap().is_some());
    assert!(bytes_of(store, "4::done").await == file);
    assert_integrity(store).await;
}

#[on_both_databases]
async fn an_upload_of_a_deleted_account_receives_nothing(store: &Shared) {
    let account = account(store, "a").await;
    begin(store, upload(account, "u1", 4)).await;
    let by = Author::operator(noon(0));
    assert!(store.set_account_disabled(account, true, by).await.unwrap());
    store.delete_account(account, by).await.unwrap();
    assert_eq!(append(store, account, "u1", 0, b"file").await, AppendOutcome::NoUpload);
}

#[on_both_databases]
async fn one_of_many_concurrent_appends_of_the_same_bytes_succeeds(store: &Shared) {
    let account = account(store, "a").await;
    let file = Arc::new(png(4 * UPLOAD_CHUNK_BYTES + 1));
    begin(store, upload(account, "u1", file.len())).await;
    let send = |_| {
        let (store, file) = (Arc::clone(store), Arc::clone(&file));
        tokio::spawn(async move { append(&store, account, "u1", 0, &file).await })
    };
    let senders: Vec<_> = (0..8).map(send).collect();
    let (mut done, mut refused) = (0, 0);
    for sender in senders {
        match sender.await.unwrap() {
            AppendOutcome::Complete { .. } => done += 1,
            AppendOutcome::OffsetMismatch(_) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, refused), (1, 7));
    assert!(bytes_of(store, "4::u1").await == *file);
}
