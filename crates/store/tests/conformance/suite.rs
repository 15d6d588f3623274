//! The macro that makes tests of cases.

/// Turns each case into a test with a fresh store from `$fresh`.
macro_rules! suite {
    ($fresh:path: $($area:ident { $($case:ident),+ $(,)? })+) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $fresh().await;
            crate::conformance::$area::$case(&store).await;
        }
    )+)+};
}
