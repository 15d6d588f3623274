//! What only stores on PostgreSQL are asked: several of them share one database, which others
//! change, too.

use std::sync::Arc;

use galley_store::Indexing;
use tokio_postgres::Client;

use super::{
    fixture::{account, client, create, fresh_database, new, open_postgres},
    lists::follow,
};

async fn number(client: &Client, statement: &str) -> i64 {
    client.query_one(statement, &[]).await.unwrap().get(0)
}

/// Waits until some statement of the database waits for a lock.
async fn somebody_waits(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                   wait_event_type = 'Lock'";
    while number(client, waiting).await == 0 {
        tokio::task::yield_now().await;
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
        async move { store.follow_for_search().await.unwrap() }
    });
    somebody_waits(&watcher).await;
    open.commit().await.unwrap();
    assert_eq!(step.await.unwrap(), Indexing { seen: 0, more: false });
    let walked = "SELECT count(*) FROM followed WHERE walked IS NOT NULL";
    assert_eq!(number(&watcher, walked).await, 0);
    // What was forgotten before it was followed is walked nevertheless.
    let lost = "UPDATE followed SET seq = 0; DELETE FROM event";
    watcher.batch_execute(lost).await.unwrap();
    follow(&store).await;
    assert_eq!(number(&watcher, "SELECT count(*) FROM found_by").await, 3);
}
