//! What a connection is doing, and when its client misses a deadline.

use super::*;

/// Polls `polls` times and returns the result of the last poll. `before_poll` runs before each
/// poll.
fn polled(
    polls: u32,
    phase: Phase,
    before_poll: impl Fn(&ConnectionActivity),
) -> Option<CloseReason> {
    let limits = Limits {
        header: Duration::from_secs(1),
        idle: Duration::from_secs(3),
        ..Limits::default()
    };
    let activity = ConnectionActivity::new(phase);
    (0..polls).fold(None, |_, _| {
        before_poll(&activity);
        activity.poll_deadlines(&limits)
    })
}

#[test]
fn headers_have_a_shorter_deadline_than_idle_connections() {
    assert_eq!(polled(11, Phase::Header, |_| {}), None);
    assert_eq!(polled(13, Phase::Header, |_| {}), Some(CloseReason::HeaderTimeout));
    assert_eq!(polled(30, Phase::Idle, |_| {}), None);
    assert_eq!(polled(33, Phase::Idle, |_| {}), Some(CloseReason::IdleTimeout));
}

#[test]
fn the_first_byte_has_the_deadline_of_a_header() {
    assert_eq!(polled(11, Phase::New, |_| {}), None);
    assert_eq!(polled(13, Phase::New, |_| {}), Some(CloseReason::HeaderTimeout));
}

#[test]
fn sending_a_header_byte_by_byte_does_not_extend_its_deadline() {
    let overdue = polled(13, Phase::Header, |activity| activity.record_read(1, true));
    assert_eq!(overdue, Some(CloseReason::HeaderTimeout));
}

/// Polls a connection 1,000 times while its response is sent.
fn polled_while_sending(
    before_poll: impl Fn(&ConnectionActivity),
) -> (ConnectionActivity, Option<CloseReason>) {
    let activity = ConnectionActivity::new(Phase::Processing);
    activity.begin_response();
    let missed = (0..1_000).find_map(|_| {
        before_poll(&activity);
        activity.poll_deadlines(&Limits::default())
    });
    (activity, missed)
}

#[test]
fn a_client_has_to_take_its_response() {
    let (_, missed) = polled_while_sending(|activity| activity.record_write(None));
    assert_eq!(missed, Some(CloseReason::SendTimeout));
    let (_, missed) = polled_while_sending(|activity| {
        activity.record_write(Some(64 * 1_024));
        activity.record_write(None);
    });
    assert_eq!(missed, None);
}

#[test]
fn a_response_that_waits_for_the_store_is_neither_idle_nor_slow() {
    let (activity, missed) = polled_while_sending(|activity| {
        activity.record_flush();
    });
    assert_eq!(missed, None);
    assert!(activity.client_wait().is_none(), "it is not evicted");
    activity.sending().end_body();
    activity.record_flush();
    assert!(
        activity.client_wait().is_some_and(|it| it.awaited == Awaited::Request),
        "the response was sent"
    );
}

#[test]
fn a_pipelined_header_has_its_deadline_after_the_response() {
    let (activity, missed) = polled_while_sending(|activity| activity.record_read(1, true));
    assert_eq!(missed, None);
    activity.sending().end_body();
    activity.record_flush();
    let missed = (0..13).find_map(|_| activity.poll_deadlines(&Limits::default()));
    assert_eq!(missed, Some(CloseReason::HeaderTimeout));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_a_body_make_up_for_the_time_in_which_they_are_awaited() {
    let activity = ConnectionActivity::new(Phase::Processing);
    let waited = async |bytes: usize| {
        activity.record_read(bytes, false);
        activity.end_wait_for_body();
        assert!(activity.client_wait().is_none(), "the handler has what it read");
        activity.wait_for_body();
        tokio::time::advance(Duration::from_millis(200)).await;
        let wait = activity.client_wait().filter(|it| it.awaited == Awaited::Body);
        wait.map(|it| it.time.as_millis())
    };
    assert_eq!(waited(0).await, Some(200));
    assert_eq!(waited(2_048).await, Some(200 - 125 + 200));
    assert_eq!(waited(2_048).await, Some(275 - 125 + 200));
    assert_eq!(waited(9_000).await, Some(200), "they are no credit");
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_response_to_be_read_add_up_over_requests() {
    let activity = ConnectionActivity::new(Phase::Processing);
    activity.begin_response();
    let waited = async |written: usize| {
        activity.record_write(Some(written));
        activity.record_write(None);
        tokio::time::advance(Duration::from_millis(200)).await;
        let wait = activity.client_wait().filter(|it| it.awaited == Awaited::Response);
        wait.map(|it| it.time.as_millis())
    };
    assert_eq!(waited(0).await, Some(200));
    assert_eq!(waited(2_048).await, Some(200 - 125 + 200));
    // A further request does not begin another wait.
    activity.begin_request();
    assert!(activity.client_wait().is_none());
    activity.begin_response();
    assert_eq!(waited(2_048).await, Some(275 - 125 + 200));
    // The client has read all. What the server does then is no wait for it.
    activity.record_write(Some(2_048));
    assert!(activity.client_wait().is_none());
    tokio::time::advance(Duration::from_millis(100)).await;
    assert_eq!(waited(0).await, Some(350 - 125 - 100 + 200));
    // Waits of long ago do not count.
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(waited(16_384).await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn a_response_to_an_incomplete_body_is_not_one_that_the_client_does_not_read() {
    let activity = ConnectionActivity::new(Phase::Processing);
    activity.wait_for_body();
    tokio::time::advance(Duration::from_secs(5)).await;
    activity.begin_response();
    assert!(activity.client_wait().is_none());
}

#[test]
fn a_running_request_has_no_connection_deadline() {
    assert_eq!(polled(1_000, Phase::Processing, |_| {}), None);
}

#[test]
fn requests_are_refused_from_the_invalid_one_on() {
    let activity = ConnectionActivity::new(Phase::New);
    assert_eq!([activity.begin_request(), activity.begin_request()], [0, 1]);
    assert_eq!(activity.framing_error(1), None);
    let error = FramingError::BareLineFeed;
    activity.record_invalid(InvalidRequest { number: 1, error });
    assert_eq!(
        [0, 1, 2].map(|number| activity.framing_error(number)),
        [None, Some(error), Some(error)]
    );
}
