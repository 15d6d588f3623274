//! The checks of `galley doctor` count what is inconsistent.

use galley_domain::rulebook::Category;

#[cfg(feature = "postgres-suite")]
use super::fixture::{client, fresh_database, open_postgres_with};
use super::{
    fixture::{Shared, account, change, create, done, new, new_sqlite, translation},
    sqlite_only::body_edit,
    uploads::{append, begin, png, upload},
};

/// Makes a store inconsistent, in every way that both engines check.
const DAMAGE: &str = "UPDATE event SET template_id = 99 WHERE seq = 1; \
     UPDATE account SET last_seq = last_seq - 1, media_bytes = media_bytes + 1; \
     DELETE FROM former_version; \
     UPDATE template SET category = 'MARKETING' WHERE language = 'de_DE'; \
     UPDATE upload SET received = received - 1";

/// What the checks find then: the subject, and what `galley doctor` prints.
const FOUND: [(&str, &str); 7] = [
    ("references", "1 broken"),
    ("event numbers", "1 account behind"),
    ("versions", "1 template incomplete"),
    ("categories", "1 name with several categories"),
    ("media", "1 file incomplete"),
    ("media quota", "1 account miscounted"),
    ("stored bytes", "1 account miscounted: correct them with --count-bytes"),
];

/// A store with something to check.
async fn fill(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "edited")).await;
    done(store.edit_template(change(account, id), body_edit(1)).await.unwrap());
    for language in ["de_DE", "en_US"] {
        create(store, translation(account, "greeting", language, Category::Utility)).await;
    }
    begin(store, upload(account, "file", 5_000)).await;
    append(store, account, "file", 0, &png(5_000)).await;
}

/// The findings of the checks of both engines that failed.
async fn found(store: &Shared) -> Vec<(&'static str, String)> {
    let findings = store.check_integrity().await.unwrap();
    let templates = findings.iter().find(|it| it.subject == "templates").unwrap();
    assert_eq!((&*templates.detail, templates.ok), ("3", true));
    let failed = findings.into_iter().filter(|it| !it.ok);
    let shared = failed.filter(|it| FOUND.iter().any(|(subject, _)| *subject == it.subject));
    shared.map(|it| (it.subject, it.detail)).collect()
}

fn expected() -> Vec<(&'static str, String)> {
    FOUND.into_iter().map(|(subject, detail)| (subject, detail.to_owned())).collect()
}

#[tokio::test]
async fn the_doctor_counts_what_is_inconsistent_in_sqlite() {
    let (store, dir) = new_sqlite();
    fill(&store).await;
    assert_eq!(found(&store).await, []);
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    file.execute_batch(DAMAGE).unwrap();
    assert_eq!(found(&store).await, expected());
}

#[cfg(feature = "postgres-suite")]
#[tokio::test]
async fn the_doctor_counts_what_is_inconsistent_in_postgres() {
    let address = fresh_database().await;
    let store = open_postgres_with(&address, 4).await;
    fill(&store).await;
    assert_eq!(found(&store).await, []);
    client(&address).await.batch_execute(DAMAGE).await.unwrap();
    assert_eq!(found(&store).await, expected());
}
