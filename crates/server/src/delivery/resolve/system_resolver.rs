//! Resolves names as the system is configured: `/etc/hosts` first, then the name servers of
//! `/etc/resolv.conf`.
//!
//! Lookups are asynchronous: a name server that does not respond costs a few sockets for a few
//! seconds, and no thread. Responses are not cached, because name servers do that and the next
//! connection has to see a name that has moved.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use hickory_resolver::{
    Hosts, TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
        ResolverOpts,
    },
    net::runtime::TokioRuntimeProvider,
    proto::{
        op::Query,
        rr::{Name, RecordType},
    },
};
use tokio::time::timeout;

use super::Resolve;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
const DNS_PORT: u16 = 53;

/// Time for asking all name servers, which share it equally. It is below the time limit of a lookup.
const LOOKUP_TIME: Duration = Duration::from_millis(4_800);

/// Time for the queries to all name servers. It is below the time for asking, so that a name server
/// that answers only for IPv4 is good enough.
const QUERY_TIME: Duration = Duration::from_secs(4);

/// How often a query is repeated after its time limit. Within the limit it is sent several times.
const QUERY_RETRIES: u32 = 1;

/// Maximum number of queries that share a TCP connection to a name server. A name whose responses
/// need TCP and never arrive must not use up the connection.
const MAX_QUERIES_PER_CONNECTION: usize = 256;

/// Resolves names as the system is configured.
pub struct SystemResolver {
    resolv_conf: PathBuf,
    hosts: PathBuf,
    port: u16,
    loaded: Mutex<Option<(FileStamps, Arc<NameSources>)>>,
}

/// Where names are looked up.
struct NameSources {
    hosts: Hosts,
    /// One for each name server, in the order of the file.
    servers: Vec<TokioResolver>,
}

/// What changes when one of the files changes.
type FileStamps = [Option<(SystemTime, u64)>; 2];

impl SystemResolver {
    /// Creates a resolver. It reads the files of the system now, and again when they have changed.
    pub fn new() -> Self {
        Self::from_files(RESOLV_CONF, HOSTS, DNS_PORT)
    }

    /// Creates a resolver that reads these files and asks name servers on this port.
    pub fn from_files(
        resolv_conf: impl Into<PathBuf>,
        hosts: impl Into<PathBuf>,
        port: u16,
    ) -> Self {
        Self {
            resolv_conf: resolv_conf.into(),
            hosts: hosts.into(),
            port,
            loaded: Mutex::default(),
        }
    }

    /// The sources as the files configure them now. Two small local files are read if they have
    /// changed, which does not block for long.
    fn sources(&self) -> io::Result<Arc<NameSources>> {
        let stamps = [stamp(&self.resolv_conf), stamp(&self.hosts)];
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, sources)) = &*loaded
            && *at == stamps
        {
            return Ok(Arc::clone(sources));
        }
        let sources = Arc::new(NameSources {
            hosts: read_hosts(&self.hosts),
            servers: name_servers(&read_resolv_conf(&self.resolv_conf), self.port)?,
        });
        *loaded = Some((stamps, Arc::clone(&sources)));
        Ok(sources)
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let name = Name::from_ascii(host).map_err(io::Error::other)?;
        let sources = self.sources()?;
        let mut found = sources.in_hosts(&name);
        if found.is_empty() {
            found = sources.in_dns(&name).await?;
        }
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

impl NameSources {
    /// The addresses in the hosts file. If there are any, no name server is asked, not even for the
    /// other address family: as with the C library, the file works without a name server.
    fn in_hosts(&self, name: &Name) -> Vec<IpAddr> {
        [RecordType::A, RecordType::AAAA]
            .into_iter()
            .filter_map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)))
            .flat_map(|lookup| {
                lookup.answers().iter().filter_map(|it| it.data.ip_addr()).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The addresses from the name servers. As with the C library, the first server that answers
    /// decides, also if it answers that there are none. A server that fails, refuses or does not
    /// respond gives no answer.
    async fn in_dns(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
        let share = LOOKUP_TIME / u32::try_from(self.servers.len()).unwrap_or(u32::MAX).max(1);
        let mut last = io::Error::other("no name server is configured");
        for server in &self.servers {
            last = match timeout(share, server.lookup_ip(name.clone())).await {
                Ok(Ok(lookup)) => return Ok(lookup.iter().collect()),
                Ok(Err(error)) if error.is_no_records_found() => {
                    return Err(io::Error::other(error));
                }
                Ok(Err(error)) => io::Error::other(error),
                Err(elapsed) => elapsed.into(),
            };
        }
        Err(last)
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads the hosts file. Without one, only name servers are asked.
fn read_hosts(path: &Path) -> Hosts {
    let mut hosts = Hosts::default();
    if let Err(error) = fs::File::open(path).and_then(|file| hosts.read_hosts_conf(file)) {
        let path = path.display();
        tracing::warn!(%path, %error, "the hosts file cannot be read; only name servers are asked");
    }
    hosts
}

/// Reads the configuration of name servers. Lines that cannot be parsed are skipped. As with the C
/// library, a file that is missing or names no server stands for a server on this machine.
fn read_resolv_conf(path: &Path) -> resolv_conf::Config {
    let text = fs::read(path).unwrap_or_else(|error| {
        let path = path.display();
        tracing::warn!(
            %path, %error,
            "the configuration of name servers cannot be read; webhooks use a server on this machine"
        );
        Vec::new()
    });
    let (mut config, errors) = resolv_conf::Config::parse_with_errors(&text);
    for error in errors {
        tracing::warn!(path = %path.display(), %error, "a line about name servers is skipped");
    }
    config.glibc_normalize();
    config
}

/// A resolver for each name server. Together they would be asked in parallel, and the first response
/// would count, even if it is a failure.
fn name_servers(config: &resolv_conf::Config, port: u16) -> io::Result<Vec<TokioResolver>> {
    let servers = config.get_nameservers_or_local();
    let count = u32::try_from(servers.len()).unwrap_or(u32::MAX).max(1);
    let query_timeout = QUERY_TIME / (1 + QUERY_RETRIES) / count;
    let resolvers = servers.iter().map(|server| {
        let mut connections = vec![ConnectionConfig::tcp()];
        if !config.use_vc {
            connections.insert(0, ConnectionConfig::udp());
        }
        for connection in &mut connections {
            connection.port = port;
        }
        let server = NameServerConfig::new(server.into(), true, connections);
        name_server(config, server, query_timeout)
    });
    resolvers.collect()
}

fn name_server(
    config: &resolv_conf::Config,
    server: NameServerConfig,
    query_timeout: Duration,
) -> io::Result<TokioResolver> {
    let search = config.get_last_search_or_domain().filter_map(|it| Name::from_ascii(it).ok());
    let server = ResolverConfig::from_parts(None, search.collect(), vec![server]);
    let mut options = ResolverOpts::default();
    options.ndots = config.ndots.try_into().unwrap_or(usize::MAX);
    options.edns0 = config.edns0;
    options.ip_strategy =
        if config.no_aaaa { LookupIpStrategy::Ipv4Only } else { LookupIpStrategy::Ipv4AndIpv6 };
    options.timeout = query_timeout;
    options.attempts = QUERY_RETRIES as usize;
    options.max_active_requests = MAX_QUERIES_PER_CONNECTION;
    options.cache_size = 0;
    // `NameSources` does this.
    options.use_hosts_file = ResolveHosts::Never;
    TokioResolver::builder_with_config(server, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(io::Error::other)
}
