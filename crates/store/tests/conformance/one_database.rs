//! Tests of PostgreSQL stores only: several processes share one database.

use std::{error::Error as _, sync::Arc};

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    Author, DeliveryQuery, IndexProgress, IndexStep, ListQuery, MAX_SEARCH_COUNT, NameFilter,
    Replay, RetentionCursor, SchemaPolicy, StoredSecret, TranslationGroup, WebhookChange,
    WebhookKey,
    postgres::{PostgresOptions, PostgresStore},
};
use tokio_postgres::Client;

use super::{
    deliveries::{deliver, deliver_all, lease},
    emulator_statuses::{
        assert_later_messages_are_not_read, assert_two_handles_send_each_status_once_in_order,
    },
    fixture::{
        Shared, account, change, client, create, done, events, fresh_database, new, noon,
        open_postgres, translation, with_key,
    },
    lists::{all, read_all, search, update_index},
    uploads::{append, begin, upload},
    webhooks::{endpoint, register},
};

/// Reads a number directly from the database.
pub(crate) async fn query_number(client: &Client, statement: &str) -> i64 {
    client.query_one(statement, &[]).await.unwrap().get(0)
}

/// Waits until a statement in the database waits for a lock.
pub(crate) async fn wait_for_blocked_statement(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                   wait_event_type = 'Lock'";
    while query_number(client, waiting).await == 0 {
        // Within a transaction the server would keep returning its first snapshot.
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    }
}

#[tokio::test]
async fn an_account_that_another_instance_has_just_indexed_is_not_rescanned() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let account = account(&store, "a").await;
    for index in 0..3 {
        create(&store, new(account, &format!("t{index}"))).await;
    }
    // Another instance has indexed all three and is about to commit.
    let (mut other, observer) = (client(&address).await, client(&address).await);
    let open = other.transaction().await.unwrap();
    let progress = format!("INSERT INTO search_progress VALUES ({account}, 3, NULL)");
    open.batch_execute(&progress).await.unwrap();
    let indexing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.update_search_index().await.unwrap() }
    });
    wait_for_blocked_statement(&observer).await;
    open.commit().await.unwrap();
    assert_eq!(indexing.await.unwrap(), IndexProgress { processed: 0, has_more: false });
    let scans = "SELECT count(*) FROM search_progress WHERE scanned IS NOT NULL";
    assert_eq!(query_number(&observer, scans).await, 0);
    // If events are deleted before they are indexed, all templates are scanned again.
    let delete_events = "UPDATE search_progress SET indexed = 0; DELETE FROM event";
    observer.batch_execute(delete_events).await.unwrap();
    update_index(&store).await;
    assert_eq!(query_number(&observer, "SELECT count(*) FROM search_index").await, 3);
}

#[tokio::test]
async fn a_search_waits_while_another_instance_indexes_its_account() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let account = account(&store, "a").await;
    create(&store, new(account, "first")).await;
    update_index(&store).await;
    create(&store, new(account, "second")).await;
    let mut other = client(&address).await;
    let open = other.transaction().await.unwrap();
    open.batch_execute("SELECT FROM search_progress FOR UPDATE").await.unwrap();
    assert_eq!(store.index_account(account, 2).await.unwrap(), IndexStep::Blocked);
    open.batch_execute("UPDATE search_progress SET indexed = 2").await.unwrap();
    open.commit().await.unwrap();
    assert_eq!(store.index_account(account, 2).await.unwrap(), IndexStep::CaughtUp);
}

/// Calls nearly every method of a store.
async fn exercise(store: &Shared, name: &str) {
    let tenant = account(store, name).await;
    let webhook = register(store, endpoint(tenant)).await.id;
    let id = create(store, with_key(tenant, &format!("{name}_one"), 1, 1)).await;
    create(store, translation(tenant, &format!("{name}_two"), "en_US", Category::Utility)).await;
    let edit = Edit::Replace { content: None, category: Some(Category::Marketing) };
    done(store.edit_template(change(tenant, id), edit).await.unwrap());
    let approved = store.review_template(change(tenant, id), Trigger::Approve, None).await.unwrap();
    assert_eq!(done(approved).state.version, 2);
    assert_eq!(store.template(tenant, id).await.unwrap().unwrap().state.version, 2);
    assert_eq!(store.versions(tenant, id, None, 9).await.unwrap().unwrap().len(), 2);
    assert_eq!(store.version(tenant, id, 1).await.unwrap().unwrap().number, 1);
    assert_eq!(store.translations(tenant, &format!("{name}_two")).await.unwrap().len(), 1);
    update_index(store).await;
    let named = NameFilter::TranslationGroup(TranslationGroup::of(tenant, &format!("{name}_two")));
    for listing in [
        ListQuery::new(tenant, 9),
        ListQuery { languages: vec!["en_US".to_owned()], ..ListQuery::new(tenant, 9) },
        ListQuery { name: Some(named), ..ListQuery::new(tenant, 9) },
        search(tenant, name),
    ] {
        let listed = store.list(listing.clone()).await.unwrap().templates.len() as u64;
        assert_eq!(store.count_templates(listing).await.unwrap(), listed);
    }
    assert_eq!(events(store, tenant, 0, 9).await.len(), 5);
    let due = store.webhooks_with_work(noon(2_000)).await.unwrap();
    assert!(due.now.contains(&WebhookKey { account: tenant, id: webhook }), "{due:?}");
    let first = lease(store, webhook, 2_000).await.unwrap();
    deliver(store, &first, 2_000).await;
    deliver_all(store, webhook, 2_000).await;
    let all = DeliveryQuery { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(tenant, webhook, all).await.unwrap().unwrap().len(), 5);
    store.replay(tenant, webhook, Replay::Since(noon(0)), noon(3_000)).await.unwrap();
    store
        .change_webhook(tenant, webhook, WebhookChange::default(), Author::operator(noon(3_000)))
        .await
        .unwrap();
    let secret = StoredSecret(vec![4]);
    store
        .rotate_webhook(tenant, webhook, secret, noon(9_000), true, Author::operator(noon(3_000)))
        .await
        .unwrap();
    assert_eq!(store.webhooks(tenant).await.unwrap().len(), 1);
    begin(store, upload(tenant, &format!("{name}_file"), 4)).await;
    append(store, tenant, &format!("{name}_file"), 0, b"file").await;
    assert!(store.accounts().await.unwrap().iter().any(|it| it.name == name));
    store.delete_expired_records(RetentionCursor::default(), noon(0)).await.unwrap();
    store.delete_expired_events(noon(-1)).await.unwrap();
    done(store.delete_template(change(tenant, id)).await.unwrap());
}

#[tokio::test]
async fn columns_added_by_a_newer_release_do_not_break_a_running_store() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    // Often enough that every connection has prepared all its statements.
    for round in 0..8 {
        exercise(&store, &format!("before{round}")).await;
    }
    let add = "DO $$ DECLARE found regclass; BEGIN FOR found IN SELECT oid::regclass FROM pg_class \
               WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP \
               EXECUTE 'ALTER TABLE ' || found || ' ADD COLUMN newer TEXT'; \
               END LOOP; END $$";
    client(&address).await.batch_execute(add).await.unwrap();
    // Columns that another table of a join has already.
    let add = "DO $$ DECLARE found name; BEGIN FOR found IN SELECT attname FROM pg_attribute \
               WHERE attrelid = 'webhook'::regclass AND attnum > 0 EXCEPT SELECT attname \
               FROM pg_attribute WHERE attrelid = 'delivery'::regclass LOOP \
               EXECUTE 'ALTER TABLE delivery ADD COLUMN ' || quote_ident(found) || ' TEXT'; \
               END LOOP; FOR found IN SELECT attname FROM pg_attribute \
               WHERE attrelid = 'account'::regclass AND attnum > 0 EXCEPT SELECT attname \
               FROM pg_attribute WHERE attrelid = 'webhook'::regclass LOOP \
               EXECUTE 'ALTER TABLE webhook ADD COLUMN ' || quote_ident(found) || ' TEXT'; \
               END LOOP; END $$";
    client(&address).await.batch_execute(add).await.unwrap();
    for round in 0..8 {
        exercise(&store, &format!("after{round}")).await;
    }
}

/// Inserts 43,000 templates older than the existing one. All of them contain the word `common`, the
/// oldest 20,500 `old`, one in a hundred `medium`, and one in ten thousand `rare`.
async fn insert_templates(client: &Client, account: AccountId) {
    let insert = format!(
        "INSERT INTO template (id, account_id, version, live_version, revision, created_at, \
         updated_at, actor, allow_category_change, unique_key, name, language, category, status, content) \
         SELECT id - i, account_id, version, live_version, revision, created_at, updated_at, actor, \
         allow_category_change, decode(md5(i::text), 'hex'), 't' || i, language, category, status, \
         content FROM template, generate_series(1, 43000) AS i WHERE account_id = {account}; \
         INSERT INTO search_index SELECT template_id - i, array_to_tsvector(ARRAY[owner || 'common'] || \
         CASE WHEN i > 22500 THEN ARRAY[owner || 'old'] ELSE '{{}}' END || \
         CASE WHEN i % 100 = 0 THEN ARRAY[owner || 'medium'] ELSE '{{}}' END || \
         CASE WHEN i % 10000 = 0 THEN ARRAY[owner || 'rare'] ELSE '{{}}' END) \
         FROM (SELECT template_id, left((tsvector_to_array(words))[1], 11) AS owner FROM search_index) \
         AS seed, generate_series(1, 43000) AS i"
    );
    client.batch_execute(&insert).await.unwrap();
}

#[tokio::test]
async fn search_results_are_ordered_for_common_and_rare_words() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let account = account(&store, "a").await;
    let seed = create(&store, new(account, "seed")).await.get();
    update_index(&store).await;
    insert_templates(&client(&address).await, account).await;
    let found = async |word: &str, limit| {
        let listing = ListQuery { limit, ..search(account, word) };
        let page = store.list(listing).await.unwrap();
        let ids: Vec<u64> = page.templates.iter().map(|it| seed - it.id.get()).collect();
        (ids, page.has_next)
    };
    assert_eq!(found("common", 50).await, ((1..=50).collect(), true));
    assert_eq!(found("old", 50).await, ((22_501..=22_550).collect(), true));
    assert_eq!(found("common old", 2).await, (vec![22_501, 22_502], true));
    assert_eq!(found("rare", 50).await, (vec![10_000, 20_000, 30_000, 40_000], false));
    let medium = |to: u64| (1..=to).map(|it| it * 100).collect::<Vec<u64>>();
    assert_eq!(found("medium", 15).await, (medium(15), true), "found among the newest templates");
    assert_eq!(found("medium", 100).await, (medium(100), true), "needs somewhat older templates");
    assert_eq!(found("medium", 429).await, (medium(429), true), "needs nearly all templates");
    assert_eq!(found("medium", 430).await, (medium(430), false));
    assert_eq!(found("nowhere", 50).await, (Vec::new(), false));
    let all = read_all(&store, search(account, "medium")).await;
    assert_eq!(all.iter().map(|it| seed - it.get()).collect::<Vec<_>>(), medium(430));
    let before = ListQuery { before: Some(all[99]), limit: 50, ..search(account, "medium") };
    let page = store.list(before).await.unwrap();
    assert_eq!(page.templates.iter().map(|it| it.id).collect::<Vec<_>>(), all[49..99]);
    for (word, count) in
        [("common", MAX_SEARCH_COUNT), ("old", MAX_SEARCH_COUNT), ("medium", 430), ("rare", 4)]
    {
        let counted = store.count_templates(search(account, word)).await.unwrap();
        assert_eq!(counted, count, "{word}");
    }
}

#[tokio::test]
async fn a_locked_endpoint_does_not_block_retention_of_other_accounts() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let (locked, other) = (account(&store, "a").await, account(&store, "b").await);
    for account in [locked, other] {
        create(&store, new(account, &format!("t{account}"))).await;
        register(&store, endpoint(account)).await;
    }
    let (mut client, observer) = (client(&address).await, client(&address).await);
    let open = client.transaction().await.unwrap();
    let lock = format!("SELECT 1 FROM webhook WHERE account_id = {locked} FOR UPDATE");
    open.batch_execute(&lock).await.unwrap();
    assert_eq!(
        store.delete_expired_events(noon(1_000)).await.unwrap(),
        1,
        "those of the other account"
    );
    assert!(events(&store, other, 1, 9).await.is_empty());
    assert_eq!(events(&store, locked, 0, 9).await.len(), 1);
    // Only the locked endpoint is left, so retention waits for it.
    let retention = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.delete_expired_events(noon(1_000)).await.unwrap() }
    });
    wait_for_blocked_statement(&observer).await;
    create(&store, new(locked, "meanwhile")).await;
    open.commit().await.unwrap();
    assert_eq!(retention.await.unwrap(), 1);
    assert_eq!(events(&store, locked, 1, 9).await.len(), 1, "the new event stays");
}

/// The cause of the error when the store is opened, if it fails.
async fn open_error(address: &str, schema_policy: SchemaPolicy) -> Option<String> {
    let options = PostgresOptions { schema_policy, ..PostgresOptions::default() };
    let opened = PostgresStore::open(&address.parse().unwrap(), &options).await;
    opened.err().map(|error| error.source().map_or_else(String::new, ToString::to_string))
}

/// The database name in an address.
pub(super) fn database_name(address: &str) -> &str {
    let (_, name) = address.rsplit_once('/').unwrap();
    name.split('?').next().unwrap()
}

#[tokio::test]
async fn a_refused_database_is_not_changed() {
    let address = fresh_database().await;
    let client = client(&address).await;
    let error = open_error(&address, SchemaPolicy::Refuse).await.unwrap();
    assert!(error.contains("galley serve"), "{error}");
    assert_eq!(open_error(&address, SchemaPolicy::Keep).await, None);
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(query_number(&client, tables).await, 0);
    let ascii = format!("{}_ascii", database_name(&address));
    let create = format!("CREATE DATABASE {ascii} ENCODING 'SQL_ASCII' TEMPLATE template0");
    client.batch_execute(&create).await.unwrap();
    let error =
        open_error(&address.replace(database_name(&address), &ascii), SchemaPolicy::Migrate)
            .await
            .unwrap();
    assert!(error.contains("SQL_ASCII") && error.contains("UTF8"), "{error}");
}

#[tokio::test]
async fn a_role_that_cannot_create_tables_can_use_existing_ones() {
    let address = fresh_database().await;
    assert_eq!(open_error(&address, SchemaPolicy::Migrate).await, None);
    let role = format!("{}_role", database_name(&address));
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
async fn a_store_connects_through_a_unix_socket() {
    let address = fresh_database().await;
    let settings = "SELECT current_setting('unix_socket_directories'), current_setting('port')";
    let row = client(&address).await.query_one(settings, &[]).await.unwrap();
    let (directory, port): (String, String) = (row.get(0), row.get(1));
    let directory = directory.split(',').next().unwrap().trim().replace('/', "%2F");
    let name = database_name(&address);
    for mode in ["disable", "prefer"] {
        let socket = format!("postgres://galley@{directory}:{port}/{name}?sslmode={mode}");
        open_postgres(&socket).await.ping().await.unwrap();
    }
    let directory = directory.replace("%2F", "/");
    let socket = format!("postgres://galley@/{name}?host={directory}&port={port}");
    open_postgres(&socket).await.ping().await.unwrap();
    // PostgreSQL does not support TLS on a Unix socket.
    let with_tls = format!("{socket}&sslmode=require");
    assert!(open_error(&with_tls, SchemaPolicy::Keep).await.is_some());
}

#[tokio::test]
async fn a_search_in_a_large_account_reads_only_the_matching_templates() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres(&address).await, client(&address).await);
    let large = account(&store, "large").await;
    let first = create(&store, new(large, "one")).await;
    update_index(&store).await;
    // Six thousand copies of it, every other one in a different account.
    let template = "account_id, version, revision, created_at, updated_at, actor, \
                    allow_category_change, name, language, category, status, content";
    client
        .batch_execute(&format!(
            "INSERT INTO template (id, unique_key, {template}) SELECT id + n, decode(md5(n::text), 'hex'), \
             {template} FROM template, generate_series(1, 6000) AS n WHERE name = 'one'; \
             INSERT INTO search_index SELECT template_id + n, words FROM search_index, \
             generate_series(1, 6000) AS n; \
             UPDATE template SET account_id = account_id + id WHERE (id - {first}) % 2 = 1; ANALYZE"
        ))
        .await
        .unwrap();
    let tuples_read = "SELECT coalesce(sum(idx_tup_read) FILTER (WHERE indexrelname = 'template_in_bucket'), \
                0)::int8, sum(idx_tup_read) FILTER (WHERE indexrelname = 'template_pkey')::int8 \
                FROM pg_stat_user_indexes";
    let before: i64 = query_number(&client, tuples_read).await;
    let found = store.list(search(large, "one")).await.unwrap().templates.len();
    assert_eq!(found, all(large).limit);
    assert_eq!(store.count_templates(search(large, "one")).await.unwrap(), 3_001);
    drop(store);
    // A connection reports its statistics when it closes.
    loop {
        let row = client.query_one(tuples_read, &[]).await.unwrap();
        let (by_account, by_id): (i64, i64) = (row.get(0), row.get(1));
        if by_account - before + by_id >= 3_001 {
            assert!(by_account - before < 1_000, "{by_account}");
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_send_each_status_once_and_in_order() {
    let address = fresh_database().await;
    let stores = [open_postgres(&address).await, open_postgres(&address).await];
    assert_two_handles_send_each_status_once_in_order(stores).await;
}

#[tokio::test]
async fn messages_whose_statuses_are_not_due_are_not_read() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres(&address).await, client(&address).await);
    let damage = async |statement: &str| client.batch_execute(statement).await.unwrap();
    assert_later_messages_are_not_read(&store, damage).await;
}
