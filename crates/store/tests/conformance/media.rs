//! Cases about complete media files and their expiry.

use galley_domain::{
    document::Document,
    id::AccountId,
    rulebook::WHATSAPP,
    template::{Template, edit::Edit},
};
use galley_store::{
    AppendOutcome, Author, Media, NewTemplate, NewUpload, RetentionCursor, TranslationGroup,
    UPLOAD_CHUNK_BYTES,
};
use galley_test_macros::on_both_databases;

use super::{
    fixture::{Shared, account, change, create, done, new, noon},
    uploads::{DAY, append, assert_integrity, begin, bytes_of, png, received, upload},
};

/// A file handle.
fn handle(letter: char) -> String {
    letter.to_string().repeat(32)
}

/// Uploads a complete file.
async fn upload_file(store: &Shared, account: AccountId, letter: char, length: usize) {
    let id = letter.to_string();
    begin(store, NewUpload { handle: handle(letter), ..upload(account, &id, length) }).await;
    let sent = append(store, account, &id, 0, &png(length)).await;
    assert!(matches!(sent, AppendOutcome::Complete { .. }), "{sent:?}");
}

/// A template whose header references a file.
fn referencing(account: AccountId, name: &str, letter: char) -> NewTemplate {
    let document = format!(
        r#"{{"name":"{name}","language":"en_US","category":"MARKETING","components":[
        {{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["4::galley.{}"]}}}},
        {{"type":"BODY","text":"See this"}}]}}"#,
        handle(letter)
    );
    let template =
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).unwrap();
    let unique_key = (WHATSAPP.unique_key)(account, name, template.language());
    NewTemplate {
        template,
        unique_key,
        translation_group: Some(TranslationGroup::of(account, name)),
        ..new(account, name)
    }
}

async fn delete_expired(store: &Shared, at: i64) -> usize {
    let deleted = store.delete_expired_records(RetentionCursor::default(), noon(at)).await.unwrap();
    assert_eq!(
        deleted,
        RetentionCursor { deleted_uploads: deleted.deleted_uploads, ..RetentionCursor::default() }
    );
    deleted.deleted_uploads
}

#[on_both_databases]
async fn an_unreferenced_file_expires_after_a_week(store: &Shared) {
    let account = account(store, "a").await;
    let length = 20 * UPLOAD_CHUNK_BYTES;
    for letter in ['a', 'b', 'c', 'd'] {
        upload_file(store, account, letter, length).await;
    }
    let first = create(store, referencing(account, "first", 'a')).await;
    let edited = create(store, referencing(account, "second", 'a')).await;
    let content = referencing(account, "second", 'b').template.content().to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(account, edited), edit).await.unwrap());
    // A file stays referenced by old versions and by deleted templates.
    let content = referencing(account, "second", 'c').template.content().to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(account, edited), edit).await.unwrap());
    done(store.delete_template(change(account, first)).await.unwrap());

    assert_eq!(
        delete_expired(store, 7 * DAY).await,
        0,
        "deletion leaves a margin after the expiry"
    );
    let named = |letter: char, at: i64| {
        let name = handle(letter);
        async move { store.sample(account, &name, noon(at)).await.unwrap().is_some() }
    };
    assert!(named('d', 7 * DAY + 4).await);
    assert!(!named('d', 7 * DAY + 5).await, "an expired file cannot be referenced");
    assert_eq!(delete_expired(store, 8 * DAY).await, 1);
    assert_eq!(delete_expired(store, 8 * DAY).await, 0);
    assert_eq!(store.media(&handle('d')).await.unwrap(), None);
    assert!(store.media_chunk(&handle('d'), 0).await.unwrap().is_empty());
    for letter in ['a', 'b', 'c'] {
        assert!(named(letter, 100 * DAY).await, "{letter}");
        assert!(bytes_of(store, &handle(letter)).await == png(length), "{letter}");
    }
    assert_integrity(store).await;
}

#[on_both_databases]
async fn a_template_can_reference_only_files_of_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    upload_file(store, mine, 'a', 100).await;
    begin(store, NewUpload { handle: handle('u'), ..upload(mine, "u", 100) }).await;
    let found = store.sample(mine, &handle('a'), noon(5)).await.unwrap();
    assert_eq!(
        found,
        Some(Media {
            file_type: "image/png".to_owned(),
            file_name: "a.png".to_owned(),
            length: 100,
            emulated_at: None,
            faithful: None,
        })
    );
    assert_eq!(store.sample(theirs, &handle('a'), noon(5)).await.unwrap(), None);
    for other in [handle('u'), handle('x'), String::new()] {
        assert_eq!(store.sample(mine, &other, noon(5)).await.unwrap(), None, "{other}");
    }
    // A reference from another account does not keep the file.
    create(store, referencing(theirs, "first", 'a')).await;
    assert_eq!(delete_expired(store, 8 * DAY).await, 2);
}

#[on_both_databases]
async fn files_of_a_disabled_account_are_not_served(store: &Shared) {
    let account = account(store, "a").await;
    upload_file(store, account, 'a', 100).await;
    store.set_account_disabled(account, true, Author::operator(noon(6))).await.unwrap();
    assert_eq!(store.media(&handle('a')).await.unwrap(), None);
    store.set_account_disabled(account, false, Author::operator(noon(0))).await.unwrap();
    assert!(store.media(&handle('a')).await.unwrap().is_some());
}

#[on_both_databases]
async fn an_unreferenced_upload_can_be_cancelled(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let file = png(20 * UPLOAD_CHUNK_BYTES);
    begin(store, upload(mine, "u1", file.len())).await;
    append(store, mine, "u1", 0, &file[1..]).await;
    upload_file(store, mine, 'a', 100).await;
    let cancel = |account, id: &'static str| store.cancel_upload(account, id, noon(5));
    assert!(!cancel(theirs, "u1").await.unwrap());
    assert_eq!(received(store, mine, "u1").await, Some(file.len() as u64 - 1));
    assert!(cancel(mine, "u1").await.unwrap());
    assert!(!cancel(mine, "u1").await.unwrap());
    assert_eq!(received(store, mine, "u1").await, None);
    assert_eq!(append(store, mine, "u1", 0, b"x").await, AppendOutcome::NoUpload);
    // A complete upload can be cancelled unless a template references it.
    assert!(!cancel(theirs, "a").await.unwrap());
    assert!(store.media(&handle('a')).await.unwrap().is_some());
    assert!(cancel(mine, "a").await.unwrap());
    assert!(store.media(&handle('a')).await.unwrap().is_none());
    upload_file(store, mine, 'b', 100).await;
    create(store, referencing(mine, "first", 'b')).await;
    assert!(!cancel(mine, "b").await.unwrap());
    assert!(store.media(&handle('b')).await.unwrap().is_some());
    assert_integrity(store).await;
}

#[on_both_databases]
async fn a_file_that_is_not_of_the_declared_type_is_deleted(store: &Shared) {
    let account = account(store, "a").await;
    let file = png(3 * UPLOAD_CHUNK_BYTES);
    for (id, declared, bytes, sniffed) in [
        ("u1", "image/jpeg", &file[..], Some("image/png")),
        ("u2", "video/mp4", b"just a text", None),
    ] {
        let file_type = declared.to_owned();
        begin(store, NewUpload { file_type, ..upload(account, id, bytes.len()) }).await;
        let (first, last) = bytes.split_at(bytes.len() - 1);
        let progress = append(store, account, id, 0, first).await;
        assert_eq!(progress, AppendOutcome::Received(first.len() as u64));
        let (declared, sniffed) = (declared.to_owned(), sniffed.map(str::to_owned));
        let refused = append(store, account, id, first.len(), last).await;
        assert_eq!(refused, AppendOutcome::TypeMismatch { declared, sniffed });
        assert_eq!(received(store, account, id).await, None);
    }
    assert_integrity(store).await;
}
