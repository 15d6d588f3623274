//! A person who pauses a connection stops the work on it that runs.

use std::time::Duration;

use galley_domain::upstream::OperationState;
use galley_server::{
    Clock as _,
    upstream::{SyncError, sync_connection},
};
use galley_store::{Author, ConnectionChange, testing::Fault};

use super::connected::Connected;
use crate::sandbox::emulator::order;

/// More than one page of 100.
const TEMPLATES: usize = 120;

/// How a person stops the work.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Pause,
    Disable,
}

impl Connected {
    /// Stops the work, or lets it go on.
    async fn stop(&self, stop: Stop, is_stopped: bool) {
        let by = Author::operator(self.service.clock.now());
        let store = &self.service.store;
        match stop {
            Stop::Pause if is_stopped => self.pause().await,
            Stop::Pause => {
                let resumed = ConnectionChange::Resumed;
                assert!(store.change_connection(self.account, resumed, by).await.unwrap());
            }
            Stop::Disable => {
                store.set_account_disabled(self.account, is_stopped, by).await.unwrap();
            }
        }
    }

    /// Makes a step in which a person stops the work while this write of the worker is being made.
    async fn step_and_stop(&self, write: &'static str, stop: Stop) {
        self.store_faults.set(write, Fault::Held);
        let stopping = async {
            self.store_faults.held().await;
            self.stop(stop, true).await;
            self.store_faults.release();
        };
        let (stepped, ()) = tokio::join!(sync_connection(&self.context, self.account), stopping);
        let ended = stepped.unwrap_err();
        assert!(matches!(ended, SyncError::Paused), "{write} {stop:?}: {ended:?}");
        let connection = self.service.store.connection(self.account).await.unwrap().unwrap();
        assert_eq!((connection.leased_until, connection.degraded), (None, None));
        assert!(!self.has_work().await);
    }
}

/// A connected account whose provider has more than one page of templates.
async fn with_pages() -> Connected {
    let connected = Connected::start().await;
    for number in 0..TEMPLATES {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    // The creates used up the calls of the hour at the provider.
    connected.emulator().clock.advance(Duration::from_hours(2));
    connected
}

#[tokio::test]
async fn the_work_ends_after_the_operation_during_which_the_connection_is_paused() {
    for stop in [Stop::Pause, Stop::Disable] {
        let connected = Connected::start().await;
        for name in ["order_a", "order_b", "order_c"] {
            connected.create(&order(name)).await;
        }
        connected.step_and_stop("record_call", stop).await;
        assert_eq!(connected.take_calls(), 1, "{stop:?}");
        let [done, queued] = [OperationState::Done, OperationState::Queued];
        assert_eq!(connected.states().await, [done, queued, queued], "{stop:?}");
        connected.stop(stop, false).await;
        connected.step_until_settled().await;
        assert_eq!(connected.states().await, [done; 3]);
        assert_eq!(connected.repeated_creates(), 0);
    }
}

#[tokio::test]
async fn a_sweep_ends_after_the_page_during_which_the_connection_is_paused_and_continues_later() {
    let connected = with_pages().await;
    connected.step_and_stop("record_page", Stop::Pause).await;
    assert_eq!(connected.take_calls(), 1);
    assert_eq!(connected.mirrored().await.len(), 100);
    connected.stop(Stop::Pause, false).await;
    connected.step().await;
    assert_eq!(connected.mirrored().await.len(), TEMPLATES);
    assert_eq!(connected.take_calls(), 2, "the other page, and a question about the token");
}

#[tokio::test]
async fn no_further_template_is_read_after_a_pause() {
    let connected = Connected::start().await;
    for name in ["order_a_pending_10m", "order_b_pending_10m"] {
        connected.emulator().create_named(name).await;
    }
    connected.step().await;
    connected.emulator().advance("600s").await;
    connected.service.clock.advance(Duration::from_mins(15));
    connected.take_calls();
    // The page shows other statuses, so that both are read.
    connected.step_and_stop("record_read", Stop::Pause).await;
    assert_eq!(connected.take_calls(), 2, "the page and one template");
}

#[tokio::test]
async fn a_step_that_begins_after_the_pause_makes_no_call() {
    let connected = Connected::start().await;
    connected.create(&order("order_a")).await;
    connected.pause().await;
    connected.step().await;
    assert_eq!(connected.take_calls(), 0);
}

#[tokio::test]
async fn work_that_a_person_has_started_goes_on() {
    let connected = with_pages().await;
    let session = connected.session().await;
    connected.pause().await;
    session.sweep(true, false, &mut |_| {}).await.unwrap();
    session.end().await.unwrap();
    assert_eq!(connected.mirrored().await.len(), TEMPLATES);
}
