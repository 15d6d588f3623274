//! Tests of the order of statuses that need no database.

use galley_domain::emulator::messages::MessageStatus;
use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn message(number: u64, sent_at: i64, failure: Option<u32>) -> SentMessage {
    SentMessage {
        number,
        sent_at: at(sent_at),
        failure,
        phone: "1".to_owned(),
        to: "2".to_owned(),
        category: Category::Utility,
        callback_data: None,
    }
}

fn pending(cursor: [u64; 3], messages: &[SentMessage], limit: usize) -> PendingStatuses {
    let beyond = |number: u64| {
        messages.iter().filter(|it| it.number > number).take(limit).cloned().collect()
    };
    PendingStatuses {
        account: AccountId::new(1).unwrap(),
        cursor: cursor.into(),
        last_message: messages.last().map_or(0, |it| it.number),
        messages: cursor.map(beyond),
        limit,
    }
}

/// Like [`pending`], as a store reads it at a time of the account's clock: of each position the due
/// messages and one more.
fn pending_at(
    now: Timestamp,
    cursor: [u64; 3],
    messages: &[SentMessage],
    limit: usize,
) -> PendingStatuses {
    let mut pending = pending(cursor, messages, limit);
    for (messages, latest) in pending.messages.iter_mut().zip(latest_due_sends(now)) {
        messages.truncate(messages.partition_point(|it| it.sent_at <= latest) + 1);
    }
    pending
}

/// The statuses as text, each with the cursor after it.
fn lines(next: &NextStatuses) -> Vec<String> {
    let line = |it: &DueStatus| {
        let (number, status, cursor) = (it.message.number, it.status.as_str(), it.cursor.numbers());
        format!("{}s {number} {status} {cursor:?}", it.at.as_second())
    };
    next.statuses.iter().map(line).collect()
}

#[test]
fn statuses_come_in_the_order_of_their_times() {
    let messages = [message(1, 0, None), message(2, 1, Some(131_026)), message(3, 1, None)];
    let next = pending([0; 3], &messages, 100).next(at(3));
    assert_eq!(
        lines(&next),
        [
            "0s 1 sent [1, 0, 0]",
            "1s 1 delivered [1, 1, 0]",
            "1s 2 sent [2, 1, 0]",
            "1s 3 sent [3, 1, 0]",
            "2s 2 failed [3, 2, 0]",
            "2s 3 delivered [3, 3, 0]",
            "3s 1 read [3, 3, 1]",
        ]
    );
    assert_eq!(next.statuses[4].code, Some(131_026));
    let rest = pending([3, 3, 1], &messages, 100).next(at(4));
    assert_eq!(lines(&rest), ["4s 3 read [3, 3, 3]"], "the cursor passes the failed message");
}

#[test]
fn nothing_is_due_before_the_next_time() {
    let messages = [message(1, 0, None)];
    let next = pending([1, 0, 0], &messages, 100).next(at(0));
    assert_eq!((lines(&next), next.next_at), (Vec::new(), Some(at(1))));
    let next = pending([1, 1, 1], &messages, 100).next(at(9));
    assert_eq!((lines(&next), next.next_at), (Vec::new(), None));
}

#[test]
fn the_cursor_passes_failed_messages_behind_the_last_status() {
    let messages = [message(1, 0, None), message(2, 0, Some(131_026))];
    let next = pending([2, 2, 0], &messages, 100).next(at(9));
    assert_eq!(lines(&next), ["3s 1 read [2, 2, 2]"]);
    let next = pending([2, 2, 1], &messages, 100).next(at(9));
    assert_eq!((lines(&next), next.cursor.numbers()), (Vec::new(), [2, 2, 2]));
    let many = [1, 2, 3].map(|number| message(number, 0, Some(131_026)));
    let next = pending([3, 3, 0], &many, 2).next(at(9));
    assert_eq!((lines(&next), next.cursor.numbers()), (Vec::new(), [3, 3, 2]));
    assert_eq!(next.next_at, Some(at(9)), "more is due at once");
}

#[test]
fn the_cursor_jumps_over_deleted_messages() {
    let messages = [message(7, 0, None)];
    let next = pending([2, 2, 2], &messages, 100).next(at(0));
    assert_eq!(lines(&next), ["0s 7 sent [7, 2, 2]"]);
    let gone = PendingStatuses { last_message: 7, ..pending([5, 4, 2], &[], 100) };
    let next = gone.next(at(0));
    assert_eq!((lines(&next), next.cursor.numbers()), (Vec::new(), [7, 7, 7]));
}

#[test]
fn an_endpoint_has_work_if_a_status_is_due_and_no_other_worker_has_it() {
    let endpoint = |clock_at: i64, cursor: Option<[u64; 3]>| EndpointStatuses {
        clock: Clock { at: at(clock_at), since: None },
        last_message: 1,
        cursor: cursor.map(StatusCursor::from),
        first: cursor.unwrap_or_default().map(|number| (number < 1).then_some(at(0))),
        leased_until: None,
        resting_until: None,
    };
    assert!(endpoint(0, None).has_work(at(0)));
    assert!(endpoint(0, Some([0, 0, 0])).has_work(at(0)));
    assert!(!endpoint(0, Some([1, 0, 0])).has_work(at(0)));
    assert!(endpoint(1, Some([1, 0, 0])).has_work(at(0)));
    assert!(!endpoint(9, Some([1, 1, 1])).has_work(at(0)));
    let deleted = EndpointStatuses { first: [None; 3], ..endpoint(0, Some([1, 1, 0])) };
    assert!(deleted.has_work(at(0)), "the cursor has to move");
    let until = Some(at(1));
    let leased = EndpointStatuses { leased_until: until, ..endpoint(0, None) };
    assert_eq!([0, 1].map(|second| leased.has_work(at(second))), [false, true]);
    let resting = EndpointStatuses { resting_until: until, ..endpoint(0, None) };
    assert_eq!([0, 1].map(|second| resting.has_work(at(second))), [false, true]);
}

#[test]
fn a_status_is_due_some_time_after_the_send() {
    assert_eq!(latest_due_sends(at(10)), [at(10), at(9), at(7)]);
    assert_eq!(latest_due_sends(Timestamp::MIN), [Timestamp::MIN; 3]);
}

proptest! {
    /// Sends all statuses in batches, and compares them with the timelines of the messages.
    #[test]
    fn every_status_is_sent_once_and_after_the_earlier_ones_of_its_message(
        gaps in prop::collection::vec((1_u64..3, 0_i64..3, prop::bool::ANY), 1..30),
        limit in 1_usize..8,
        step in 0_i64..3,
    ) {
        let (mut number, mut time, mut messages) = (0, 0, Vec::new());
        for (skipped, later, fails) in gaps {
            (number, time) = (number + skipped, time + later);
            messages.push(message(number, time, fails.then_some(131_026)));
        }
        let (mut cursor, mut now, mut sent) = ([0; 3], 0, Vec::new());
        while cursor != [number; 3] {
            let next = pending_at(at(now), cursor, &messages, limit).next(at(now));
            // The messages that are not due make no difference.
            let of_all = pending(cursor, &messages, limit).next(at(now));
            prop_assert_eq!(&next.statuses, &of_all.statuses);
            prop_assert_eq!(next.cursor, of_all.cursor);
            prop_assert!(next.statuses.len() <= limit);
            let before = cursor;
            cursor = next.statuses.last().map_or(next.cursor, |it| it.cursor).numbers();
            for it in &next.statuses {
                prop_assert!(it.at <= at(now));
                let [first, second, third] = it.cursor.numbers();
                prop_assert!(first >= second && second >= third, "{:?}", it.cursor);
                sent.push((it.message.number, it.status));
            }
            if cursor == before {
                now += 1 + step;
            }
        }
        for it in &messages {
            let of_message = sent.iter().filter(|(number, _)| *number == it.number);
            let statuses: Vec<MessageStatus> = of_message.map(|(_, status)| *status).collect();
            let expected = timeline(fate(it.failure)).into_iter().map(|it| it.status);
            prop_assert_eq!(statuses, expected.collect::<Vec<_>>());
        }
    }
}
