//! Cases about replays of events.

use galley_domain::id::WebhookId;
use galley_store::{NewTemplate, Replay, ReplayOutcome};

use super::{
    deliveries::{deliver_all, two_templates},
    fixture::{Shared, account, create, new, noon},
    webhooks::{endpoint, register},
};
use galley_test_macros::on_both_databases;

const NONE: [u64; 0] = [];

#[on_both_databases]
async fn a_replay_delivers_one_event_or_all_since_a_time(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    assert_eq!(deliver_all(store, webhook, 2_000).await, [1, 2, 3, 4]);
    let replay = |what| store.replay(account, webhook, what, noon(3_000));
    assert_eq!(replay(Replay::One(2)).await.unwrap(), ReplayOutcome::Queued(1));
    assert_eq!(deliver_all(store, webhook, 3_000).await, [2]);
    assert_eq!(replay(Replay::One(5)).await.unwrap(), ReplayOutcome::NoEvent);
    assert_eq!(replay(Replay::One(0)).await.unwrap(), ReplayOutcome::NoEvent);
    // The reviews happened one second after the creations.
    assert_eq!(replay(Replay::Since(noon(1_000))).await.unwrap(), ReplayOutcome::Queued(2));
    assert_eq!(deliver_all(store, webhook, 3_000).await, [3, 4]);
    assert_eq!(replay(Replay::Since(noon(0))).await.unwrap(), ReplayOutcome::Queued(4));
    let later = replay(Replay::Since(noon(1_000))).await.unwrap();
    assert_eq!(later, ReplayOutcome::Queued(4), "the cursor is not moved ahead");
    assert_eq!(deliver_all(store, webhook, 3_000).await, [1, 2, 3, 4]);
    assert_eq!(replay(Replay::Since(noon(9_000))).await.unwrap(), ReplayOutcome::Queued(0));
    assert_eq!(deliver_all(store, webhook, 3_000).await, NONE);
    let unknown_id = WebhookId::new(999).unwrap();
    let unknown = store.replay(account, unknown_id, Replay::One(1), noon(0)).await.unwrap();
    assert_eq!(unknown, ReplayOutcome::NoWebhook);
    store.delete_expired_events(noon(1_000)).await.unwrap();
    assert_eq!(replay(Replay::One(0)).await.unwrap(), ReplayOutcome::NoEvent);
    assert_eq!(replay(Replay::One(1)).await.unwrap(), ReplayOutcome::Expired(3));
    assert_eq!(replay(Replay::Since(noon(0))).await.unwrap(), ReplayOutcome::Queued(2));
}

#[on_both_databases]
async fn a_replay_since_a_time_tolerates_clock_skew(store: &Shared) {
    const MINUTE: i64 = 60_000;
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await.id;
    // One event every half hour, some up to forty minutes ahead of later ones.
    let times: Vec<i64> =
        (0..60).map(|index| (30 * index + 10 * (7 * index % 5)) * MINUTE).collect();
    for (index, at) in times.iter().enumerate() {
        let template = new(account, &format!("t{index}"));
        create(store, NewTemplate { at: noon(*at), ..template }).await;
    }
    deliver_all(store, webhook, 60 * 60 * MINUTE).await;
    let mut starts: Vec<i64> = times.iter().flat_map(|at| [*at, at + 1]).collect();
    starts.sort_unstable();
    // Newest first, because a replay only moves the cursor back.
    for since in starts.into_iter().rev() {
        let first = times.iter().position(|at| *at >= since).unwrap_or(times.len());
        let replay = store.replay(account, webhook, Replay::Since(noon(since)), noon(0));
        let expected = ReplayOutcome::Queued((times.len() - first) as u64);
        assert_eq!(replay.await.unwrap(), expected, "since {since}");
    }
}
