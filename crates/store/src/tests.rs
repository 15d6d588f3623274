//! What bodies may rely on, on each engine.

use std::sync::{Arc, Mutex};
#[cfg(feature = "postgres-suite")]
use std::time::Duration;

use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::V1,
    template::{Review, Template, lifecycle::State},
};
use jiff::Timestamp;

use crate::{
    Actor, Author, CreateAccountOutcome, CreateOutcome, NewAccount, NewTemplate, Store, StoreError,
    encoding::LookupKeys,
    engine::{Dialect, Tx, values},
    events::{self, created_event},
    sqlite::{SqliteOptions, SqliteStore},
    stored_row::StoredRow as _,
    template_rows::{self, created},
};

fn noon() -> Timestamp {
    Timestamp::from_millisecond(1_790_000_000_000).unwrap()
}

fn template(account: AccountId, name: &str) -> NewTemplate {
    let document = format!(
        r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
        "components":[{{"type":"BODY","text":"Hello"}}]}}"#
    );
    let document = Document::parse(document.as_bytes()).unwrap();
    let template = Template::read(&document, &V1).unwrap();
    NewTemplate {
        account,
        phone: None,
        unique_key: (V1.unique_key)(account, name, template.language()),
        translation_group: None,
        template,
        review: Review::Auto,
        actor: Actor::Operator,
        trace: None,
        idempotency: None,
        at: noon(),
    }
}

async fn account(store: &Store) -> AccountId {
    let new = NewAccount {
        id: None,
        name: "a".to_owned(),
        rulebook: "v1",
        review: Review::Auto,
        emulator: None,
        limits: None,
        phones: Vec::new(),
        credentials: Vec::new(),
        only_if_first: false,
        by: Author::operator(noon()),
    };
    match store.create_account(new).await.unwrap() {
        CreateAccountOutcome::Created(id, _) => id,
        other => panic!("{other:?}"),
    }
}

async fn id_of(store: &Store, new: NewTemplate) -> TemplateId {
    match store.create_template(new).await.unwrap() {
        CreateOutcome::Created(created) => created.id,
        other => panic!("{other:?}"),
    }
}

/// Creates a template with everything that belongs to it.
async fn insert(tx: &mut Tx<'_>, new: &NewTemplate) -> Result<TemplateId, StoreError> {
    tx.lock_credentials().await?;
    assert!(tx.lock(new.account).await?);
    let state = State::initial(new.review);
    let id = template_rows::insert(tx, new, &LookupKeys::of(new), &state).await?.unwrap();
    events::append(tx, &created_event(new, &created(new, id, &state)))?;
    tx.credentials_changed().await?;
    Ok(id)
}

async fn insert_and_refuse(tx: &mut Tx<'_>, new: &NewTemplate) -> Result<TemplateId, StoreError> {
    let id = insert(tx, new).await?;
    Ok(tx.refuse(id))
}

async fn a_refusal_undoes_what_its_body_wrote(store: &Store) {
    let account = account(store).await;
    let before = store.account(account).await.unwrap().unwrap().usage.template_bytes;
    let epoch = store.credential_epoch().await.unwrap();
    let refused = store
        .write("refused", template(account, "refused"), |new, tx| {
            Box::pin(insert_and_refuse(tx, new))
        })
        .await
        .unwrap();
    assert_eq!(store.template(account, refused).await.unwrap(), None);
    assert_eq!(store.newest_event(account).await.unwrap(), 0);
    assert_eq!(store.credential_epoch().await.unwrap(), epoch);
    let account_after = store.account(account).await.unwrap().unwrap();
    assert_eq!(account_after.usage.template_bytes, before);
    id_of(store, template(account, "refused")).await;
    assert_eq!(store.newest_event(account).await.unwrap(), 1);
}

async fn a_refusal_has_no_effect_on_the_writes_beside_it(store: &Store) {
    let account = account(store).await;
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    let writes = names.iter().enumerate().map(|(number, name)| async move {
        let new = template(account, name);
        if number % 2 == 0 {
            let refused =
                store.write("refused", new, |new, tx| Box::pin(insert_and_refuse(tx, new)));
            refused.await.unwrap();
            None
        } else {
            Some(id_of(store, new).await)
        }
    });
    let created: Vec<_> =
        futures_util::future::join_all(writes).await.into_iter().flatten().collect();
    assert_eq!(store.newest_event(account).await.unwrap(), 20);
    for id in created {
        assert!(store.template(account, id).await.unwrap().is_some());
    }
    for name in names.iter().step_by(2) {
        id_of(store, template(account, name)).await;
    }
}

/// What a body does with `$n` out of order, lists and widths.
async fn parameters_are_bound_by_number_and_fit_their_columns(store: &Store) {
    let account = account(store).await;
    let found = store
        .write("parameters", account, |account, tx| Box::pin(echo(tx, *account)))
        .await
        .unwrap();
    assert_eq!(found, [true, false, true]);
}

async fn echo(tx: &mut Tx<'_>, account: AccountId) -> Result<[bool; 3], StoreError> {
    let swapped = "SELECT name FROM account WHERE name = $2 AND id = $1";
    let by_number = tx.query_one(swapped, &values![account, "a"], |row| row.value("name")).await?;
    let (one, other) = (tx.dialect().is_any("name", "$1"), tx.dialect().is_any("id", "$1"));
    let names: Vec<&str> = vec!["\"quoted\"", "none"];
    let by_text = tx.exists(&format!("SELECT 1 FROM account WHERE {one}"), &values![names]).await?;
    let ids = vec![-1, i64::try_from(account.get()).unwrap()];
    let by_id = tx.exists(&format!("SELECT 1 FROM account WHERE {other}"), &values![ids]).await?;
    Ok([by_number == Some("a".to_owned()), by_text, by_id])
}

async fn a_lock_lasts_until_the_transaction_ends(store: &Store) {
    let account = account(store).await;
    let is_held = store
        .write("locks", account, |account, tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                let credentials = holds_lock_of(tx, "credential_epoch").await?;
                Ok(credentials && tx.lock(*account).await? && holds_lock_of(tx, "account").await?)
            })
        })
        .await;
    assert!(is_held.unwrap());
}

/// Whether the transaction holds a lock of the rows of a table. SQLite has one transaction at a time.
async fn holds_lock_of(tx: &mut Tx<'_>, table: &str) -> Result<bool, StoreError> {
    let held = "SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowShareLock' AND \
                relation = (SELECT oid FROM pg_class WHERE relname = $1 AND relkind = 'r')";
    Ok(tx.dialect() == Dialect::Sqlite || tx.exists(held, &values![table]).await?)
}

async fn a_body_that_fails_changes_nothing_and_is_run_again_only_if_that_may_help(store: &Store) {
    let account = account(store).await;
    let runs = Arc::new(Mutex::new(0));
    let input = (template(account, "failed"), Arc::clone(&runs));
    let failed = store
        .write("failed", input, |(new, runs), tx| {
            Box::pin(async move {
                *runs.lock().unwrap() += 1;
                insert(tx, new).await?;
                tx.execute("INSERT INTO nowhere VALUES ($1)", &values![1_i64]).await
            })
        })
        .await;
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    assert_eq!(*runs.lock().unwrap(), 1);
    assert_eq!(store.newest_event(account).await.unwrap(), 0);
    id_of(store, template(account, "failed")).await;
}

macro_rules! on_each_engine {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (store, _dir) = super::on_sqlite();
                    super::$case(&store).await;
                }
            )+
        }

        #[cfg(feature = "postgres-suite")]
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(&super::on_postgres().await).await;
                }
            )+
        }
    };
}

on_each_engine!(
    a_refusal_undoes_what_its_body_wrote,
    a_refusal_has_no_effect_on_the_writes_beside_it,
    parameters_are_bound_by_number_and_fit_their_columns,
    a_lock_lasts_until_the_transaction_ends,
    a_body_that_fails_changes_nothing_and_is_run_again_only_if_that_may_help,
);

fn on_sqlite() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default());
    let store = Store::from(store.unwrap());
    assert_eq!(store.dialect(), Dialect::Sqlite);
    (store, dir)
}

#[cfg(feature = "postgres-suite")]
async fn on_postgres() -> Store {
    use crate::postgres::{PostgresOptions, PostgresStore, test_database};
    // On a busy machine, connections take long to open.
    let address = format!("{}&connect_timeout=5", test_database::create().await);
    let acquire_timeout = Duration::from_secs(30);
    let options = PostgresOptions { acquire_timeout, ..PostgresOptions::default() };
    PostgresStore::open(&address.parse().unwrap(), &options).await.unwrap().into()
}
