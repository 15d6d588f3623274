//! Tests of the slots: limits, turns and cancellation. Futures are polled by hand, so no test
//! depends on a scheduler.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::*;

type Wait<'a> = Pin<Box<dyn Future<Output = FairSlot<char>> + 'a>>;

impl<K: Copy + Eq + Hash> FairSlots<K> {
    /// How many callers wait, of all keys.
    fn waiting(&self) -> usize {
        self.state().keys.values().map(|it| it.waiting.len()).sum()
    }
}

/// Starts to wait for a slot that is not free.
fn wait(slots: &FairSlots<char>, key: char) -> Wait<'_> {
    let mut waiting: Wait<'_> = Box::pin(slots.acquire(key));
    assert!(poll(&mut waiting).is_none(), "no slot is free for {key}");
    waiting
}

fn poll(waiting: &mut Wait<'_>) -> Option<FairSlot<char>> {
    match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

#[test]
fn a_key_that_waits_for_its_own_limit_delays_no_other_key() {
    let slots = FairSlots::new(3, KeyShare::AtMost(2));
    let first = slots.try_acquire('a').unwrap();
    let _second = slots.try_acquire('a').unwrap();
    let mut third = wait(&slots, 'a');
    let other = slots.try_acquire('b').expect("the third slot is free");
    drop(other);
    assert!(poll(&mut third).is_none(), "a free slot is not for a key at its limit");
    drop(first);
    assert!(poll(&mut third).is_some());
}

#[test]
fn keys_that_wait_take_turns() {
    let slots = FairSlots::new(1, KeyShare::AtMost(1));
    let mut in_use = slots.try_acquire('x').unwrap();
    let mut queue: Vec<(char, Wait<'_>)> =
        ['a', 'a', 'a', 'b', 'c', 'b'].map(|key| (key, wait(&slots, key))).into();
    let mut order = String::new();
    while !queue.is_empty() {
        drop(in_use);
        let (index, slot) = queue
            .iter_mut()
            .enumerate()
            .find_map(|(index, (_, waiting))| Some((index, poll(waiting)?)))
            .expect("the next caller has the slot");
        order.push(queue.remove(index).0);
        in_use = slot;
    }
    assert_eq!(order, "abcaba");
    drop(in_use);
    assert_eq!((slots.in_use(), slots.waiting()), (0, 0));
}

#[test]
fn a_caller_that_leaves_frees_its_place_and_its_slot() {
    let slots = FairSlots::new(1, KeyShare::AtMost(1));
    let in_use = slots.try_acquire('a').unwrap();
    let (leaves, granted, mut stays) = (wait(&slots, 'b'), wait(&slots, 'b'), wait(&slots, 'c'));
    drop(leaves);
    assert_eq!(slots.waiting(), 2);
    drop(in_use);
    assert_eq!((slots.in_use(), slots.waiting()), (1, 1), "the second caller has the slot");
    drop(granted);
    let last = poll(&mut stays).expect("it left without looking");
    drop((stays, last));
    assert_eq!(slots.in_use(), 0);
    assert!(slots.state().keys.is_empty() && slots.state().turns.is_empty(), "nothing is left");
}

#[test]
fn a_key_whose_callers_all_left_loses_its_turn() {
    let slots = FairSlots::new(1, KeyShare::AtMost(1));
    let in_use = slots.try_acquire('a').unwrap();
    let (leaves, mut stays) = (wait(&slots, 'b'), wait(&slots, 'c'));
    drop(leaves);
    drop(in_use);
    assert!(poll(&mut stays).is_some());
}

#[test]
fn a_key_at_its_limit_does_not_get_its_own_slot_again_before_others() {
    let slots = FairSlots::new(1, KeyShare::AtMost(1));
    let in_use = slots.try_acquire('a').unwrap();
    let (mut same, mut other) = (wait(&slots, 'a'), wait(&slots, 'b'));
    drop(in_use);
    assert!(poll(&mut same).is_none());
    assert!(poll(&mut other).is_some());
}

/// All slots that the key may take now.
fn take_all(slots: &FairSlots<char>, key: char) -> Vec<FairSlot<char>> {
    std::iter::from_fn(|| slots.try_acquire(key)).collect()
}

#[test]
fn a_key_alone_gets_a_third_of_adaptive_slots_and_less_beside_others() {
    let slots = FairSlots::new(512, KeyShare::HalfOfFree);
    let mut first = take_all(&slots, 'a');
    let (second, third) = (take_all(&slots, 'b'), take_all(&slots, 'c'));
    assert_eq!([first.len(), second.len(), third.len()], [171, 114, 76]);
    first.truncate(100);
    let more = take_all(&slots, 'c');
    assert_eq!(third.len() + more.len(), 100, "shares become equal as slots are freed");
    drop((first, second, third, more));
    assert_eq!(slots.in_use(), 0);
    assert!(slots.state().keys.is_empty());
}

#[test]
fn a_key_that_uses_no_adaptive_slot_gets_one_while_eight_others_take_all_they_may() {
    let slots = FairSlots::new(512, KeyShare::HalfOfFree);
    let _held: Vec<_> = ('a'..='h').map(|key| take_all(&slots, key)).collect();
    assert!(slots.try_acquire('i').is_some());
}

#[test]
fn a_freed_adaptive_slot_serves_every_caller_that_may_have_one_now() {
    let slots = FairSlots::new(4, KeyShare::HalfOfFree);
    let (first, _second) = (slots.try_acquire('a').unwrap(), slots.try_acquire('b').unwrap());
    // Each key uses half as many slots as are free.
    let (mut next, mut same) = (wait(&slots, 'b'), wait(&slots, 'a'));
    drop(first);
    let _next = poll(&mut next).expect("three slots were free");
    let _same = poll(&mut same).expect("two are still free, and the key uses none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_slot_is_lost_when_many_callers_come_and_leave() {
    let slots = FairSlots::new(3, KeyShare::AtMost(2));
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..400_u64 {
        let slots = slots.clone();
        tasks.spawn(async move {
            let acquire = slots.acquire(index % 5);
            if index.is_multiple_of(3) {
                // Polled once, then dropped.
                let _ = futures_util::future::poll_immediate(acquire).await;
            } else {
                let _slot = acquire.await;
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!((slots.in_use(), slots.waiting()), (0, 0));
}
