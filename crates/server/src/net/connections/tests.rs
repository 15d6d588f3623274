//! Which connection is closed when another client connects.

use super::*;
use crate::net::activity::CloseRequest;

/// What a connection does, and since how many milliseconds.
enum Doing {
    Idle(u64),
    Header(u64),
    Body(u64),
    Response(u64),
    Nothing(u64),
    Request,
}
use Doing::{Body, Header, Idle, Nothing, Request, Response};

/// A full table.
async fn full(doing: &[Doing]) -> (Arc<OpenConnections>, Vec<OpenConnection>) {
    let connections = OpenConnections::new(doing.len(), Duration::from_millis(1));
    let mut open = Vec::new();
    for _ in doing {
        let connection = connections.admit().await;
        connection.activity.enter(Phase::Processing);
        open.push(connection);
    }
    // Back from the longest one.
    for millis in (0..=10_000).rev() {
        for (at, connection) in open.iter_mut().enumerate() {
            match doing[at] {
                Idle(since) if since == millis => connection.activity.enter(Phase::Idle),
                Header(since) if since == millis => {
                    connection.activity.enter(Phase::Idle);
                    connection.activity.record_read(1, true);
                }
                Body(since) if since == millis => connection.activity.wait_for_body(),
                Response(since) if since == millis => {
                    connection.activity.begin_response();
                    connection.activity.record_write(None);
                }
                Nothing(since) if since == millis => {
                    let activity = Arc::new(ConnectionActivity::new(Phase::New));
                    connections.table().open.insert(connection.id, Arc::clone(&activity));
                    connection.activity = activity;
                }
                _ => {}
            }
        }
        if millis > 0 {
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    }
    (connections, open)
}

/// Closes the connections that are evicted, in this order, as new ones arrive.
async fn evicted(
    connections: &Arc<OpenConnections>,
    mut open: Vec<OpenConnection>,
    count: usize,
) -> Vec<u64> {
    let (mut order, mut admitted) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let close = async {
            let waits = open.iter().map(|it| Box::pin(it.activity.close_requested()));
            let index = first_of(waits.collect()).await;
            order.push(open.remove(index).id);
        };
        let (new, ()) = tokio::join!(connections.admit(), close);
        new.activity.enter(Phase::Processing);
        admitted.push(new);
    }
    order
}

/// The index of the first future that completes.
async fn first_of<F: Future<Output = CloseRequest> + Unpin>(mut futures: Vec<F>) -> usize {
    std::future::poll_fn(|context| {
        let mut all = futures.iter_mut();
        match all.position(|it| std::pin::Pin::new(it).poll(context).is_ready()) {
            Some(index) => std::task::Poll::Ready(index),
            None => std::task::Poll::Pending,
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn the_connection_that_has_been_idle_longest_makes_room() {
    let doing = [Idle(2_000), Request, Idle(5_000), Idle(2_000), Idle(1_000)];
    let (connections, open) = full(&doing).await;
    assert_eq!(evicted(&connections, open, 4).await, [2, 0, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn incomplete_headers_make_room_before_connections_that_are_used_often() {
    let doing = [Idle(900), Header(150), Request, Idle(250), Nothing(200), Idle(1_500)];
    let (connections, open) = full(&doing).await;
    assert_eq!(evicted(&connections, open, 5).await, [5, 4, 1, 0, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_go_on_makes_room_before_connections_that_are_used() {
    let doing = [Body(900), Idle(260), Body(240), Header(110), Idle(1_000), Body(300)];
    let (connections, open) = full(&doing).await;
    assert_eq!(evicted(&connections, open, 5).await, [4, 3, 0, 5, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_read_makes_room_before_connections_that_are_used() {
    let doing = [Response(900), Idle(260), Response(240), Body(300), Idle(100)];
    let (connections, open) = full(&doing).await;
    assert_eq!(evicted(&connections, open, 3).await, [0, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_new_client_waits_for_no_responses_that_are_not_read_again_and_again() {
    let (connections, open) = full(&[Response(0), Response(10), Idle(0), Request]).await;
    let used = async {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        loop {
            often.tick().await;
            open[2].activity.enter(Phase::Processing);
            open[2].activity.enter(Phase::Idle);
        }
    };
    let waits = open.iter().map(|it| Box::pin(it.activity.close_requested()));
    let began = Instant::now();
    let evicted = tokio::select! {
        _ = connections.admit() => unreachable!("all connections stay open"),
        () = used => unreachable!("it is used for ever"),
        evicted = first_of(waits.collect()) => evicted,
    };
    assert_eq!(evicted, 1);
    assert!(began.elapsed() < 2 * MIN_IDLE, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn clients_of_connections_that_are_always_used_let_each_new_one_in_at_once() {
    let (connections, open) = full(&[Idle(0), Idle(0), Idle(0)]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for connection in open {
        // Until it is closed, it has a request every 5 ms, and its client comes back at once.
        let connections = Arc::clone(&connections);
        tasks.spawn(async move {
            let mut connection = connection;
            loop {
                let used = async {
                    let mut often = tokio::time::interval(Duration::from_millis(5));
                    loop {
                        connection.activity.enter(Phase::Processing);
                        connection.activity.enter(Phase::Idle);
                        often.tick().await;
                    }
                };
                tokio::select! {
                    () = used => {}
                    _ = connection.activity.close_requested() => {}
                }
                drop(connection);
                connection = connections.admit().await;
            }
        });
    }
    let mut slowest = [Duration::ZERO; 2];
    for number in 0..40 {
        let began = Instant::now();
        drop(connections.admit().await);
        let slowest = &mut slowest[usize::from(number > 0)];
        *slowest = began.elapsed().max(*slowest);
    }
    assert!(slowest[0] < 2 * MIN_IDLE, "{slowest:?}");
    assert!(slowest[1] < MIN_IDLE / 5, "{slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_busy_again_is_not_evicted() {
    let (connections, open) = full(&[Idle(9_000), Idle(5_000), Idle(2_000)]).await;
    connections.evict(MIN_IDLE);
    assert_eq!(connections.table().candidates.len(), 2, "one scan serves many evictions");
    open[0].activity.enter(Phase::Processing);
    open[1].activity.enter(Phase::Processing);
    assert_eq!(evicted(&connections, open, 1).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_request_may_be_on_the_way_is_not_evicted() {
    let (connections, mut open) = full(&[Request, Idle(200), Header(50), Nothing(50)]).await;
    let mut waiting = Box::pin(connections.admit());
    assert!(timeout(Duration::from_millis(40), waiting.as_mut()).await.is_err());
    for connection in &open {
        let closes = timeout(Duration::ZERO, connection.activity.close_requested()).await;
        assert!(closes.is_err());
    }
    // One that ends makes room.
    drop(open.remove(0));
    waiting.await;
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_a_bounded_time_for_connections_that_are_always_used() {
    let (connections, open) = full(&[Request, Idle(0), Idle(1)]).await;
    let used = async {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        loop {
            often.tick().await;
            for connection in &open[1..] {
                connection.activity.enter(Phase::Processing);
                connection.activity.enter(Phase::Idle);
            }
        }
    };
    let waits = open[1..].iter().map(|it| Box::pin(it.activity.close_requested()));
    let evicted = async {
        let began = Instant::now();
        tokio::select! {
            _ = connections.admit() => unreachable!("all connections stay open"),
            () = used => unreachable!("they are used for ever"),
            _ = first_of(waits.collect()) => began.elapsed(),
        }
    };
    assert!(evicted.await < 2 * MIN_IDLE);
}

/// What the client of a connection does again and again, with so many milliseconds between.
#[derive(Clone, Copy)]
enum Again {
    /// Completes its header, and begins the next one.
    Header(u64),
    /// Completes its body of a few bytes, and begins the next request.
    Body(u64),
    /// Reads so many bytes of a response.
    Response(usize, u64),
    /// Has a request that is answered at once.
    Request(u64),
}

impl Again {
    async fn run(self, activity: &ConnectionActivity) {
        let (Self::Header(pause)
        | Self::Body(pause)
        | Self::Response(_, pause)
        | Self::Request(pause)) = self;
        activity.enter(Phase::Idle);
        if let Self::Response(..) = self {
            activity.begin_request();
            activity.begin_response();
        }
        let respond = |has_partial_header| {
            activity.begin_response();
            activity.record_write(Some(200));
            activity.sending().end_body();
            activity.record_read(100, has_partial_header);
            activity.record_flush();
        };
        loop {
            match self {
                Self::Header(_) => {
                    activity.record_read(1, false);
                    activity.begin_request();
                    respond(true);
                }
                Self::Body(_) => {
                    activity.end_wait_for_body();
                    respond(false);
                    activity.begin_request();
                    activity.wait_for_body();
                }
                Self::Response(bytes, _) => {
                    activity.record_write(Some(bytes));
                    activity.record_write(None);
                }
                Self::Request(_) => {
                    activity.begin_request();
                    respond(false);
                }
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

/// Which of the connections with these clients are closed for new ones, in order, and how long each of
/// these waits. The clients have gone on for two seconds before the first one.
async fn evicted_beside(clients: &[Again], count: usize) -> Vec<(u64, Duration)> {
    let connections = OpenConnections::new(clients.len(), Duration::from_millis(5));
    let mut tasks = tokio::task::JoinSet::new();
    for client in clients {
        let (client, connection) = (*client, connections.admit().await);
        tasks.spawn(async move {
            tokio::select! {
                () = client.run(&connection.activity) => unreachable!("it goes on for ever"),
                _ = connection.activity.close_requested() => connection.id,
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mut evicted, mut admitted) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let began = Instant::now();
        let admit = timeout(Duration::from_secs(5), connections.admit());
        let Ok(connection) = admit.await else { break };
        connection.activity.enter(Phase::Processing);
        admitted.push(connection);
        let id = tasks.join_next().await.expect("one is closed").unwrap();
        evicted.push((id, began.elapsed()));
    }
    evicted
}

#[tokio::test(start_paused = true)]
async fn clients_that_go_on_just_in_time_make_room_before_honest_ones() {
    let slow = [Again::Body(240), Again::Header(90), Again::Response(1_024, 240)];
    let honest = [Again::Request(5), Again::Response(4_096, 100)];
    let evicted = evicted_beside(&[slow.as_slice(), honest.as_slice()].concat(), 3).await;
    let mut ids: Vec<u64> = evicted.iter().map(|it| it.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
    assert!(evicted.iter().all(|it| it.1 < 2 * MIN_IDLE), "{evicted:?}");
}

#[tokio::test(start_paused = true)]
async fn clients_that_always_transfer_a_little_do_not_keep_all_connections() {
    let clients = [
        Again::Response(32_768, 20),
        Again::Response(1_024, 60),
        Again::Response(1_024, 55),
        Again::Response(32_768, 10),
    ];
    let evicted = evicted_beside(&clients, 4).await;
    let mut ids: Vec<u64> = evicted.iter().map(|it| it.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2], "others go on");
    assert!(evicted.iter().all(|it| it.1 < 2 * MIN_IDLE), "{evicted:?}");
}

#[tokio::test(start_paused = true)]
async fn one_connection_closes_for_a_new_one_however_long_it_takes() {
    let (connections, open) = full(&[Idle(5_000), Idle(4_000), Idle(3_000)]).await;
    let mut admit = Box::pin(connections.admit());
    assert!(timeout(Duration::from_millis(200), admit.as_mut()).await.is_err());
    let mut asked = Vec::new();
    for connection in &open {
        let close = timeout(Duration::ZERO, connection.activity.close_requested()).await;
        asked.extend(close.is_ok().then_some(connection.id));
    }
    assert_eq!(asked, [0]);
}
