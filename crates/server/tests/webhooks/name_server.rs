//! A name server on loopback, over UDP and TCP, that answers as a test wants.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
};

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const NO_ERROR: u8 = 0;
pub(crate) const SERVFAIL: u8 = 2;
pub(crate) const NXDOMAIN: u8 = 3;
pub(crate) const REFUSED: u8 = 5;

/// What the server answers to a query.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Those of the addresses that have the family of the query.
    Addresses(Vec<IpAddr>),
    /// The same, but too long for UDP.
    OnlyOverTcp(Vec<IpAddr>),
    /// This response code.
    Error(u8),
    /// Nothing.
    Silence,
}

impl Answer {
    pub(crate) fn of(addresses: &[&str]) -> Self {
        Self::Addresses(addresses.iter().map(|it| it.parse().unwrap()).collect())
    }
}

/// A running name server.
pub(crate) struct NameServer {
    pub(crate) port: u16,
    queries: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    /// Starts a server that answers queries for a name, without the last dot.
    pub(crate) async fn start(answer: fn(&str) -> Answer) -> Self {
        loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = tcp.local_addr().unwrap();
            if let Ok(udp) = UdpSocket::bind(address).await {
                return Self::serve(answer, udp, tcp);
            }
        }
    }

    /// Starts a second server on the port of another one, at another loopback address.
    pub(crate) async fn start_at(address: SocketAddr, answer: fn(&str) -> Answer) -> Self {
        let tcp = TcpListener::bind(address).await.unwrap();
        Self::serve(answer, UdpSocket::bind(address).await.unwrap(), tcp)
    }

    fn serve(answer: fn(&str) -> Answer, udp: UdpSocket, tcp: TcpListener) -> Self {
        let server = Self { port: tcp.local_addr().unwrap().port(), queries: Arc::default() };
        let queries = Arc::clone(&server.queries);
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            loop {
                let (length, client) = udp.recv_from(&mut buffer).await.unwrap();
                if let Some(response) = respond(answer, &buffer[..length], &queries, true) {
                    udp.send_to(&response, client).await.unwrap();
                }
            }
        });
        let queries = Arc::clone(&server.queries);
        tokio::spawn(async move {
            loop {
                let (stream, _) = tcp.accept().await.unwrap();
                tokio::spawn(serve_tcp(answer, stream, Arc::clone(&queries)));
            }
        });
        server
    }

    /// The names of the queries so far, in order and without repetitions.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.queries.lock().unwrap().clone();
        names.dedup();
        names
    }

    /// The number of queries so far.
    pub(crate) fn queries(&self) -> usize {
        self.queries.lock().unwrap().len()
    }
}

async fn serve_tcp(
    answer: fn(&str) -> Answer,
    mut stream: TcpStream,
    queries: Arc<Mutex<Vec<String>>>,
) {
    while let Ok(length) = stream.read_u16().await {
        let mut query = vec![0; length.into()];
        stream.read_exact(&mut query).await.unwrap();
        if let Some(response) = respond(answer, &query, &queries, false) {
            stream.write_u16(response.len().try_into().unwrap()).await.unwrap();
            stream.write_all(&response).await.unwrap();
        }
    }
}

/// The response to a query; `None` for silence.
fn respond(
    answer: fn(&str) -> Answer,
    query: &[u8],
    queries: &Mutex<Vec<String>>,
    is_udp: bool,
) -> Option<Vec<u8>> {
    let (mut labels, mut rest) = (Vec::new(), &query[12..]);
    while rest[0] > 0 {
        let (label, tail) = rest[1..].split_at(rest[0].into());
        labels.push(String::from_utf8(label.to_vec()).unwrap());
        rest = tail;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([rest[1], rest[2]]);
    let question = &query[12..query.len() - rest.len() + 5];
    queries.lock().unwrap().push(name.clone());
    let (code, addresses, is_truncated) = match answer(&name) {
        Answer::OnlyOverTcp(_) if is_udp => (NO_ERROR, Vec::new(), true),
        Answer::Addresses(addresses) | Answer::OnlyOverTcp(addresses) => {
            (NO_ERROR, addresses, false)
        }
        Answer::Error(code) => (code, Vec::new(), false),
        Answer::Silence => return None,
    };
    let records = addresses.into_iter().filter_map(|address| match (address, kind) {
        (IpAddr::V4(ip), TYPE_A) => Some(ip.octets().to_vec()),
        (IpAddr::V6(ip), TYPE_AAAA) => Some(ip.octets().to_vec()),
        _ => None,
    });
    let records: Vec<Vec<u8>> = records.collect();
    let mut response = query[..2].to_vec();
    response.extend([0x81 | if is_truncated { 2 } else { 0 }, 0x80 | code]);
    response.extend([0, 1, 0, records.len().try_into().unwrap(), 0, 0, 0, 0]);
    response.extend(question);
    for record in records {
        // The name of the question, the class IN, and a minute to live.
        response.extend([0xc0, 12]);
        response.extend(kind.to_be_bytes());
        response.extend([0, 1, 0, 0, 0, 60, 0, record.len().try_into().unwrap()]);
        response.extend(record);
    }
    Some(response)
}
