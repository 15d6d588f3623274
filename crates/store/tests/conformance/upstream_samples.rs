//! Cases about media samples that the provider shows as links, and the files that the account keeps.

use galley_domain::{id::AccountId, template::Review, upstream::RemoteTemplate};
use galley_store::{
    AppendOutcome, Fence, NewUpload, RetentionCursor, SampleLink, TemplateChange, UpstreamAction,
    UpstreamActionOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::stored,
    fixture::{Shared, noon},
    uploads::{DAY, append, assert_integrity, begin, bytes_of, png, upload},
    upstream::{connected, done, mirror, read_record, sweep},
    upstream_submission::changing,
};

/// The length of a file.
const LENGTH: usize = 100;

/// A template at the provider with this text, and a header whose sample has a link.
fn remote(id: &str, text: &str) -> RemoteTemplate {
    let document = format!(
        r#"{{"id":"{id}","name":"a{id}","language":"en_US","status":"APPROVED","category":"UTILITY",
        "components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":
        ["https:\/\/cdn.example\/a.png?oh=1\u0026oe=2"]}}}},{{"type":"BODY","text":"{text}"}}]}}"#
    );
    RemoteTemplate::parse(&document).unwrap()
}

fn handle(letter: char) -> String {
    letter.to_string().repeat(32)
}

/// Begins the upload that keeps the sample of a template.
async fn begin_sample(store: &Shared, owner: AccountId, remote: &RemoteTemplate, letter: char) {
    let document = remote.document.as_deref().unwrap();
    let [sample] = &SampleLink::all(owner, &remote.id, document)[..] else { panic!("{document}") };
    begin(store, NewUpload { handle: handle(letter), ..upload(owner, &sample.upload, LENGTH) })
        .await;
}

/// Keeps the file of the sample of a template.
async fn keep_sample(store: &Shared, owner: AccountId, remote: &RemoteTemplate, letter: char) {
    begin_sample(store, owner, remote, letter).await;
    let sample = SampleLink::all(owner, &remote.id, remote.document.as_deref().unwrap()).remove(0);
    let sent = append(store, owner, &sample.upload, 0, &png(LENGTH)).await;
    assert!(matches!(sent, AppendOutcome::Complete { .. }), "{sent:?}");
}

async fn content(store: &Shared, fence: Fence, id: &str) -> String {
    let template = mirror(store, fence.account, id).await.template.unwrap();
    stored(store, fence.account, template).await.template.content().to_owned()
}

async fn deleted_after_weeks(store: &Shared) -> usize {
    let at = noon(30 * DAY);
    let deleted = store.delete_expired_records(RetentionCursor::default(), at).await.unwrap();
    deleted.deleted_uploads
}

#[on_both_databases]
async fn an_import_refers_to_the_file_that_keeps_its_sample(store: &Shared) {
    let fence = connected(store, "a").await;
    let kept = remote("5", "Hi");
    keep_sample(store, fence.account, &kept, 'a').await;
    sweep(store, fence, std::slice::from_ref(&kept), 1).await;
    let content = content(store, fence, "5").await;
    assert!(content.contains(&format!(r#"["4::galley.{}"]"#, handle('a'))), "{content}");
    let row = mirror(store, fence.account, "5").await;
    assert_eq!((row.version, row.drifted), (Some(1), false));
    let document = store.mirrored_document(fence.account, kept.id.clone()).await.unwrap();
    assert_eq!(document, kept.document, "the document stays as it was received");
    assert_eq!(deleted_after_weeks(store).await, 0, "a template uses the file");
    assert_eq!(bytes_of(store, &handle('a')).await, png(LENGTH));
    assert_integrity(store).await;
}

#[on_both_databases]
async fn an_import_without_a_complete_file_has_the_link(store: &Shared) {
    let [fence, other] = [connected(store, "a").await, connected(store, "b").await];
    let templates = [remote("5", "Hi"), remote("6", "Hi"), remote("7", "Hi")];
    begin_sample(store, fence.account, &templates[0], 'a').await;
    keep_sample(store, other.account, &templates[1], 'b').await;
    sweep(store, fence, &templates, 1).await;
    for id in ["5", "6", "7"] {
        let content = content(store, fence, id).await;
        assert!(content.contains("cdn.example") && !content.contains("galley"), "{content}");
    }
    assert_eq!(deleted_after_weeks(store).await, 2, "no template uses the files");
}

#[on_both_databases]
async fn an_accepted_content_refers_to_the_file_that_keeps_its_sample(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "Hi")], 1).await;
    let changed = remote("5", "Else");
    keep_sample(store, account, &changed, 'a').await;
    done(store.record_read(fence, read_record(changed, None, 2), noon(2)).await.unwrap());
    assert!(mirror(store, account, "5").await.drifted);
    let before = content(store, fence, "5").await;
    assert!(before.contains("cdn.example"), "the content of the account stays: {before}");
    let template = mirror(store, account, "5").await.template.unwrap();
    let change = TemplateChange { at: noon(3), ..changing(account, template, Review::Provider) };
    let accepted = store.act_upstream(change, UpstreamAction::Accept).await.unwrap();
    assert!(matches!(accepted, UpstreamActionOutcome::Changed(_)), "{accepted:?}");
    let after = content(store, fence, "5").await;
    assert!(after.contains(&handle('a')) && after.contains("Else"), "{after}");
    let row = mirror(store, account, "5").await;
    assert_eq!((row.version, row.drifted), (Some(2), false));
    assert_eq!(deleted_after_weeks(store).await, 0);
    assert_integrity(store).await;
}
