//! Cases about faults.

use std::sync::Arc;

use galley_domain::emulator::faults::{Call, FaultEffect, MAX_FAULTS};
use galley_store::CreateFaultOutcome;
use galley_test_macros::on_both_databases;

use super::{
    emulator::{emulator, fault},
    fixture::{Shared, noon},
};

const TWICE: &str = r#"{"call":"create","name":"a*","kind":"close_before","times":2}"#;
const ONCE: &str = r#"{"call":"create","kind":"truncate","times":1}"#;

#[on_both_databases]
async fn faults_strike_in_the_order_of_their_creation_until_they_are_spent(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    for (document, number) in [(TWICE, 1), (ONCE, 2)] {
        let created = store.create_fault(mine, fault(document), noon(5)).await.unwrap();
        let CreateFaultOutcome::Created(created) = created else { panic!("{created:?}") };
        assert_eq!((created.number, created.counted.matched), (number, 0));
        assert_eq!(created.created_at, noon(5));
        assert_eq!(store.faults(mine).await.unwrap().last(), Some(&*created));
    }
    let decide = |call, name| async move { store.decide_fault(mine, call, name).await.unwrap() };
    assert_eq!(decide(Call::Edit, Some("a")).await, None);
    assert_eq!(store.decide_fault(other, Call::Create, Some("a")).await.unwrap(), None);
    assert_eq!(decide(Call::Create, Some("a1")).await, Some(FaultEffect::CloseBefore));
    assert_eq!(decide(Call::Create, Some("b1")).await, Some(FaultEffect::Truncate));
    assert_eq!(decide(Call::Create, Some("b2")).await, None);
    assert_eq!(decide(Call::Create, Some("a2")).await, Some(FaultEffect::CloseBefore));
    assert_eq!(decide(Call::Create, Some("a3")).await, None);
    let matched: Vec<u64> =
        store.faults(mine).await.unwrap().iter().map(|it| it.counted.matched).collect();
    assert_eq!(matched, [2, 1], "faults that are spent are still listed");
}

#[on_both_databases]
async fn concurrent_calls_are_struck_as_often_as_a_fault_says(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let times = r#"{"call":"send","kind":"truncate","times":7}"#;
    store.create_fault(mine, fault(times), noon(0)).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.decide_fault(mine, Call::Send, None).await.unwrap() })
        })
        .collect();
    let mut struck = 0;
    for task in tasks {
        struck += usize::from(task.await.unwrap().is_some());
    }
    assert_eq!(struck, 7);
}

#[on_both_databases]
async fn an_account_has_a_maximum_number_of_faults_and_deletes_them(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    for _ in 0..MAX_FAULTS {
        let created = store.create_fault(mine, fault(ONCE), noon(0)).await.unwrap();
        assert!(matches!(created, CreateFaultOutcome::Created(_)), "{created:?}");
    }
    let create = || async { store.create_fault(mine, fault(ONCE), noon(0)).await.unwrap() };
    assert_eq!(create().await, CreateFaultOutcome::TooMany);
    store.create_fault(other, fault(ONCE), noon(0)).await.unwrap();
    let last = MAX_FAULTS as u64;
    assert_eq!(store.delete_faults(mine, Some(last)).await.unwrap(), 1);
    assert_eq!(store.delete_faults(mine, Some(last)).await.unwrap(), 0);
    assert_eq!(store.delete_faults(mine, Some(u64::MAX)).await.unwrap(), 0);
    let CreateFaultOutcome::Created(created) = create().await else { panic!("there is room") };
    assert_eq!(created.number, last + 1, "numbers are not used again");
    assert_eq!(store.delete_faults(mine, None).await.unwrap(), MAX_FAULTS);
    assert_eq!(store.faults(mine).await.unwrap(), []);
    assert_eq!(store.faults(other).await.unwrap().len(), 1);
    assert_eq!(store.decide_fault(mine, Call::Create, Some("a")).await.unwrap(), None);
}

#[on_both_databases]
async fn a_new_fault_replaces_the_oldest_spent_one_if_there_is_no_room(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let create =
        async |document: &str| store.create_fault(mine, fault(document), noon(0)).await.unwrap();
    let lasting = r#"{"call":"send","kind":"truncate","share":1}"#;
    for document in [lasting, ONCE, ONCE] {
        create(document).await;
    }
    for _ in 0..2 {
        let struck = store.decide_fault(mine, Call::Create, None).await.unwrap();
        assert_eq!(struck, Some(FaultEffect::Truncate));
    }
    let numbers = async || {
        let faults = store.faults(mine).await.unwrap();
        faults.iter().map(|it| it.number).collect::<Vec<u64>>()
    };
    let last = MAX_FAULTS as u64;
    for number in 4..=last {
        assert!(matches!(create(lasting).await, CreateFaultOutcome::Created(_)), "{number}");
    }
    assert_eq!(
        numbers().await,
        (1..=last).collect::<Vec<_>>(),
        "spent ones stay while there is room"
    );
    for number in [last + 1, last + 2] {
        let CreateFaultOutcome::Created(created) = create(lasting).await else {
            panic!("{number}")
        };
        assert_eq!((created.number, numbers().await.len()), (number, MAX_FAULTS));
    }
    assert_eq!(create(lasting).await, CreateFaultOutcome::TooMany, "none is spent");
    assert_eq!(numbers().await, [1].into_iter().chain(4..=last + 2).collect::<Vec<_>>());
}
