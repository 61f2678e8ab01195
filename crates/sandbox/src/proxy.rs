//! The only way out of a closed network: an HTTP proxy that knows a list of hosts, and ports of this machine one by
//! one. It accepts on sockets that live in the command's network namespace.
//!
//! Invariants: a host that is not listed is never looked up, nor asked for through one that is listed (`opening`); every wait has a deadline; refused hosts are remembered,
//! so that a message can name them.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Chain, ReadHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::host_filter::HostFilter;
use crate::opening::{self, Opening, Refusal};
use crate::registries::Host;

const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A connection that says nothing for so long is over.
const MOST_TIME: Duration = Duration::from_secs(3600);
/// After a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const LARGEST_HEAD: u64 = 32 * 1024;
/// Connections of one command at the same time.
const MOST_CONNECTIONS: usize = 128;

/// Who may be reached, and through which other proxy.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    hosts: BTreeSet<Host>,
    upstream: Option<Upstream>,
    /// What an administrator permits.
    permitted: Option<HostFilter>,
    /// Every permitted host is listed.
    reaches_permitted: bool,
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
        Self { hosts, upstream, ..Self::default() }
    }

    /// Only permitted hosts are reached; all of them, where the whole network is granted.
    pub fn permit(self, permitted: Option<HostFilter>, whole_network: bool) -> Self {
        Self { reaches_permitted: whole_network && permitted.is_some(), permitted, ..self }
    }

    /// Hosts that were asked for and are not listed, as `host:port`.
    pub fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Answers until the task is dropped.
    pub async fn serve(self, listener: TcpListener) {
        self.serve_from(listener).await;
    }

    async fn serve_from(self, source: impl Accept) {
        let free = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
        while let Ok(permit) = free.clone().acquire_owned().await {
            let stream = accept_next(&source).await;
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
        if !self.allows(&request.host, request.port) {
            let name = format!("{}:{}", request.host, request.port);
            self.note_refused(name.clone());
            let advice = if self.is_permitted(&request.host, request.port) {
                format!("The grant network:{name} allows it.")
            } else {
                "The administrator of this machine does not permit this host.".to_owned()
            };
            let text = format!("The sandbox of Dragoman refused a connection to {name}. {advice}");
            return refuse(client.get_mut(), 403, &text).await;
        }
        let forward = match request.forward(&head) {
            Ok(forward) => forward,
            Err(refusal) => {
                let (code, text) = self.explain(refusal, &request.host, request.port);
                return refuse(client.get_mut(), code, &text).await;
            }
        };
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
        match forward {
            Some(head) => {
                server.write_all(head.as_bytes()).await?;
                exchange(client, server, None).await
            }
            None => {
                client.get_mut().write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                exchange(client, server, Some((self, &request))).await
            }
        }
    }

    /// Reads what a client sends first into a tunnel, until it is clear that it asks for the host of the tunnel. Gives
    /// what is passed on.
    async fn check_opening(&self, client: &mut FromClient, request: &Request) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let mut piece = [0; 4096];
            // A server may speak first, so only a greeting that has begun has a deadline.
            let wait = if bytes.is_empty() { MOST_TIME } else { HEAD_TIMEOUT };
            let read =
                timeout(wait, client.read(&mut piece)).await.map_err(|_| io::ErrorKind::TimedOut)??;
            bytes.extend_from_slice(&piece[..read]);
            let name = match opening::judge(&bytes) {
                Opening::Unfinished if read > 0 && bytes.len() < opening::LONGEST => continue,
                Opening::Unfinished if read == 0 => return Ok(bytes),
                Opening::Other => return Ok(bytes),
                // An address has no name that a server could choose by.
                Opening::Tls(name) if request.is_address() || self.allows(&name, request.port) => {
                    return Ok(bytes);
                }
                Opening::Tls(name) => name,
                Opening::Http(length) => {
                    let head = str::from_utf8(&bytes[..length]).map_err(|_| io::ErrorKind::InvalidData)?;
                    match opening::pass_on(head, None, &request.host, request.port) {
                        Ok(head) => return Ok([head.as_bytes(), &bytes[length..]].concat()),
                        Err(Refusal::OtherHost(name)) => name,
                        Err(Refusal::Malformed) => return Err(io::ErrorKind::InvalidData.into()),
                    }
                }
                Opening::Unfinished | Opening::Malformed => return Err(io::ErrorKind::InvalidData.into()),
            };
            self.explain(Refusal::OtherHost(name), &request.host, request.port);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }

    /// The answer to a request that is not passed on.
    fn explain(&self, refusal: Refusal, host: &str, port: u16) -> (u16, String) {
        match refusal {
            Refusal::Malformed => (400, "The head of this request cannot be passed on.".to_owned()),
            Refusal::OtherHost(name) => {
                let name = name.rsplit_once(':').map_or(name.as_str(), |(name, _)| name);
                self.note_refused(format!("{name}:{port}"));
                (
                    403,
                    format!(
                        "The sandbox of Dragoman refused a request that was sent to {host} and names {name}."
                    ),
                )
            }
        }
    }

    fn note_refused(&self, name: String) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    fn allows(&self, host: &str, port: u16) -> bool {
        let web = matches!(port, 80 | 443);
        let is_listed = self.reaches_permitted
            || self.hosts.contains(&(host.to_owned(), Some(port)))
            || (web && self.hosts.contains(&(host.to_owned(), None)));
        is_listed && self.is_permitted(host, port)
    }

    fn is_permitted(&self, host: &str, port: u16) -> bool {
        self.permitted.as_ref().is_none_or(|permitted| permitted.permits(host, port))
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

/// What a client sends after the head for the proxy.
type FromClient = BufReader<Chain<io::Cursor<Vec<u8>>, ReadHalf<TcpStream>>>;

/// Copies both directions; what goes into a tunnel first is checked.
async fn exchange(
    client: BufReader<TcpStream>,
    server: TcpStream,
    tunnel: Option<(&Proxy, &Request)>,
) -> io::Result<()> {
    // What the client already sent after its head.
    let early = client.buffer().to_vec();
    let (from_client, mut to_client) = tokio::io::split(client.into_inner());
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let mut from_client = BufReader::new(io::Cursor::new(early).chain(from_client));
    let upwards = async {
        if let Some((proxy, request)) = tunnel {
            let first = proxy.check_opening(&mut from_client, request).await?;
            to_server.write_all(&first).await?;
        }
        tokio::io::copy_buf(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let downwards = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(upwards, downwards).map(drop)
}

/// Where connections come from.
trait Accept: Send + Sync {
    fn accept_one(&self) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

impl Accept for TcpListener {
    async fn accept_one(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// The next connection. An error, such as too many open files, belongs to one moment.
async fn accept_next(source: &impl Accept) -> TcpStream {
    loop {
        match source.accept_one().await {
            Ok(stream) => return stream,
            Err(error) => {
                tracing::debug!(%error, "a connection of a command was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Connects what arrives to the same port of this machine, until the task is dropped.
pub async fn forward_port(listener: TcpListener, port: u16) {
    loop {
        let mut client = accept_next(&listener).await;
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
    /// The path that is asked for; `None` for a tunnel.
    path: Option<String>,
}

impl Request {
    fn parse(head: &str) -> Option<Self> {
        let mut words = head.lines().next()?.split_ascii_whitespace();
        let (method, target, _) = (words.next()?, words.next()?, words.next()?);
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Some(Self { host, port, path: None });
        }
        let address = target.strip_prefix("http://")?;
        let (place, path) = address.split_at(address.find('/').unwrap_or(address.len()));
        let (host, port) = authority(place, Some(80))?;
        let path = if path.is_empty() { "/" } else { path };
        Some(Self { host, port, path: Some(path.to_owned()) })
    }

    /// The head that the server gets; none for a tunnel.
    fn forward(&self, head: &str) -> Result<Option<String>, Refusal> {
        let path = self.path.as_deref();
        path.map(|path| opening::pass_on(head, Some(path), &self.host, self.port)).transpose()
    }

    fn is_address(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok()
    }
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
            assert_eq!(proxy().allows(&request.host, request.port), allowed, "{head}");
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
        let forward = Request::parse(head).unwrap().forward(head).unwrap().unwrap();
        assert_eq!(forward, "GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    }

    /// Fails a few times first.
    struct Faulty {
        listener: TcpListener,
        errors: std::sync::atomic::AtomicUsize,
    }

    impl Accept for Faulty {
        async fn accept_one(&self) -> io::Result<TcpStream> {
            let order = std::sync::atomic::Ordering::SeqCst;
            if self.errors.fetch_update(order, order, |left| left.checked_sub(1)).is_ok() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.listener.accept_one().await
        }
    }

    /// A proxy for one port of this machine, and the connection of a client to it.
    async fn connected(port: u16, errors: usize) -> (Proxy, TcpStream) {
        let proxy = Proxy::new([("localhost".to_owned(), Some(port))].into(), None);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let source = Faulty { listener, errors: errors.into() };
        tokio::spawn(proxy.clone().serve_from(source));
        (proxy, TcpStream::connect(address).await.unwrap())
    }

    /// A server that answers with the head that it got.
    async fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let head = read_head(&mut stream).await.unwrap_or_default();
                let _ = stream.get_mut().write_all(format!("got {head}").as_bytes()).await;
            }
        });
        port
    }

    async fn ask(client: &mut TcpStream, text: &str) -> String {
        client.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(HEAD_TIMEOUT, client.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn a_request_reaches_no_other_host_of_the_same_server() {
        let port = echo().await;
        let plain = |host: &str| format!("GET http://localhost:{port}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let tunnel = |host: &str| {
            format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
        };
        let own = format!("localhost:{port}");
        for request in [plain(&own), tunnel(&own)] {
            let (_, mut client) = connected(port, 0).await;
            let answer = ask(&mut client, &request).await;
            assert!(answer.contains(&format!("got GET / HTTP/1.1\r\nHost: {own}\r\n")), "{answer}");
        }
        for request in [plain("evil.example"), tunnel("evil.example")] {
            let (proxy, mut client) = connected(port, 0).await;
            let answer = ask(&mut client, &request).await;
            assert!(!answer.contains("got"), "{answer}");
            assert_eq!(proxy.refused(), [format!("evil.example:{port}")]);
        }
    }

    #[test]
    fn an_administrator_decides_about_every_host() {
        let filter = || Some(HostFilter::new(|host, _| host == "example.org" || host == "other.example"));
        for (proxy, host, port, allowed) in [
            (proxy().permit(filter(), false), "example.org", 443, true),
            (proxy().permit(filter(), false), "other.example", 443, false),
            (proxy().permit(filter(), true), "other.example", 443, true),
            (proxy().permit(filter(), true), "evil.example", 443, false),
            (proxy().permit(Some(HostFilter::new(|_, _| false)), false), "example.org", 443, false),
            (proxy().permit(None, true), "evil.example", 443, false),
        ] {
            assert_eq!(proxy.allows(host, port), allowed, "{host}:{port}");
        }
    }

    #[tokio::test]
    async fn an_error_of_accept_ends_nothing() {
        let port = echo().await;
        let (_, mut client) = connected(port, 3).await;
        let answer = ask(&mut client, &format!("GET http://localhost:{port}/ HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("got GET"), "{answer}");
    }
}
