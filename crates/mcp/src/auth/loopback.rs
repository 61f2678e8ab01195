//! The address that a browser comes back to after a login: a small HTTP server on this machine, for one request.
//!
//! Invariants: it listens on the loopback address alone; a request that does not carry the state of this login changes nothing.

use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATH: &str = "/callback";
const MAX_REQUEST_BYTES: usize = 16 << 10;
const READ_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Loopback {
    listener: TcpListener,
    pub redirect_uri: String,
}

/// The parameters of an answer to an authorization request.
#[derive(Default)]
pub(super) struct Callback {
    pub code: Option<String>,
    pub issuer: Option<String>,
    pub error: Option<String>,
}

impl Loopback {
    /// Listens at this port, else at any free one.
    pub(super) async fn open(ports: &[u16]) -> Result<Self, String> {
        let mut problem = String::new();
        for port in ports {
            match TcpListener::bind(("127.0.0.1", *port)).await {
                Ok(listener) => {
                    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
                    return Ok(Self { listener, redirect_uri: format!("http://127.0.0.1:{port}{PATH}") });
                }
                Err(error) => problem = format!("Port {port} of this machine cannot be used: {error}."),
            }
        }
        Err(problem)
    }

    /// The first answer that belongs to this login.
    pub(super) async fn callback(&self, state: &str) -> Callback {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let target = tokio::time::timeout(READ_TIMEOUT, read_target(&mut stream)).await.ok().flatten();
            let callback = target
                .and_then(|target| Url::parse(&format!("http://127.0.0.1{target}")).ok())
                .filter(|url| url.path() == PATH)
                .and_then(|url| read_callback(&url, state));
            let (status, text) = match &callback {
                Some(Callback { error: None, .. }) => ("200 OK", "You are back. You can close this page."),
                Some(_) => ("200 OK", "The login was refused. You can close this page."),
                None => ("404 Not Found", "There is nothing here."),
            };
            let _ = tokio::time::timeout(READ_TIMEOUT, answer(&mut stream, status, text)).await;
            if let Some(callback) = callback {
                return callback;
            }
        }
    }
}

/// The parameters of an address that the browser came to; `None`: it belongs to another login.
pub(super) fn read_callback(url: &Url, state: &str) -> Option<Callback> {
    let mut callback = Callback::default();
    let mut states = Vec::new();
    for (name, value) in url.query_pairs() {
        let place = match name.as_ref() {
            "state" => {
                states.push(value.into_owned());
                continue;
            }
            "code" => &mut callback.code,
            "iss" => &mut callback.issuer,
            "error" => &mut callback.error,
            _ => continue,
        };
        // A parameter that comes twice is a trick.
        if place.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    (states == [state]).then_some(callback)
}

async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") && bytes.len() < MAX_REQUEST_BYTES {
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    let line = String::from_utf8_lossy(&bytes);
    let mut words = line.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><title>Dragoman</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        page.len()
    );
    let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_this_login_counts() {
        let read =
            |query: &str| read_callback(&Url::parse(&format!("http://h/callback?{query}")).unwrap(), "s");
        let callback = read("code=c&state=s&iss=https%3A%2F%2Fid").unwrap();
        assert_eq!((callback.code.as_deref(), callback.issuer.as_deref()), (Some("c"), Some("https://id")));
        assert_eq!(read("error=access_denied&state=s").unwrap().error.as_deref(), Some("access_denied"));
        for other in ["code=c", "code=c&state=x", "code=c&state=s&state=s", "code=c&code=d&state=s", ""] {
            assert!(read(other).is_none(), "{other}");
        }
    }
}
