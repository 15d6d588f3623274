//! Attributes for the tests of the other crates.

use proc_macro::{TokenStream, TokenTree};

/// Makes tests of a case of the store's conformance suite, each with a fresh store: one on SQLite, and
/// with the feature `postgres-suite` one on PostgreSQL.
#[proc_macro_attribute]
pub fn on_both_databases(_: TokenStream, case: TokenStream) -> TokenStream {
    let is_fn = |it: &TokenTree| matches!(it, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = case.clone().into_iter().skip_while(|it| !is_fn(it)).nth(1);
    let name = name.expect("a case is a function");
    let test = |database: &str| {
        format!(
            "#[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]
            async fn {database}() {{
                let (store, _guard) = crate::conformance::fixture::fresh_{database}().await;
                super::{name}(&store).await;
            }}"
        )
    };
    let (sqlite, postgres) = (test("sqlite"), test("postgres"));
    let tests =
        format!("mod {name} {{ {sqlite} #[cfg(feature = \"postgres-suite\")] {postgres} }}");
    let tests: TokenStream = tests.parse().expect("the tests are Rust");
    case.into_iter().chain(tests).collect()
}
