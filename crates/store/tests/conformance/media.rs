//! Cases about files that have been sent whole, and about forgetting files.

use galley_domain::{
    document::Document,
    id::AccountId,
    rulebook::WHATSAPP,
    template::{Template, edit::Edit},
};
use galley_store::{
    AppendOutcome, Media, NewTemplate, NewUpload, RetentionCursor, TranslationGroup,
    UPLOAD_CHUNK_BYTES,
};

use super::{
    fixture::{Shared, account, change, create, done, new, noon},
    uploads::{DAY, append, begin, bytes_of, is_sound, picture, received, upload},
};

/// The name of a file as it is given out.
fn name(letter: char) -> String {
    letter.to_string().repeat(32)
}

/// A file that is there, found by its name.
async fn sent(store: &Shared, account: AccountId, letter: char, length: usize) {
    let id = letter.to_string();
    begin(store, NewUpload { handle: name(letter), ..upload(account, &id, length) }).await;
    let sent = append(store, account, &id, 0, &picture(length)).await;
    assert!(matches!(sent, AppendOutcome::Complete { .. }), "{sent:?}");
}

/// A template whose header names that file.
fn naming(account: AccountId, called: &str, letter: char) -> NewTemplate {
    let document = format!(
        r#"{{"name":"{called}","language":"en_US","category":"MARKETING","components":[
        {{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["4::galley.{}"]}}}},
        {{"type":"BODY","text":"Look at this"}}]}}"#,
        name(letter)
    );
    let template =
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).unwrap();
    let claim = (WHATSAPP.claim)(account, called, template.language());
    NewTemplate {
        template,
        claim,
        family: Some(TranslationGroup::of(account, called)),
        ..new(account, called)
    }
}

async fn swept(store: &Shared, at: i64) -> usize {
    let swept = store.delete_expired_records(RetentionCursor::default(), noon(at)).await.unwrap();
    assert_eq!(swept, RetentionCursor { uploads: swept.uploads, ..RetentionCursor::default() });
    swept.uploads
}

pub(crate) async fn a_file_that_no_template_names_in_a_week_is_forgotten(store: &Shared) {
    let account = account(store, "a").await;
    let length = 20 * UPLOAD_CHUNK_BYTES;
    for letter in ['a', 'b', 'c', 'd'] {
        sent(store, account, letter, length).await;
    }
    let of_a = create(store, naming(account, "first", 'a')).await;
    let edited = create(store, naming(account, "second", 'a')).await;
    let content = naming(account, "second", 'b').template.content().to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(account, edited), edit).await.unwrap());
    // Neither a later version nor a deletion takes a file away: history stays.
    let content = naming(account, "second", 'c').template.content().to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(account, edited), edit).await.unwrap());
    done(store.delete_template(change(account, of_a)).await.unwrap());

    assert_eq!(swept(store, 7 * DAY).await, 0, "whoever has just looked may still name it");
    let named = |letter: char, at: i64| {
        let name = name(letter);
        async move { store.sample(account, &name, noon(at)).await.unwrap().is_some() }
    };
    assert!(named('d', 7 * DAY + 4).await);
    assert!(!named('d', 7 * DAY + 5).await, "no more from the moment on when its time is over");
    assert_eq!(swept(store, 8 * DAY).await, 1);
    assert_eq!(swept(store, 8 * DAY).await, 0);
    assert_eq!(store.media(&name('d')).await.unwrap(), None);
    assert!(store.media_chunk(&name('d'), 0).await.unwrap().is_empty());
    for letter in ['a', 'b', 'c'] {
        assert!(named(letter, 100 * DAY).await, "{letter}");
        assert!(bytes_of(store, &name(letter)).await == picture(length), "{letter}");
    }
    is_sound(store).await;
}

pub(crate) async fn a_template_can_name_its_own_accounts_files_only(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    sent(store, mine, 'a', 100).await;
    begin(store, NewUpload { handle: name('u'), ..upload(mine, "u", 100) }).await;
    let found = store.sample(mine, &name('a'), noon(5)).await.unwrap();
    assert_eq!(
        found,
        Some(Media {
            file_type: "image/png".to_owned(),
            file_name: "a.png".to_owned(),
            length: 100,
        })
    );
    assert_eq!(store.sample(theirs, &name('a'), noon(5)).await.unwrap(), None);
    for other in [name('u'), name('x'), String::new()] {
        assert_eq!(store.sample(mine, &other, noon(5)).await.unwrap(), None, "{other}");
    }
    // A stranger who names it does not keep it.
    create(store, naming(theirs, "first", 'a')).await;
    assert_eq!(swept(store, 8 * DAY).await, 2);
}

pub(crate) async fn files_of_a_disabled_account_are_not_shown(store: &Shared) {
    let account = account(store, "a").await;
    sent(store, account, 'a', 100).await;
    store.set_account_disabled(account, Some(noon(6))).await.unwrap();
    assert_eq!(store.media(&name('a')).await.unwrap(), None);
    store.set_account_disabled(account, None).await.unwrap();
    assert!(store.media(&name('a')).await.unwrap().is_some());
}

pub(crate) async fn an_upload_that_no_template_names_can_be_cancelled(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let file = picture(20 * UPLOAD_CHUNK_BYTES);
    begin(store, upload(mine, "u1", file.len())).await;
    append(store, mine, "u1", 0, &file[1..]).await;
    sent(store, mine, 'a', 100).await;
    let cancel = |account, id: &'static str| store.cancel_upload(account, id, noon(5));
    assert!(!cancel(theirs, "u1").await.unwrap());
    assert_eq!(received(store, mine, "u1").await, Some(file.len() as u64 - 1));
    assert!(cancel(mine, "u1").await.unwrap());
    assert!(!cancel(mine, "u1").await.unwrap());
    assert_eq!(received(store, mine, "u1").await, None);
    assert_eq!(append(store, mine, "u1", 0, b"x").await, AppendOutcome::NoUpload);
    // What is whole goes, too, unless a template has named it.
    assert!(!cancel(theirs, "a").await.unwrap());
    assert!(store.media(&name('a')).await.unwrap().is_some());
    assert!(cancel(mine, "a").await.unwrap());
    assert!(store.media(&name('a')).await.unwrap().is_none());
    sent(store, mine, 'b', 100).await;
    create(store, naming(mine, "first", 'b')).await;
    assert!(!cancel(mine, "b").await.unwrap());
    assert!(store.media(&name('b')).await.unwrap().is_some());
    is_sound(store).await;
}

pub(crate) async fn a_file_of_another_type_than_announced_is_forgotten(store: &Shared) {
    let account = account(store, "a").await;
    let file = picture(3 * UPLOAD_CHUNK_BYTES);
    for (id, announced, bytes, shown) in [
        ("u1", "image/jpeg", &file[..], Some("image/png")),
        ("u2", "video/mp4", b"only a text", None),
    ] {
        let file_type = announced.to_owned();
        begin(store, NewUpload { file_type, ..upload(account, id, bytes.len()) }).await;
        let (first, last) = bytes.split_at(bytes.len() - 1);
        let progress = append(store, account, id, 0, first).await;
        assert_eq!(progress, AppendOutcome::Received(first.len() as u64));
        let (announced, shown) = (announced.to_owned(), shown.map(str::to_owned));
        let refused = append(store, account, id, first.len(), last).await;
        assert_eq!(refused, AppendOutcome::OtherType { announced, shown });
        assert_eq!(received(store, account, id).await, None);
    }
    is_sound(store).await;
}
