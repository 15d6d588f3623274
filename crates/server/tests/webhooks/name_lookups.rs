//! Name lookups: the name servers and the hosts file of the system, and the slots that accounts share.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::id::AccountId;
use galley_server::delivery::{
    HttpWebhookClient, NameCause, PostOutcome, Resolve, ResolvedTarget, SsrfGuard, SsrfPolicy,
    SystemResolver, UrlError, WebhookClient as _,
};
use rustls::RootCertStore;
use tempfile::TempDir;
use tokio::{task::JoinSet, time::Instant};

use super::{
    name_server::{Answer, NXDOMAIN, NameServer, REFUSED, SERVFAIL},
    receiver::{LONG_TIMEOUT, account, request, strict_guard},
};

/// The files of a system with these contents, and a resolver that reads them.
fn system(resolv_conf: &str, hosts: &str, port: u16) -> (TempDir, SystemResolver) {
    let dir = tempfile::tempdir().unwrap();
    let [resolv_path, hosts_path] = ["resolv.conf", "hosts"].map(|it| dir.path().join(it));
    fs::write(&resolv_path, resolv_conf).unwrap();
    fs::write(&hosts_path, hosts).unwrap();
    let resolver = SystemResolver::from_files(resolv_path, hosts_path, port);
    (dir, resolver)
}

/// A resolver that asks this server.
fn asking(server: &NameServer) -> (TempDir, SystemResolver) {
    system("nameserver 127.0.0.1\n", "", server.port)
}

async fn addresses(resolver: &SystemResolver, host: &str) -> io::Result<Vec<String>> {
    let found = resolver.resolve(host, 443).await?;
    assert!(found.iter().all(|it| it.port() == 443));
    Ok(found.iter().map(|it| it.ip().to_string()).collect())
}

fn answer(name: &str) -> Answer {
    match name {
        "both.example" => Answer::of(&["2001:db8::7", "192.0.2.7", "192.0.2.8"]),
        "six.example" => Answer::of(&["2001:db8::7"]),
        "long.example" => Answer::OnlyOverTcp(vec![Ipv4Addr::new(192, 0, 2, 9).into()]),
        "under_score.example" | "receiver.corp.example" => Answer::of(&["192.0.2.5"]),
        "empty.example" => Answer::of(&[]),
        "failing.example" => Answer::Error(SERVFAIL),
        "hanging.example" => Answer::Silence,
        "public.example" => Answer::of(&["93.184.215.14"]),
        _ => Answer::Error(NXDOMAIN),
    }
}

#[tokio::test]
async fn addresses_of_both_families_come_from_the_name_server() {
    let server = NameServer::start(answer).await;
    let (_dir, resolver) = asking(&server);
    let both = addresses(&resolver, "both.example").await.unwrap();
    assert_eq!(both, ["192.0.2.7", "192.0.2.8", "2001:db8::7"]);
    assert_eq!(addresses(&resolver, "six.example.").await.unwrap(), ["2001:db8::7"]);
    assert_eq!(addresses(&resolver, "under_score.example").await.unwrap(), ["192.0.2.5"]);
    assert_eq!(addresses(&resolver, "long.example").await.unwrap(), ["192.0.2.9"], "over TCP");
}

#[tokio::test]
async fn a_name_without_addresses_and_a_failing_server_are_errors_at_once() {
    let server = NameServer::start(answer).await;
    let (_dir, resolver) = asking(&server);
    for name in ["missing.example", "empty.example", "failing.example"] {
        assert!(addresses(&resolver, name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn the_second_name_server_is_asked_only_if_the_first_gives_no_answer() {
    let first = NameServer::start(|name| match name {
        "refused.example" => Answer::Error(REFUSED),
        "failing.example" => Answer::Error(SERVFAIL),
        "hanging.example" => Answer::Silence,
        "public.example" => Answer::of(&["192.0.2.1"]),
        _ => Answer::Error(NXDOMAIN),
    })
    .await;
    let second = SocketAddr::from(([127, 0, 0, 2], first.port));
    let second = NameServer::start_at(second, |_| Answer::of(&["192.0.2.2"])).await;
    let resolv_conf = "nameserver 127.0.0.1\nnameserver 127.0.0.2\n";
    let (_dir, resolver) = system(resolv_conf, "", first.port);
    for _ in 0..10 {
        assert_eq!(addresses(&resolver, "public.example.").await.unwrap(), ["192.0.2.1"]);
        addresses(&resolver, "missing.example.").await.unwrap_err();
    }
    assert_eq!(second.queries(), 0);
    for name in ["refused.example.", "failing.example.", "hanging.example."] {
        assert_eq!(addresses(&resolver, name).await.unwrap(), ["192.0.2.2"], "{name}");
    }
}

#[tokio::test]
async fn nothing_is_cached() {
    let server = NameServer::start(answer).await;
    let (_dir, resolver) = asking(&server);
    for name in ["public.example", "missing.example"] {
        let before = server.queries();
        let _ = addresses(&resolver, name).await;
        let once = server.queries() - before;
        let _ = addresses(&resolver, name).await;
        assert_eq!((server.queries() - before, once), (4, 2), "{name}: one query for each family");
    }
}

#[tokio::test]
async fn the_hosts_file_and_localhost_need_no_name_server() {
    let server = NameServer::start(|_| Answer::Silence).await;
    let hosts = "127.0.0.1 localhost\n192.0.2.1 Both.example other # a comment\n";
    let (_dir, resolver) = system("nameserver 127.0.0.1\n", hosts, server.port);
    assert_eq!(addresses(&resolver, "both.example").await.unwrap(), ["192.0.2.1"]);
    assert_eq!(addresses(&resolver, "other").await.unwrap(), ["192.0.2.1"]);
    assert_eq!(addresses(&resolver, "localhost").await.unwrap(), ["127.0.0.1"]);
    let (_dir, resolver) = system("nameserver 127.0.0.1\n", "", server.port);
    assert_eq!(addresses(&resolver, "localhost").await.unwrap(), ["127.0.0.1", "::1"]);
    assert_eq!(server.queries(), 0);
}

#[tokio::test]
async fn changed_files_are_read_again() {
    let server = NameServer::start(answer).await;
    let second = SocketAddr::from(([127, 0, 0, 2], server.port));
    let second = NameServer::start_at(second, |_| Answer::of(&["192.0.2.200"])).await;
    let (dir, resolver) = system("nameserver 127.0.0.1\n", "", server.port);
    assert_eq!(addresses(&resolver, "public.example").await.unwrap(), ["93.184.215.14"]);
    fs::write(dir.path().join("resolv.conf"), "nameserver 127.0.0.2\n\n").unwrap();
    assert_eq!(addresses(&resolver, "public.example").await.unwrap(), ["192.0.2.200"]);
    fs::write(dir.path().join("hosts"), "192.0.2.201 public.example\n").unwrap();
    assert_eq!(addresses(&resolver, "public.example").await.unwrap(), ["192.0.2.201"]);
    assert!(second.queries() > 0);
}

#[tokio::test]
async fn without_a_usable_configuration_a_server_on_this_machine_is_asked() {
    let server = NameServer::start(answer).await;
    for resolv_conf in [None, Some(""), Some("nonsense\nnameserver not-an-address\n")] {
        let (dir, resolver) = system(resolv_conf.unwrap_or_default(), "", server.port);
        if resolv_conf.is_none() {
            fs::remove_file(dir.path().join("resolv.conf")).unwrap();
            fs::remove_file(dir.path().join("hosts")).unwrap();
        }
        let found = addresses(&resolver, "public.example").await.unwrap();
        assert_eq!(found, ["93.184.215.14"], "{resolv_conf:?}");
    }
}

#[tokio::test]
async fn search_domains_apply_to_local_names_but_not_to_public_ones() {
    let server = NameServer::start(answer).await;
    let (_dir, resolver) =
        system("nameserver 127.0.0.1\nsearch corp.example\noptions ndots:5\n", "", server.port);
    assert_eq!(addresses(&resolver, "receiver").await.unwrap(), ["192.0.2.5"]);
    assert_eq!(server.names(), ["receiver.corp.example"]);
    strict_guard(Arc::new(resolver)).resolve(account(), "https://public.example/").await.unwrap();
    assert_eq!(server.names(), ["receiver.corp.example", "public.example"]);
}

#[tokio::test]
async fn every_address_from_the_name_server_is_checked() {
    let server = NameServer::start(|name| match name {
        "private.example" => Answer::of(&["93.184.215.14", "10.0.0.7"]),
        "mapped.example" => Answer::of(&["93.184.215.14", "::ffff:127.0.0.1"]),
        _ => Answer::of(&["169.254.169.254"]),
    })
    .await;
    let (_dir, resolver) = asking(&server);
    let resolver = Arc::new(resolver);
    let strict = strict_guard(Arc::<SystemResolver>::clone(&resolver));
    for name in ["private.example", "mapped.example", "metadata.example"] {
        let refused = strict.resolve(account(), &format!("https://{name}/")).await.unwrap_err();
        assert!(refused.hidden_cause().is_some(), "{name}: {refused:?}");
    }
    let private = SsrfGuard::new(SsrfPolicy { allow_private: true }, resolver);
    let refused = private.resolve(account(), "https://metadata.example/").await.unwrap_err();
    assert_eq!(refused.hidden_cause(), Some(NameCause::MetadataAddress));
}

/// Returns many addresses of both families.
struct ManyAddresses;

#[async_trait]
impl Resolve for ManyAddresses {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let four = (1..=200).map(|it| IpAddr::from([93, 184, 215, it]));
        let six = (1..=200).map(|it| IpAddr::from([0x2a00, 0, 0, 0, 0, 0, 0, it]));
        Ok(four.chain(six).map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

#[tokio::test]
async fn a_name_with_many_addresses_causes_few_connections() {
    let guard = strict_guard(Arc::new(ManyAddresses));
    let target = guard.resolve(account(), "https://many.example/").await.unwrap();
    let six = target.addresses.iter().filter(|it| it.is_ipv6()).count();
    assert_eq!((target.addresses.len(), six), (16, 8));
}

/// Starts 64 lookups of one account that do not end, and waits until some have begun.
async fn occupy(guard: &SsrfGuard, server: &NameServer) -> JoinSet<Result<(), UrlError>> {
    let mut lookups = JoinSet::new();
    for _ in 0..64 {
        let guard = guard.clone();
        lookups.spawn(async move {
            guard.resolve(account(), "https://hanging.example/").await.map(|_| ())
        });
    }
    while server.queries() == 0 {
        tokio::task::yield_now().await;
    }
    lookups
}

#[tokio::test]
async fn hanging_lookups_of_one_account_do_not_delay_those_of_another() {
    let server = NameServer::start(answer).await;
    let (_dir, resolver) = asking(&server);
    let guard = strict_guard(Arc::new(resolver));
    let mut hanging = occupy(&guard, &server).await;
    let other = AccountId::new(2).unwrap();
    for _ in 0..20 {
        guard.resolve(other, "https://public.example/").await.unwrap();
    }
    assert!(hanging.try_join_next().is_none(), "the others still wait");
}

/// Lets time pass on the paused clock, while other tasks run.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// Every lookup fails after this time.
struct FailingAfter(Duration);

#[async_trait]
impl Resolve for FailingAfter {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        pass(self.0).await;
        Err(io::Error::other("no such name"))
    }
}

/// Starts 64 lookups of one account, which do not all get a slot.
fn look_up_often(guard: &SsrfGuard) -> JoinSet<Result<ResolvedTarget, UrlError>> {
    let mut lookups = JoinSet::new();
    for _ in 0..64 {
        let guard = guard.clone();
        lookups.spawn(async move { guard.resolve(account(), "https://shop.example/").await });
    }
    lookups
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_gets_no_lookup_slot_is_not_sent_and_not_failed() {
    let guard = strict_guard(Arc::new(FailingAfter(Duration::MAX)));
    let _first = look_up_often(&guard);
    pass(Duration::from_secs(1)).await;
    let _second = look_up_often(&guard);
    pass(Duration::from_secs(1)).await;
    let client = HttpWebhookClient::new(guard, LONG_TIMEOUT, RootCertStore::empty());
    let posted = client.post(request("https://public.example/")).await;
    assert_eq!(posted.outcome, PostOutcome::NotSent);
    assert_eq!(posted.slot_wait.as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_lookup_slot_is_not_part_of_the_time_of_a_delivery() {
    let guard = strict_guard(Arc::new(FailingAfter(Duration::from_millis(700))));
    let _others = look_up_often(&guard);
    tokio::task::yield_now().await;
    let client = HttpWebhookClient::new(guard, Duration::from_secs(1), RootCertStore::empty());
    let posted = client.post(request("https://public.example/")).await;
    let PostOutcome::Failed(failure) = posted.outcome else { panic!("{:?}", posted.outcome) };
    assert_eq!(failure.kind.as_str(), "unresolved", "not a timeout: {failure}");
    assert!(posted.slot_wait > Duration::from_secs(2), "{:?}", posted.slot_wait);
}

#[tokio::test(start_paused = true)]
async fn a_registration_waits_for_its_slot_for_a_limited_time() {
    let (guard, started) = (strict_guard(Arc::new(FailingAfter(Duration::MAX))), Instant::now());
    let mut lookups = look_up_often(&guard);
    let (mut timed_out, mut without_slot) = (0, 0);
    while let Some(ended) = lookups.join_next().await {
        match ended.unwrap().unwrap_err() {
            UrlError::NoLookupSlot => without_slot += 1,
            UrlError::UnusableName { cause: NameCause::LookupTimeout, .. } => timed_out += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(timed_out >= 11 && without_slot >= 64 - 22, "{timed_out} {without_slot}");
    assert!(started.elapsed() <= Duration::from_secs(10), "{:?}", started.elapsed());
}
