//! Tests of searches in the SQLite store only: how many words a term stands for, and which rows a
//! search with filters reads.

use galley_store::{ListQuery, NewTemplate};

use super::{
    fixture::{account, create, new_sqlite, noon},
    lists::{names, search, template_with, update_index},
};

/// Maximum number of words that a term of a search stands for.
const MAX_WORDS: usize = 512;

#[tokio::test]
async fn a_long_term_stands_for_its_first_words_and_a_short_one_for_all() {
    let (store, _dir) = new_sqlite();
    let account = account(&store, "a").await;
    // Forty words in a template; the last template has the term itself.
    let words = MAX_WORDS + 40;
    for (index, first) in (0..words).step_by(40).enumerate() {
        let body: Vec<String> =
            (first..words.min(first + 40)).map(|word| format!("zzzz{word:03}")).collect();
        let name = format!("t{index:02}");
        create(&store, template_with(account, &name, "en_US", "UTILITY", &body.join(" "))).await;
    }
    create(&store, template_with(account, "term", "en_US", "UTILITY", "zzzz")).await;
    update_index(&store).await;
    // Words 0 to 510 and the term itself: the templates 0 to 12.
    let found = names(&store, search(account, "zzzz")).await;
    assert_eq!((found.len(), &*found[0], &*found[1]), (14, "term", "t12"));
    assert_eq!(names(&store, search(account, "zzz")).await.len(), 15, "all words");
    assert_eq!(names(&store, search(account, "zzzz551")).await, ["t13"]);
    assert_eq!(store.count_templates(search(account, "zzzz")).await.unwrap(), 14);
}

#[tokio::test]
async fn a_search_reads_the_content_only_of_templates_that_match_its_filters() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    for (name, at) in [("old", noon(0)), ("new", noon(1_000))] {
        let new = template_with(account, name, "en_US", "UTILITY", "word");
        create(&store, NewTemplate { at, ..new }).await;
    }
    update_index(&store).await;
    // A row with other content than its checksum cannot be read.
    let other = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    let damage = "UPDATE template SET content = content || ' ' WHERE name = 'old'";
    assert_eq!(other.execute(damage, []).unwrap(), 1);
    assert!(store.list(search(account, "word")).await.is_err(), "the list shows both");
    let newer = ListQuery { updated_from: Some(noon(1)), ..search(account, "word") };
    assert_eq!(names(&store, newer).await, ["new"]);
    let older = ListQuery { updated_before: Some(noon(1)), ..search(account, "word") };
    assert!(store.list(older).await.is_err());
}
