//! What only stores on PostgreSQL are asked: several of them share one database, which others
//! change, too.

use std::{error::Error as _, sync::Arc};

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    Deliveries, IndexProgress, ListQuery, MAX_SEARCH_COUNT, NameFilter, Replay, RetentionCursor,
    StoredSecret, TranslationGroup, WebhookChange,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::SchemaPolicy,
};
use tokio_postgres::Client;

use super::{
    deliveries::{deliver, deliver_all, take},
    fixture::{
        Shared, account, change, client, create, done, events, fresh_database, member, new, noon,
        open_postgres, with_key,
    },
    lists::{all, follow, searching, walk},
    uploads::{append, begin, upload},
    webhooks::{endpoint, register},
};

pub(crate) async fn number(client: &Client, statement: &str) -> i64 {
    client.query_one(statement, &[]).await.unwrap().get(0)
}

/// Waits until some statement of the database waits for a lock.
pub(crate) async fn somebody_waits(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                   wait_event_type = 'Lock'";
    while number(client, waiting).await == 0 {
        // Within a transaction the server would go on telling what it told first.
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    }
}

#[tokio::test]
async fn an_account_that_another_instance_has_just_followed_is_not_walked_anew() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let account = account(&store, "a").await;
    for index in 0..3 {
        create(&store, new(account, &format!("t{index}"))).await;
    }
    // Another instance is about to have followed all three.
    let (mut other, watcher) = (client(&address).await, client(&address).await);
    let open = other.transaction().await.unwrap();
    let followed = format!("INSERT INTO followed VALUES ({account}, 3)");
    open.batch_execute(&followed).await.unwrap();
    let step = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.update_search_index().await.unwrap() }
    });
    somebody_waits(&watcher).await;
    open.commit().await.unwrap();
    assert_eq!(step.await.unwrap(), IndexProgress { seen: 0, more: false });
    let walked = "SELECT count(*) FROM followed WHERE walked IS NOT NULL";
    assert_eq!(number(&watcher, walked).await, 0);
    // What was forgotten before it was followed is walked nevertheless.
    let lost = "UPDATE followed SET seq = 0; DELETE FROM event";
    watcher.batch_execute(lost).await.unwrap();
    follow(&store).await;
    assert_eq!(number(&watcher, "SELECT count(*) FROM found_by").await, 3);
}

/// Does a bit of everything that a store can do.
async fn tour(store: &Shared, name: &str) {
    let mine = account(store, name).await;
    let webhook = register(store, endpoint(mine)).await.id;
    let id = create(store, with_key(mine, &format!("{name}_one"), 1, 1)).await;
    create(store, member(mine, &format!("{name}_two"), "en_US", Category::Utility)).await;
    let edit = Edit::Replace { content: None, category: Some(Category::Marketing) };
    done(store.edit_template(change(mine, id), edit).await.unwrap());
    let approved = store.review_template(change(mine, id), Trigger::Approve, None).await.unwrap();
    assert_eq!(done(approved).state.version, 2);
    assert_eq!(store.template(mine, id).await.unwrap().unwrap().state.version, 2);
    assert_eq!(store.versions(mine, id, None, 9).await.unwrap().unwrap().len(), 2);
    assert_eq!(store.version(mine, id, 1).await.unwrap().unwrap().number, 1);
    assert_eq!(store.family(mine, &format!("{name}_two")).await.unwrap().len(), 1);
    follow(store).await;
    let named = NameFilter::TranslationGroup(TranslationGroup::of(mine, &format!("{name}_two")));
    for listing in [
        ListQuery::of(mine, 9),
        ListQuery { languages: vec!["en_US".to_owned()], ..ListQuery::of(mine, 9) },
        ListQuery { name: Some(named), ..ListQuery::of(mine, 9) },
        searching(mine, name),
    ] {
        let listed = store.list(listing.clone()).await.unwrap().templates.len() as u64;
        assert_eq!(store.count_templates(listing).await.unwrap(), listed);
    }
    assert_eq!(events(store, mine, 0, 9).await.len(), 5);
    let due = store.due_webhooks(noon(2_000)).await.unwrap();
    assert!(due.now.contains(&webhook), "{due:?}");
    let first = take(store, webhook, 2_000).await.unwrap();
    deliver(store, &first, 2_000).await;
    deliver_all(store, webhook, 2_000).await;
    let all = Deliveries { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(mine, webhook, all).await.unwrap().unwrap().len(), 5);
    store.replay(mine, webhook, Replay::Since(noon(0)), noon(3_000)).await.unwrap();
    store.change_webhook(mine, webhook, WebhookChange::default(), noon(3_000)).await.unwrap();
    let secret = StoredSecret(vec![4]);
    store.rotate_webhook(mine, webhook, secret, noon(9_000), true, noon(3_000)).await.unwrap();
    assert_eq!(store.webhooks(mine).await.unwrap().len(), 1);
    begin(store, upload(mine, &format!("{name}_file"), 4)).await;
    append(store, mine, &format!("{name}_file"), 0, b"file").await;
    assert!(store.accounts().await.unwrap().iter().any(|it| it.name == name));
    store.delete_expired_records(RetentionCursor::default(), noon(0)).await.unwrap();
    store.delete_expired_events(noon(-1)).await.unwrap();
    done(store.delete_template(change(mine, id)).await.unwrap());
}

#[tokio::test]
async fn columns_that_a_newer_release_adds_are_nothing_to_a_running_store() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    // Often enough that every connection has prepared what it will be asked for.
    for round in 0..8 {
        tour(&store, &format!("before{round}")).await;
    }
    let add = "DO $$ DECLARE found regclass; BEGIN FOR found IN SELECT oid::regclass FROM pg_class \
               WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP \
               EXECUTE 'ALTER TABLE ' || found || ' ADD COLUMN newer TEXT'; \
               END LOOP; END $$";
    client(&address).await.batch_execute(add).await.unwrap();
    for round in 0..8 {
        tour(&store, &format!("after{round}")).await;
    }
}

/// So many older templates beside one that is there: all of them have the word `common`, the
/// oldest 20,500 `old`, one of a hundred `medium`, one of ten thousand `rare`.
async fn many(client: &Client, account: AccountId) {
    let insert = format!(
        "INSERT INTO template (id, account_id, version, live_version, revision, created_at, \
         updated_at, actor, allow_category_change, claim, name, language, category, status, content) \
         SELECT id - i, account_id, version, live_version, revision, created_at, updated_at, actor, \
         allow_category_change, decode(md5(i::text), 'hex'), 't' || i, language, category, status, \
         content FROM template, generate_series(1, 43000) AS i WHERE account_id = {account}; \
         INSERT INTO found_by SELECT template_id - i, array_to_tsvector(ARRAY[owner || 'common'] || \
         CASE WHEN i > 22500 THEN ARRAY[owner || 'old'] ELSE '{{}}' END || \
         CASE WHEN i % 100 = 0 THEN ARRAY[owner || 'medium'] ELSE '{{}}' END || \
         CASE WHEN i % 10000 = 0 THEN ARRAY[owner || 'rare'] ELSE '{{}}' END) \
         FROM (SELECT template_id, left((tsvector_to_array(words))[1], 11) AS owner FROM found_by) \
         AS seed, generate_series(1, 43000) AS i"
    );
    client.batch_execute(&insert).await.unwrap();
}

#[tokio::test]
async fn words_are_found_in_order_whether_they_are_common_or_rare_near_or_far() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let account = account(&store, "a").await;
    let seed = create(&store, new(account, "seed")).await.get();
    follow(&store).await;
    many(&client(&address).await, account).await;
    let found = async |word: &str, limit| {
        let listing = ListQuery { limit, ..searching(account, word) };
        let page = store.list(listing).await.unwrap();
        let ids: Vec<u64> = page.templates.iter().map(|it| seed - it.id.get()).collect();
        (ids, page.more)
    };
    assert_eq!(found("common", 50).await, ((1..=50).collect(), true));
    assert_eq!(found("old", 50).await, ((22_501..=22_550).collect(), true));
    assert_eq!(found("common old", 2).await, (vec![22_501, 22_502], true));
    assert_eq!(found("rare", 50).await, (vec![10_000, 20_000, 30_000, 40_000], false));
    let medium = |to: u64| (1..=to).map(|it| it * 100).collect::<Vec<u64>>();
    assert_eq!(found("medium", 15).await, (medium(15), true), "the nearest are enough");
    assert_eq!(found("medium", 100).await, (medium(100), true), "those a bit further off, too");
    assert_eq!(found("medium", 429).await, (medium(429), true), "not even these");
    assert_eq!(found("medium", 430).await, (medium(430), false));
    assert_eq!(found("nowhere", 50).await, (Vec::new(), false));
    let all = walk(&store, searching(account, "medium")).await;
    assert_eq!(all.iter().map(|it| seed - it.get()).collect::<Vec<_>>(), medium(430));
    let before = ListQuery { before: Some(all[99]), limit: 50, ..searching(account, "medium") };
    let page = store.list(before).await.unwrap();
    assert_eq!(page.templates.iter().map(|it| it.id).collect::<Vec<_>>(), all[49..99]);
    for (word, count) in
        [("common", MAX_SEARCH_COUNT), ("old", MAX_SEARCH_COUNT), ("medium", 430), ("rare", 4)]
    {
        let counted = store.count_templates(searching(account, word)).await.unwrap();
        assert_eq!(counted, count, "{word}");
    }
}

#[tokio::test]
async fn an_endpoint_that_somebody_holds_keeps_no_other_accounts_events() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let (busy, other) = (account(&store, "a").await, account(&store, "b").await);
    for account in [busy, other] {
        create(&store, new(account, &format!("t{account}"))).await;
        register(&store, endpoint(account)).await;
    }
    let (mut client, watcher) = (client(&address).await, client(&address).await);
    let open = client.transaction().await.unwrap();
    let hold = format!("SELECT 1 FROM webhook WHERE account_id = {busy} FOR UPDATE");
    open.batch_execute(&hold).await.unwrap();
    assert_eq!(store.delete_expired_events(noon(1_000)).await.unwrap(), 1, "the other's go first");
    assert!(events(&store, other, 1, 9).await.is_empty());
    assert_eq!(events(&store, busy, 0, 9).await.len(), 1);
    // Then there is nothing else to do, and it is waited for.
    let step = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.delete_expired_events(noon(1_000)).await.unwrap() }
    });
    somebody_waits(&watcher).await;
    create(&store, new(busy, "meanwhile")).await;
    open.commit().await.unwrap();
    assert_eq!(step.await.unwrap(), 1);
    assert_eq!(events(&store, busy, 1, 9).await.len(), 1, "that of meanwhile is kept");
}

async fn refusal(address: &str, older_schema: SchemaPolicy) -> Option<String> {
    let options = PostgresOptions { older_schema, ..PostgresOptions::default() };
    let opened = PostgresStore::open(&address.parse().unwrap(), &options).await;
    opened.err().map(|error| error.source().map_or_else(String::new, ToString::to_string))
}

/// The name of the database that an address leads to.
pub(super) fn name_in(address: &str) -> &str {
    let (_, name) = address.rsplit_once('/').unwrap();
    name.split('?').next().unwrap()
}

#[tokio::test]
async fn a_database_that_is_refused_is_left_as_it_was() {
    let address = fresh_database().await;
    let client = client(&address).await;
    let told = refusal(&address, SchemaPolicy::Refused).await.unwrap();
    assert!(told.contains("galley serve"), "{told}");
    assert_eq!(refusal(&address, SchemaPolicy::LeftAlone).await, None);
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(number(&client, tables).await, 0);
    let narrow = format!("{}_narrow", name_in(&address));
    let make = format!("CREATE DATABASE {narrow} ENCODING 'SQL_ASCII' TEMPLATE template0");
    client.batch_execute(&make).await.unwrap();
    let told =
        refusal(&address.replace(name_in(&address), &narrow), SchemaPolicy::Renewed).await.unwrap();
    assert!(told.contains("SQL_ASCII") && told.contains("UTF8"), "{told}");
}

#[tokio::test]
async fn who_may_not_make_tables_can_use_those_that_are_there() {
    let address = fresh_database().await;
    assert_eq!(refusal(&address, SchemaPolicy::Renewed).await, None);
    let role = format!("{}_role", name_in(&address));
    let grant = format!(
        "CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}"
    );
    client(&address).await.batch_execute(&grant).await.unwrap();
    let store = open_postgres(&address.replace("//galley@", &format!("//{role}@"))).await;
    let account = account(&store, "a").await;
    create(&store, new(account, "one")).await;
}

#[tokio::test]
async fn a_database_is_reached_by_its_socket() {
    let address = fresh_database().await;
    let asked = "SELECT current_setting('unix_socket_directories'), current_setting('port')";
    let row = client(&address).await.query_one(asked, &[]).await.unwrap();
    let (directory, port): (String, String) = (row.get(0), row.get(1));
    let directory = directory.split(',').next().unwrap().trim().replace('/', "%2F");
    let name = name_in(&address);
    for mode in ["disable", "prefer"] {
        let socket = format!("postgres://galley@{directory}:{port}/{name}?sslmode={mode}");
        open_postgres(&socket).await.ping().await.unwrap();
    }
    let directory = directory.replace("%2F", "/");
    let socket = format!("postgres://galley@/{name}?host={directory}&port={port}");
    open_postgres(&socket).await.ping().await.unwrap();
    // A server shows no certificate there.
    let secret = format!("{socket}&sslmode=require");
    assert!(refusal(&secret, SchemaPolicy::LeftAlone).await.is_some());
}

#[tokio::test]
async fn of_an_account_that_is_larger_than_most_only_what_was_found_is_read() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres(&address).await, client(&address).await);
    let large = account(&store, "large").await;
    let first = create(&store, new(large, "one")).await;
    follow(&store).await;
    // Six thousand like it, every other in an account of its own.
    let template = "account_id, version, revision, created_at, updated_at, actor, \
                    allow_category_change, name, language, category, status, content";
    client
        .batch_execute(&format!(
            "INSERT INTO template (id, claim, {template}) SELECT id + n, decode(md5(n::text), 'hex'), \
             {template} FROM template, generate_series(1, 6000) AS n WHERE name = 'one'; \
             INSERT INTO found_by SELECT template_id + n, words FROM found_by, \
             generate_series(1, 6000) AS n; \
             UPDATE template SET account_id = account_id + id WHERE (id - {first}) % 2 = 1; ANALYZE"
        ))
        .await
        .unwrap();
    let read = "SELECT coalesce(sum(idx_tup_read) FILTER (WHERE indexrelname = 'template_on_shelf'), \
                0)::int8, sum(idx_tup_read) FILTER (WHERE indexrelname = 'template_pkey')::int8 \
                FROM pg_stat_user_indexes";
    let before: i64 = number(&client, read).await;
    let found = store.list(searching(large, "one")).await.unwrap().templates.len();
    assert_eq!(found, all(large).limit);
    assert_eq!(store.count_templates(searching(large, "one")).await.unwrap(), 3_001);
    drop(store);
    // A connection tells what it has read when it ends.
    loop {
        let row = client.query_one(read, &[]).await.unwrap();
        let (by_account, by_id): (i64, i64) = (row.get(0), row.get(1));
        if by_account - before + by_id >= 3_001 {
            assert!(by_account - before < 1_000, "{by_account}");
            break;
        }
        tokio::task::yield_now().await;
    }
}
