//! Damage on the disk: a SQLite store serves what was stored, or an error, and never other content.

use std::{path::Path, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::Category,
    template::{
        edit::Edit,
        lifecycle::{EventType, Trigger},
    },
};
use galley_store::{
    ChangeOutcome, DeliveryQuery, ListQuery, SqliteStore, StoreError, sqlite::SqliteOptions,
};

use super::{
    deliveries::{deliver_all, lease, statuses},
    emulator_statuses::assert_later_messages_are_not_read,
    fixture::{Shared, account, change, create, done, new, translation},
    lists::all,
    uploads::{append, begin, png, upload},
    webhooks::{endpoint, register},
};

/// Number of stores with one flipped bit each.
const FLIPS: u64 = 300;

/// What a store served, as text: each part, or that it could not be read.
type Served = Vec<(String, Option<String>)>;

fn open(path: &Path) -> Result<Shared, StoreError> {
    Ok(Arc::new(SqliteStore::open(path, &SqliteOptions::default())?.into()))
}

/// Reads all content of the account. `None` for what is an error or missing.
async fn read_all(store: &Shared, account: AccountId, ids: &[TemplateId], file: &str) -> Served {
    let mut served = Vec::new();
    for id in ids {
        let template = store.template(account, *id).await.ok().flatten();
        served.push((format!("template {id}"), template.map(|it| format!("{it:?}"))));
        for number in 1..=2 {
            let version = store.version(account, *id, number).await.ok().flatten();
            let version = version.map(|it| format!("{it:?}"));
            served.push((format!("template {id} version {number}"), version));
        }
    }
    for seq in 0..8 {
        let event = store.events(account, Some(seq), 1).await.ok().map(|it| format!("{it:?}"));
        // Whether an event is missing is not the question here.
        let event = event.filter(|it| it.starts_with("Events([E"));
        served.push((format!("event {seq}"), event));
    }
    let chunk = store.media_chunk(file, 0).await.ok().filter(|it| !it.is_empty());
    served.push(("media".to_owned(), chunk.map(|it| format!("{it:?}"))));
    served
}

/// Creates a store with templates, versions, decisions and a file. Returns what identifies them.
async fn fill(path: &Path) -> (AccountId, Vec<TemplateId>, String) {
    let store = open(path).unwrap();
    let account = account(&store, "a").await;
    let mut ids = Vec::new();
    for index in 0..4 {
        ids.push(create(&store, new(account, &format!("template_number_{index}"))).await);
    }
    let edit = Edit::Replace {
        content: Some(r#"{"components":[{"type":"BODY","text":"Second text"}]}"#.to_owned()),
        category: None,
    };
    done(store.edit_template(change(account, ids[0]), edit).await.unwrap());
    let reason = Some("Say what the code is for".to_owned());
    done(store.review_template(change(account, ids[0]), Trigger::Reject, reason).await.unwrap());
    let bytes = png(3_000);
    let upload = upload(account, "picture", bytes.len());
    let handle = upload.handle.clone();
    begin(&store, upload).await;
    append(&store, account, "picture", 0, &bytes).await;
    (account, ids, handle)
}

#[tokio::test]
async fn a_store_with_a_flipped_bit_never_serves_other_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let (account, ids, file) = fill(&path).await;
    let expected = read_all(&open(&path).unwrap(), account, &ids, &file).await;
    let missing: Vec<_> =
        expected.iter().filter(|(_, served)| served.is_none()).map(|(part, _)| part).collect();
    assert_eq!(missing.len(), 3 + 2, "three templates have one version; six events: {missing:?}");
    let intact = std::fs::read(&path).unwrap();
    let (mut random, mut errors) = (0x2545_F491_4F6C_DD1D_u64, 0);
    for flip in 0..FLIPS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(flip * 2 + 1);
        let bit = usize::try_from((random >> 16) % (intact.len() as u64 * 8)).unwrap();
        let mut bytes = intact.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let damaged = dir.path().join(format!("damaged_{flip}.db"));
        std::fs::write(&damaged, bytes).unwrap();
        let Ok(store) = open(&damaged) else { continue };
        let served = read_all(&store, account, &ids, &file).await;
        for ((part, before), (_, after)) in expected.iter().zip(&served) {
            if after.is_none() && before.is_some() {
                errors += 1;
            }
            assert!(after.is_none() || after == before, "bit {bit}, {part}: {after:?}");
        }
    }
    assert!(errors > 0, "some of the flips must have hit content");
}

/// Changes one character of a stored text without its checksum.
fn damage(path: &Path, statement: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    assert_eq!(connection.execute(statement, []).unwrap(), 1);
}

#[tokio::test]
async fn a_damaged_template_is_an_error_that_names_its_row_and_doctor_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let (account, ids, _) = fill(&path).await;
    damage(
        &path,
        "UPDATE template SET content = replace(content, 'Second', 'Sfcond') \
         WHERE content LIKE '%Second%'",
    );
    let store = open(&path).unwrap();
    let error = store.template(account, ids[0]).await.unwrap_err();
    let StoreError::Damaged(cause) = &error else { panic!("{error:?}") };
    let row = format!("the row {} of the table template", ids[0]);
    assert!(cause.to_string().contains(&row), "{cause}");
    assert!(matches!(
        store.list(ListQuery { limit: 10, ..all(account) }).await,
        Err(StoreError::Damaged(_))
    ));
    let findings = store.check_integrity().await.unwrap();
    let checksums = findings.iter().find(|it| it.subject == "checksums").unwrap();
    assert!(!checksums.ok && checksums.detail.contains(&ids[0].to_string()), "{checksums:?}");
}

#[tokio::test]
async fn a_damaged_language_of_a_name_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path).unwrap();
    let account = account(&store, "a").await;
    for language in ["en_US", "de_DE"] {
        create(&store, translation(account, "hello", language, Category::Utility)).await;
    }
    damage(&path, "UPDATE template SET language = 'de_DF' WHERE language = 'de_DE'");
    let translations = store.translations(account, "hello").await;
    assert!(matches!(translations, Err(StoreError::Damaged(_))), "{translations:?}");
    let languages = store.languages(all(account), vec!["hello".to_owned()]).await;
    assert!(matches!(languages, Err(StoreError::Damaged(_))), "{languages:?}");
}

#[tokio::test]
async fn a_damaged_template_can_be_deleted_but_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let (account, ids, _) = fill(&path).await;
    damage(&path, "UPDATE template SET name = 'template_number_X' WHERE name LIKE '%_3'");
    let store = open(&path).unwrap();
    let change = change(account, ids[3]);
    let edit = Edit::Replace { content: None, category: None };
    let edited = store.edit_template(change.clone(), edit).await;
    assert!(matches!(edited, Err(StoreError::Damaged(_))), "{edited:?}");
    let deleted = store.delete_template(change).await.unwrap();
    assert!(matches!(deleted, ChangeOutcome::Done(_)), "{deleted:?}");
    let page = store.list(ListQuery { limit: 10, ..all(account) }).await.unwrap();
    assert_eq!(page.templates.len(), 3, "the list can be read again");
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().any(|it| it.subject == "checksums" && !it.ok), "{findings:?}");
}

#[tokio::test]
async fn a_damaged_event_fails_its_delivery_and_the_later_ones_are_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path).unwrap();
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    let id = create(&store, new(account, "one")).await;
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    // The events are queued for delivery before the first one is damaged.
    let first = lease(&store, webhook, 10).await.unwrap();
    assert_eq!(first.event.seq, 1);
    damage(&path, "UPDATE event SET category = 'UTILITX' WHERE seq = 1");
    let expired = 60_000;
    assert!(lease(&store, webhook, expired).await.is_none(), "the first one ends without a lease");
    assert_eq!(deliver_all(&store, webhook, expired).await, [2]);
    let outcomes: Vec<_> = statuses(&store, account, webhook).await.into_iter().collect();
    assert_eq!(outcomes, [(1, "failed"), (2, "delivered")]);
}

/// Asserts how the deliveries of event 1, which is damaged, and of event 2 are listed.
pub(super) async fn assert_damaged_delivery_is_marked(
    store: &Shared,
    account: AccountId,
    id: WebhookId,
) {
    let all = DeliveryQuery { status: None, before: None, limit: 1_000 };
    let all = store.deliveries(account, id, all).await.unwrap().unwrap();
    let [second, first] = &all[..] else { panic!("{all:?}") };
    assert_eq!((second.seq, second.kind), (2, Some(EventType::Paused)));
    assert_eq!((first.seq, first.kind), (1, None));
    assert_eq!(first.failure.as_deref(), Some("the stored event is damaged"));
}

#[tokio::test]
async fn an_event_damaged_before_it_is_queued_fails_its_delivery_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path).unwrap();
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    let id = create(&store, new(account, "one")).await;
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    damage(&path, "UPDATE event SET type = 'template.creatfd' WHERE seq = 1");
    assert!(lease(&store, webhook, 10).await.is_none(), "the first one ends without a lease");
    assert_eq!(deliver_all(&store, webhook, 10).await, [2]);
    assert_damaged_delivery_is_marked(&store, account, webhook).await;
}

#[tokio::test]
async fn the_list_of_deliveries_marks_an_event_that_was_damaged_after_its_delivery() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path).unwrap();
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    let id = create(&store, new(account, "one")).await;
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    assert_eq!(deliver_all(&store, webhook, 10).await, [1, 2]);
    damage(&path, "UPDATE event SET type = 'template.creatfd' WHERE seq = 1");
    assert_damaged_delivery_is_marked(&store, account, webhook).await;
}

#[tokio::test]
async fn messages_whose_statuses_are_not_due_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path).unwrap();
    assert_later_messages_are_not_read(&store, async |statement: &str| damage(&path, statement))
        .await;
}
