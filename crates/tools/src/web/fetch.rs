//! One GET, with its redirects, within bounds of size, time and kind.
//!
//! Invariant: the address that is connected to is the one that was checked, at the first request and at every
//! redirect. No proxy, no cookies, no credentials.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::CancellationToken;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};

use super::address::is_public;
use crate::edit::files::unless_cancelled;

const MAX_REDIRECTS: usize = 5;
const NOT_PUBLIC: &str = "is not on the public internet";
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.1";

/// What a page may be asked for from.
type AddressFilter = fn(IpAddr) -> bool;

pub struct Fetcher {
    permits: AddressFilter,
    /// Hosts that may be reached wherever they are.
    hosts: Arc<[String]>,
    max_bytes: usize,
    time: Duration,
    /// The address that a person named; its server may be reached wherever it is, and no other one that is inside.
    named: Option<Url>,
    client: OnceLock<Client>,
}

/// A body, at most as long as is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedPage {
    /// Where it came from in the end.
    pub url: String,
    /// Without parameters, lower case.
    pub kind: String,
    pub charset: Option<String>,
    pub bytes: Vec<u8>,
    /// There was more.
    pub cut: bool,
}

impl Fetcher {
    pub fn new(hosts: Vec<String>, max_bytes: usize, time: Duration) -> Self {
        Self {
            permits: is_public,
            hosts: hosts.into(),
            max_bytes,
            time,
            named: None,
            client: OnceLock::new(),
        }
    }

    /// For an address that a person named, not a model or a page: it may be inside. Where it redirects to another server,
    /// that one must be on the public internet.
    pub fn at(url: &str, max_bytes: usize, time: Duration) -> Self {
        let named = Url::parse(url).ok();
        let host = named.as_ref().and_then(|url| url.host_str().map(str::to_owned));
        Self { named, ..Self::new(host.into_iter().collect(), max_bytes, time) }
    }

    pub async fn fetch(&self, url: &str, cancel: &CancellationToken) -> Result<FetchedPage, String> {
        let with_timeout = tokio::time::timeout(self.time, self.follow(url, MAX_REDIRECTS));
        match unless_cancelled(cancel, with_timeout).await? {
            Ok(fetched) => fetched,
            Err(_) => Err(format!("{url} took longer than {} seconds.", self.time.as_secs())),
        }
    }

    async fn follow(&self, url: &str, most: usize) -> Result<FetchedPage, String> {
        let mut url = Url::parse(url).map_err(|error| format!("{url} is not an address: {error}."))?;
        for hop in 0..=most {
            if let Some(named) = self.named.as_ref().filter(|named| !is_same_server(named, &url)) {
                // Whoever runs that server says where to look, not the person.
                let other = Self::new(Vec::new(), self.max_bytes, self.time);
                let followed = Box::pin(other.follow(url.as_str(), most - hop)).await;
                return followed.map_err(|told| describe_elsewhere(named, &url, &told));
            }
            self.check(&url)?;
            let request = self.client()?.get(url.clone()).header(ACCEPT, ACCEPTED);
            let response = request.send().await.map_err(|error| describe_error(&url, &error))?;
            if !response.status().is_redirection() {
                return self.read_body(url, response).await;
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let location = location.ok_or_else(|| format!("{url} redirects to nowhere."))?;
            url = url.join(location).map_err(|error| format!("{url} redirects to {location}: {error}."))?;
        }
        Err(format!("{url} redirects too often."))
    }

    /// An address in figures is not resolved, so it is checked here; names are checked when they are resolved.
    fn check(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{url} is neither http nor https."));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("An address with a user name or password in it is not fetched.".to_owned());
        }
        domain::hosts::check_address(url.as_str()).map_err(|failure| failure.to_string())?;
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(address) if !(self.permits)(address) && !is_named(&self.hosts, host) => {
                Err(describe_refusal(host))
            }
            _ => Ok(()),
        }
    }

    async fn read_body(&self, url: Url, mut response: Response) -> Result<FetchedPage, String> {
        let status = response.status();
        if !status.is_success() {
            return Err(format!("{url} answers {status}."));
        }
        let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let header = header.unwrap_or("text/plain").to_ascii_lowercase();
        let mut pieces = header.split(';').map(str::trim);
        let kind = pieces.next().unwrap_or_default().to_owned();
        let charset = pieces
            .find_map(|piece| piece.strip_prefix("charset="))
            .map(|name| name.trim_matches('"').to_owned());
        if !is_text(&kind) {
            return Err(format!("{url} is {kind}, which is not text."));
        }
        let mut bytes = Vec::new();
        let mut cut = false;
        while let Some(piece) = response.chunk().await.map_err(|error| describe_error(&url, &error))? {
            let room = self.max_bytes - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                cut = true;
                break;
            }
        }
        Ok(FetchedPage { url: url.into(), kind, charset, bytes, cut })
    }

    /// Made at the first use: it reads the system's certificates.
    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        tls::install();
        let client = Client::builder()
            .dns_resolver(Arc::new(Resolver { permits: self.permits, hosts: self.hosts.clone() }))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_secs(10).min(self.time))
            .pool_max_idle_per_host(0)
            .user_agent(concat!("dragoman/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("No page can be fetched: {error}."))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// The same server, or the same one by https.
fn is_same_server(named: &Url, url: &Url) -> bool {
    let is_upgrade =
        named.scheme() == "http" && url.scheme() == "https" && named.port().is_none() && url.port().is_none();
    named.host_str() == url.host_str()
        && (is_upgrade || named.port_or_known_default() == url.port_or_known_default())
}

/// Resolves names to addresses that may be reached. The connection is made to one of these and no other.
struct Resolver {
    permits: AddressFilter,
    hosts: Arc<[String]>,
}

fn is_named(hosts: &[String], host: &str) -> bool {
    hosts.iter().any(|named| named.trim_matches(['[', ']']).eq_ignore_ascii_case(host))
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let named = is_named(&self.hosts, &host);
        let permits = self.permits;
        Box::pin(async move {
            let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One that leads inside is enough to distrust the name.
            if !named && addresses.iter().any(|address| !permits(address.ip())) {
                return Err(io::Error::other(describe_refusal(&host)).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Why a page that a named server leads to was not fetched. A development server may call itself by another name.
fn describe_elsewhere(named: &Url, url: &Url, told: &str) -> String {
    if told.contains(NOT_PUBLIC) {
        return format!(
            "{named} redirects to {url}, which {NOT_PUBLIC}, so it is not followed. If you trust that address, give it directly."
        );
    }
    format!("{named} redirects to {url}: {told}")
}

fn describe_refusal(host: &str) -> String {
    format!(
        "{host} {NOT_PUBLIC}, so it is not fetched. The user can allow it: toolCall.fetchUrl.allowedHosts"
    )
}

fn is_text(kind: &str) -> bool {
    let known = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-yaml",
        "application/yaml",
        "application/toml",
        "application/x-sh",
        "application/sql",
        "application/graphql",
        "application/x-ndjson",
        "image/svg+xml",
    ];
    kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") || known.contains(&kind)
}

/// The innermost cause says what a person can use.
fn describe_error(url: &Url, error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("{url} cannot be fetched: {cause}.")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers every request by its path.
    async fn serve(answer: fn(&str, u16) -> String) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buffer = vec![0; 4096];
                    let length = socket.read(&mut buffer).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                    if path == "/hang" {
                        std::future::pending::<()>().await;
                    }
                    let _ = socket.write_all(answer(&path, port).as_bytes()).await;
                });
            }
        });
        port
    }

    fn answer(path: &str, port: u16) -> String {
        let go = |to: String| format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let body = |kind: &str, text: &str| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{text}", text.len())
        };
        match path {
            "/once" => go("/text".to_owned()),
            "/loop" => go("/loop".to_owned()),
            "/inside" => go(format!("http://127.0.0.2:{port}/text")),
            "/mapped" => go(format!("http://[::ffff:127.0.0.2]:{port}/text")),
            "/name" => go(format!("http://localhost:{port}/text")),
            "/file" => go("file:///etc/passwd".to_owned()),
            "/nowhere" => "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "/binary" => body("application/zip", "PK"),
            "/long" => body("text/plain", &"x".repeat(5_000)),
            "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => body("text/plain; charset=\"UTF-8\"", "hello"),
        }
    }

    #[tokio::test]
    async fn every_hop_is_checked() {
        let port = serve(answer).await;
        // Only this one address may be reached, as only public ones may otherwise.
        let permits: AddressFilter = |address| address == IpAddr::V4(Ipv4Addr::LOCALHOST);
        let fetcher = Fetcher {
            permits,
            hosts: Arc::new([]),
            max_bytes: 1_000,
            time: Duration::from_millis(1_500),
            named: None,
            client: OnceLock::new(),
        };
        let rows = [
            ("/text", Ok("hello")),
            ("/once", Ok("hello")),
            ("/loop", Err("too often")),
            ("/inside", Err("not on the public internet")),
            ("/mapped", Err("not on the public internet")),
            ("/file", Err("neither http nor https")),
            ("/nowhere", Err("redirects to nowhere")),
            ("/binary", Err("not text")),
            ("/missing", Err("404")),
            ("/hang", Err("longer than")),
        ];
        for (path, expected) in rows {
            let url = format!("http://127.0.0.1:{port}{path}");
            match (fetcher.fetch(&url, &CancellationToken::new()).await, expected) {
                (Ok(fetched), Ok(text)) => assert_eq!(fetched.bytes, text.as_bytes(), "{path}"),
                (Err(told), Err(part)) => assert!(told.contains(part), "{path}: {told}"),
                (found, _) => panic!("{path}: {found:?}"),
            }
        }
        let long =
            fetcher.fetch(&format!("http://127.0.0.1:{port}/long"), &CancellationToken::new()).await.unwrap();
        assert!(long.cut && long.bytes.len() == 1_000);
        let stopped = CancellationToken::new();
        stopped.cancel();
        assert!(fetcher.fetch("http://127.0.0.1/hang", &stopped).await.unwrap_err().contains("stopped"));
    }

    #[tokio::test]
    async fn the_own_network_is_refused() {
        let port = serve(answer).await;
        let fetcher = Fetcher::new(Vec::new(), 1_000, Duration::from_secs(5));
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "017700000001",
            "0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "169.254.169.254",
            "[fe80::1]",
            "0.0.0.0",
            "user:x@127.0.0.1",
        ] {
            let told = fetcher
                .fetch(&format!("http://{host}:{port}/text"), &CancellationToken::new())
                .await
                .unwrap_err();
            assert!(
                told.contains("not on the public internet") || told.contains("user name"),
                "{host}: {told}"
            );
        }
        // An address that a person named may be inside; what it redirects to may not.
        let place = |path: &str| format!("http://localhost:{port}{path}");
        let named = Fetcher::at(&place("/"), 1_000, Duration::from_secs(5));
        assert!(named.fetch(&place("/once"), &CancellationToken::new()).await.is_ok(), "on the same server");
        let told = named.fetch(&place("/inside"), &CancellationToken::new()).await.unwrap_err();
        assert!(told.contains("redirects to") && told.contains("not on the public internet"), "{told}");
        assert!(told.contains("give it directly") && !told.contains("allowedHosts"), "{told}");
        let open = Fetcher::new(vec!["LocalHost".to_owned()], 1_000, Duration::from_secs(5));
        let ask = async |path: &str| {
            open.fetch(&format!("http://localhost:{port}{path}"), &CancellationToken::new()).await
        };
        assert!(ask("/").await.is_ok());
        assert!(ask("/inside").await.is_err(), "a host that is allowed allows no other");
    }
}
