//! The only way out of a closed network: an HTTP proxy that knows a list of hosts, and ports of this machine one by
//! one. It accepts on sockets that live in the command's network namespace.
//!
//! Invariants: a host that is not listed is never looked up; every wait has a deadline; refused hosts are remembered,
//! so that a message can name them.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::registries::Host;

const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A connection that says nothing for so long is over.
const MOST_TIME: Duration = Duration::from_secs(3600);
const LARGEST_HEAD: u64 = 32 * 1024;
/// Connections of one command at the same time.
const MOST_CONNECTIONS: usize = 128;

/// Who may be reached, and through which other proxy.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    hosts: BTreeSet<Host>,
    upstream: Option<Upstream>,
    refused: Arc<Mutex<BTreeSet<String>>>,
}

/// The proxy that the user's own network needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    /// `host:port`.
    pub address: String,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

/// The authorization is left out.
impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    pub fn new(hosts: BTreeSet<Host>, upstream: Option<Upstream>) -> Self {
        Self { hosts, upstream, refused: Arc::default() }
    }

    /// Hosts that were asked for and are not listed, as `host:port`.
    pub fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Answers until the task is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let free = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
        while let (Ok((stream, _)), Ok(permit)) =
            (listener.accept().await, free.clone().acquire_owned().await)
        {
            let proxy = self.clone();
            tokio::spawn(async move {
                let served = timeout(MOST_TIME, proxy.answer(stream)).await;
                if let Ok(Err(error)) = served {
                    tracing::debug!(%error, "a connection of a command through the proxy ended");
                }
                drop(permit);
            });
        }
    }

    async fn answer(&self, stream: TcpStream) -> io::Result<()> {
        let mut client = BufReader::new(stream);
        let head =
            timeout(HEAD_TIMEOUT, read_head(&mut client)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let Some(request) = Request::parse(&head) else {
            return refuse(client.get_mut(), 400, "This is no request for a proxy.").await;
        };
        if !self.allows(&request) {
            let name = format!("{}:{}", request.host, request.port);
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
            let text = format!(
                "The sandbox of Dragoman refused a connection to {name}. The grant network:{name} allows it."
            );
            return refuse(client.get_mut(), 403, &text).await;
        }
        let mut server = match self.connect(&request).await {
            Ok(server) => server,
            Err(error) => {
                return refuse(
                    client.get_mut(),
                    502,
                    &format!("{} cannot be reached: {error}.", request.host),
                )
                .await;
            }
        };
        match &request.forward {
            Some(head) => server.write_all(head.as_bytes()).await?,
            None => client.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        }
        // What the client already sent after its head.
        let early = client.buffer().to_vec();
        server.write_all(&early).await?;
        let mut client = client.into_inner();
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    }

    fn allows(&self, request: &Request) -> bool {
        let web = matches!(request.port, 80 | 443);
        let exact = (request.host.clone(), Some(request.port));
        self.hosts.contains(&exact) || (web && self.hosts.contains(&(request.host.clone(), None)))
    }

    async fn connect(&self, request: &Request) -> io::Result<TcpStream> {
        let slow = || io::Error::from(io::ErrorKind::TimedOut);
        let Some(upstream) = &self.upstream else {
            return timeout(CONNECT_TIMEOUT, connect_to(request)).await.map_err(|_| slow())?;
        };
        let through = async {
            let mut stream = BufReader::new(TcpStream::connect(&upstream.address).await?);
            let target = format!("{}:{}", request.host, request.port);
            let authorization = upstream.authorization.as_ref();
            let authorization =
                authorization.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
            let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
            stream.get_mut().write_all(ask.as_bytes()).await?;
            let head = read_head(&mut stream).await?;
            let accepted = head.split(' ').nth(1).is_some_and(|code| code.starts_with('2'));
            accepted
                .then(|| stream.into_inner())
                .ok_or_else(|| io::Error::other("the proxy beyond refuses it"))
        };
        timeout(CONNECT_TIMEOUT, through).await.map_err(|_| slow())?
    }
}

/// A name of the internet does not lead to this machine or its neighbors, whatever its owner lets it stand for.
async fn connect_to(request: &Request) -> io::Result<TcpStream> {
    let host = request.host.as_str();
    let names_itself = host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok();
    let mut last = io::Error::other("it leads to this machine; the grant port:NUMBER opens one of its ports");
    for address in tokio::net::lookup_host((host, request.port)).await? {
        let ip = address.ip().to_canonical();
        let is_here = ip.is_loopback() || ip.is_unspecified();
        if (is_here || is_link_local(ip)) && !names_itself {
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Addresses of one wire, among them those that tell cloud machines their credentials.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Connects what arrives to the same port of this machine, until the task is dropped.
pub async fn forward_port(listener: TcpListener, port: u16) {
    while let Ok((mut client, _)) = listener.accept().await {
        tokio::spawn(async move {
            let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            if let Ok(Ok(mut server)) = timeout(CONNECT_TIMEOUT, connect).await {
                let _ = timeout(MOST_TIME, tokio::io::copy_bidirectional(&mut client, &mut server)).await;
            }
        });
    }
}

/// The lines up to the empty one.
async fn read_head(stream: &mut (impl AsyncRead + AsyncBufReadExt + Unpin)) -> io::Result<String> {
    let mut head = String::new();
    let mut lines = stream.take(LARGEST_HEAD);
    while lines.read_line(&mut head).await? > 0 {
        if head.ends_with("\r\n\r\n") || head.ends_with("\n\n") {
            return Ok(head);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

async fn refuse(client: &mut TcpStream, code: u16, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.1 {code} Refused\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

#[derive(Debug, PartialEq)]
struct Request {
    host: String,
    port: u16,
    /// The head to pass on; `None` for a tunnel.
    forward: Option<String>,
}

impl Request {
    fn parse(head: &str) -> Option<Self> {
        let (first, rest) = head.split_once('\n')?;
        let mut words = first.split_ascii_whitespace();
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Some(Self { host, port, forward: None });
        }
        let address = target.strip_prefix("http://")?;
        let (place, path) = address.split_at(address.find('/').unwrap_or(address.len()));
        let (host, port) = authority(place, Some(80))?;
        let path = if path.is_empty() { "/" } else { path };
        // One request per connection, so that each is judged.
        let kept: String = rest.split_inclusive('\n').filter(|line| !is_hop(line)).collect();
        let forward = format!("{method} {path} {version}\r\nConnection: close\r\n{kept}");
        Some(Self { host, port, forward: Some(forward) })
    }
}

/// Headers for the proxy alone.
fn is_hop(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
    matches!(name.as_str(), "connection" | "proxy-connection" | "proxy-authorization" | "keep-alive")
}

fn authority(text: &str, otherwise: Option<u16>) -> Option<(String, u16)> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (text, None),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    (!name.is_empty() && name.bytes().all(fits)).then_some((name, port.or(otherwise)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> Proxy {
        Proxy::new([("example.org".to_owned(), None), ("other.example".to_owned(), Some(8080))].into(), None)
    }

    /// The owner of a name decides what it stands for.
    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused() {
        let listener = TcpListener::bind("[::]:0").await.or(TcpListener::bind("0.0.0.0:0").await).unwrap();
        let port = listener.local_addr().unwrap().port();
        let request =
            |host: &str| Request::parse(&format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n")).unwrap();
        let names = ["ip6-localhost", "ip6-loopback", "localhost.localdomain", "localhost4", "localhost6"];
        for name in names {
            let Ok(mut found) = tokio::net::lookup_host((name, port)).await else { continue };
            if found.all(|address| address.ip().is_loopback()) {
                let error = connect_to(&request(name)).await.unwrap_err().to_string();
                assert!(error.contains("leads to this machine"), "{name}: {error}");
            }
        }
        assert!(connect_to(&request("localhost")).await.is_ok());
        assert!(is_link_local("169.254.169.254".parse().unwrap()));
        assert!(is_link_local("fe80::1".parse().unwrap()) && !is_link_local("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn only_listed_hosts_at_their_ports() {
        for (head, allowed) in [
            ("CONNECT example.org:443 HTTP/1.1\r\n\r\n", true),
            ("CONNECT EXAMPLE.ORG.:443 HTTP/1.1\r\n\r\n", true),
            ("GET http://example.org/x HTTP/1.1\r\nHost: evil\r\n\r\n", true),
            ("CONNECT example.org:22 HTTP/1.1\r\n\r\n", false),
            ("CONNECT other.example:8080 HTTP/1.1\r\n\r\n", true),
            ("CONNECT other.example:443 HTTP/1.1\r\n\r\n", false),
            ("CONNECT sub.example.org:443 HTTP/1.1\r\n\r\n", false),
            ("CONNECT example.org.evil.com:443 HTTP/1.1\r\n\r\n", false),
            ("CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", false),
            ("GET http://169.254.169.254/latest HTTP/1.1\r\n\r\n", false),
        ] {
            let request = Request::parse(head).unwrap();
            assert_eq!(proxy().allows(&request), allowed, "{head}");
        }
    }

    #[test]
    fn other_heads_are_no_requests() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT example.org HTTP/1.1\r\n\r\n",
            "CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "GET http://user@example.org/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(Request::parse(head), None, "{head}");
        }
    }

    #[test]
    fn a_plain_request_is_passed_on_for_one_answer() {
        let head =
            "GET http://example.org HTTP/1.1\r\nHost: example.org\r\nProxy-Connection: keep-alive\r\n\r\n";
        let forward = Request::parse(head).unwrap().forward.unwrap();
        assert_eq!(forward, "GET / HTTP/1.1\r\nConnection: close\r\nHost: example.org\r\n\r\n");
    }
}
