//! Cases about files that are sent piece by piece.

use std::sync::Arc;

use galley_domain::id::AccountId;
use galley_store::{
    Appended, LARGEST_UPLOAD, MOST_UPLOADS, Media, NewUpload, Sweep, UPLOAD_PIECE, Upload,
    UploadCreation,
};

use super::fixture::{Shared, account, noon};

const DAY: i64 = 24 * 3_600_000;

fn upload(account: AccountId, id: &str, length: usize) -> NewUpload {
    NewUpload {
        account,
        id: id.to_owned(),
        handle: format!("4::{id}"),
        file_name: format!("{id}.png"),
        file_type: "image/png".to_owned(),
        length: length as u64,
        room: u64::from(u32::MAX),
        at: noon(0),
    }
}

async fn begin(store: &Shared, new: NewUpload) {
    assert_eq!(store.begin_upload(new).await.unwrap(), UploadCreation::Begun);
}

async fn append(
    store: &Shared,
    account: AccountId,
    id: &str,
    offset: usize,
    bytes: &[u8],
) -> Appended {
    store.append_upload(account, id, offset as u64, bytes, noon(5)).await.unwrap()
}

async fn received(store: &Shared, account: AccountId, id: &str) -> Option<u64> {
    store.upload(account, id, noon(5)).await.unwrap().map(|upload| upload.received)
}

/// A picture, by its first bytes, of that length; no two of its chunks are alike.
fn picture(length: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let words = (0_u32..).flat_map(|word| word.wrapping_mul(2_654_435_761).to_be_bytes());
    bytes.extend(words.take(length.saturating_sub(bytes.len())));
    bytes.truncate(length);
    bytes
}

fn complete(handle: &str, sniffed: Option<&str>) -> Appended {
    Appended::Complete { handle: handle.to_owned(), sniffed: sniffed.map(str::to_owned) }
}

pub(crate) async fn a_file_sent_in_pieces_is_read_back_whole_by_its_handle(store: &Shared) {
    let account = account(store, "a").await;
    let file = picture(3 * UPLOAD_PIECE + 17);
    begin(store, upload(account, "u1", file.len())).await;
    let kept = store.upload(account, "u1", noon(5)).await.unwrap().unwrap();
    let expected = Upload {
        file_name: "u1.png".to_owned(),
        file_type: "image/png".to_owned(),
        length: file.len() as u64,
        received: 0,
        handle: None,
        sniffed: None,
        created_at: noon(0),
    };
    assert_eq!(kept, expected);
    // Small pieces, one that is larger than what is written at once, nothing, and the rest.
    let mut from = 0;
    for to in [1, 2, 9, 5_000, 5_001, 2 * UPLOAD_PIECE + 5_000, 2 * UPLOAD_PIECE + 5_000] {
        let appended = append(store, account, "u1", from, &file[from..to]).await;
        assert_eq!(appended, Appended::Received(to as u64));
        assert_eq!(received(store, account, "u1").await, Some(to as u64));
        from = to;
    }
    assert_eq!(store.media("4::u1").await.unwrap(), None, "not before it is whole");
    let png = Some("image/png");
    assert_eq!(append(store, account, "u1", from, &file[from..]).await, complete("4::u1", png));
    let kept = store.upload(account, "u1", noon(5)).await.unwrap().unwrap();
    let (handle, sniffed) = (Some("4::u1".to_owned()), png.map(str::to_owned));
    assert_eq!(kept, Upload { received: file.len() as u64, handle, sniffed, ..expected });
    let media = store.media("4::u1").await.unwrap().unwrap();
    assert!(media.file_type == "image/png" && media.bytes == file);
    // Asked once more, it is as complete as before.
    assert_eq!(append(store, account, "u1", file.len(), &[]).await, complete("4::u1", png));
    for other in ["4::u2", "u1", ""] {
        assert_eq!(store.media(other).await.unwrap(), None);
    }
}

pub(crate) async fn bytes_that_do_not_begin_where_the_upload_ends_are_refused(store: &Shared) {
    let account = account(store, "a").await;
    begin(store, upload(account, "u1", 10)).await;
    assert_eq!(append(store, account, "u1", 1, b"x").await, Appended::Misplaced(0));
    assert_eq!(append(store, account, "u1", 0, b"0123").await, Appended::Received(4));
    for offset in [0, 3, 5, 100, usize::MAX] {
        assert_eq!(append(store, account, "u1", offset, b"x").await, Appended::Misplaced(4));
    }
    // More than was announced is not taken in part, however much of it fits.
    assert_eq!(append(store, account, "u1", 4, b"4567890").await, Appended::TooLong(10));
    let large = vec![b'x'; 2 * UPLOAD_PIECE];
    assert_eq!(append(store, account, "u1", 4, &large).await, Appended::TooLong(10));
    assert_eq!(received(store, account, "u1").await, Some(4));
    assert_eq!(append(store, account, "u1", 4, b"456789").await, complete("4::u1", None));
    assert_eq!(append(store, account, "u1", 0, b"0").await, Appended::Misplaced(10));
    assert_eq!(append(store, account, "u1", 10, b"x").await, Appended::TooLong(10));
    assert_eq!(append(store, account, "u2", 0, b"x").await, Appended::NoUpload);
    let media = store.media("4::u1").await.unwrap();
    // Its sender said that it is a picture; its bytes do not.
    let file_type = "application/octet-stream".to_owned();
    assert_eq!(media, Some(Media { file_type, bytes: b"0123456789".to_vec() }));
}

pub(crate) async fn an_upload_is_its_accounts_only(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    begin(store, upload(mine, "u1", 4)).await;
    assert_eq!(store.upload(theirs, "u1", noon(5)).await.unwrap(), None);
    assert_eq!(append(store, theirs, "u1", 0, b"x").await, Appended::NoUpload);
    assert_eq!(received(store, mine, "u1").await, Some(0));
    // Neither an id nor a handle is given out twice.
    let again = upload(theirs, "u1", 4);
    assert_eq!(store.begin_upload(again.clone()).await.unwrap(), UploadCreation::Taken);
    let again = NewUpload { id: "u2".to_owned(), ..again };
    assert_eq!(store.begin_upload(again).await.unwrap(), UploadCreation::Taken);
    assert_eq!(received(store, theirs, "u2").await, None);
}

pub(crate) async fn an_account_keeps_as_many_bytes_as_it_has_room_for(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let sized = |account, id, length| NewUpload { room: 10, ..upload(account, id, length) };
    begin(store, sized(mine, "u1", 4)).await;
    begin(store, sized(mine, "u2", 6)).await;
    let refused = store.begin_upload(sized(mine, "u3", 1)).await.unwrap();
    assert_eq!(refused, UploadCreation::NoRoom(10));
    begin(store, sized(theirs, "u3", 10)).await;
    let more_room = NewUpload { room: 11, ..sized(mine, "u4", 1) };
    begin(store, more_room).await;
}

pub(crate) async fn a_file_announces_a_length_that_can_be_kept(store: &Shared) {
    let account = account(store, "a").await;
    let largest = usize::try_from(LARGEST_UPLOAD).unwrap();
    for (length, expected) in [
        (0, UploadCreation::WrongLength),
        (1, UploadCreation::Begun),
        (largest, UploadCreation::Begun),
        (largest + 1, UploadCreation::WrongLength),
        (usize::MAX, UploadCreation::WrongLength),
    ] {
        let new = upload(account, &format!("u{length}"), length);
        assert_eq!(store.begin_upload(new).await.unwrap(), expected, "{length}");
    }
    let file = picture(largest);
    let id = format!("u{largest}");
    assert!(matches!(append(store, account, &id, 0, &file).await, Appended::Complete { .. }));
    assert!(store.media(&format!("4::{id}")).await.unwrap().unwrap().bytes == file);
}

pub(crate) async fn an_account_has_so_many_unfinished_uploads_at_most(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    for index in 0..MOST_UPLOADS {
        begin(store, upload(mine, &format!("u{index}"), 1)).await;
    }
    let next = upload(mine, "next", 1);
    assert_eq!(store.begin_upload(next.clone()).await.unwrap(), UploadCreation::TooMany);
    begin(store, upload(theirs, "theirs", 1)).await;
    append(store, mine, "u7", 0, b"x").await;
    begin(store, next).await;
    let another = upload(mine, "another", 1);
    assert_eq!(store.begin_upload(another.clone()).await.unwrap(), UploadCreation::TooMany);
    // Those whose time is over do not count, swept or not.
    begin(store, NewUpload { at: noon(DAY), ..another }).await;
}

pub(crate) async fn an_upload_that_is_not_finished_in_a_day_is_forgotten(store: &Shared) {
    let account = account(store, "a").await;
    let file = picture(20 * UPLOAD_PIECE);
    for (id, at) in [("old", 0), ("untouched", 0), ("done", 0), ("young", 1)] {
        begin(store, NewUpload { at: noon(at), ..upload(account, id, file.len()) }).await;
    }
    append(store, account, "done", 0, &file).await;
    for id in ["old", "young"] {
        append(store, account, id, 0, &file[1..]).await;
    }
    let at = |id: &'static str, plus| store.upload(account, id, noon(plus));
    assert!(at("old", DAY - 1).await.unwrap().is_some());
    assert_eq!(at("old", DAY).await.unwrap(), None);
    let last = file.len() as u64 - 1;
    let late = store.append_upload(account, "old", last, b"x", noon(DAY)).await.unwrap();
    assert_eq!(late, Appended::NoUpload);
    let swept = store.sweep(Sweep::default(), noon(DAY)).await.unwrap();
    assert_eq!(swept, Sweep { uploads: 2, ..Sweep::default() });
    let again = store.sweep(Sweep::default(), noon(DAY)).await.unwrap();
    assert_eq!(again, Sweep::default());
    // Gone for good, whatever the clock says; what is young or done is not.
    assert_eq!(at("old", 5).await.unwrap(), None);
    assert_eq!(at("untouched", 5).await.unwrap(), None);
    let finished = store.append_upload(account, "young", last, b"x", noon(DAY)).await.unwrap();
    assert!(matches!(finished, Appended::Complete { .. }), "{finished:?}");
    assert!(at("done", 100 * DAY).await.unwrap().is_some());
    assert!(store.media("4::done").await.unwrap().unwrap().bytes == file);
    assert!(store.examine().await.unwrap().iter().all(|finding| finding.good));
}

pub(crate) async fn of_concurrent_senders_of_the_same_bytes_one_succeeds(store: &Shared) {
    let account = account(store, "a").await;
    let file = Arc::new(picture(4 * UPLOAD_PIECE + 1));
    begin(store, upload(account, "u1", file.len())).await;
    let send = |_| {
        let (store, file) = (Arc::clone(store), Arc::clone(&file));
        tokio::spawn(async move { append(&store, account, "u1", 0, &file).await })
    };
    let senders: Vec<_> = (0..8).map(send).collect();
    let (mut done, mut refused) = (0, 0);
    for sender in senders {
        match sender.await.unwrap() {
            Appended::Complete { .. } => done += 1,
            Appended::Misplaced(_) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, refused), (1, 7));
    assert!(store.media("4::u1").await.unwrap().unwrap().bytes == *file);
}
