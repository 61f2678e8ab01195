//! The client's way to a server: TCP, TLS, and the upgrade to a WebSocket.
//!
//! Invariants: the token is in the `Authorization` header and in no error or log; a server that answers anything but the upgrade
//! is not spoken to; the whole of it has a deadline.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::address::Address;
use crate::channel::Stream;
use crate::handshake::{CONNECTION_ID, RESUME, accept_key};

const CONNECT_DEADLINE: Duration = Duration::from_secs(20);
/// The longest head of an answer, and the longest body of a refusal that is read.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;

/// A server and the right to use it.
pub struct Target {
    pub address: Address,
    pub tls: Option<Arc<ClientConfig>>,
    pub token: String,
    /// As `User-Agent` has it.
    pub program: String,
}

/// A connection that carries messages now.
pub struct Opened {
    pub stream: Box<dyn Stream>,
    pub already_read: Vec<u8>,
    /// The server's name of the connection.
    pub id: Option<String>,
    /// How many messages the server has received; `None`: it cannot resume.
    pub peer_received: Option<u64>,
}

#[derive(Debug)]
pub enum ConnectError {
    /// It may be possible later.
    Unreachable(String),
    /// The server no longer knows the connection.
    Lost,
    /// Trying again does not help.
    Refused(String),
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    rest: Vec<u8>,
}

impl Target {
    /// A new connection, or one more for a connection that was lost: its id, and how many messages were received on it.
    pub async fn connect(&self, resumed: Option<(&str, u64)>) -> Result<Opened, ConnectError> {
        match tokio::time::timeout(CONNECT_DEADLINE, self.open(resumed)).await {
            Ok(opened) => opened,
            Err(_) => Err(ConnectError::Unreachable("it does not answer".to_owned())),
        }
    }

    async fn open(&self, resumed: Option<(&str, u64)>) -> Result<Opened, ConnectError> {
        let mut stream = self.dial().await?;
        let mut nonce = [0; 16];
        let no_random = |_| ConnectError::Refused("the system gives no random numbers".to_owned());
        SystemRandom::new().fill(&mut nonce).map_err(no_random)?;
        let key = STANDARD.encode(nonce);
        let broken = |error: std::io::Error| ConnectError::Unreachable(error.to_string());
        stream.write_all(self.request(&key, resumed).as_bytes()).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let answer = read_head(&mut stream).await?;
        if answer.status != 101 {
            return Err(refusal(answer, &mut stream, resumed.is_some()).await);
        }
        if answer.header("sec-websocket-accept") != Some(accept_key(&key).as_str()) {
            return Err(ConnectError::Refused("its answer is not one of a WebSocket".to_owned()));
        }
        let id = answer.header(CONNECTION_ID).map(str::to_owned);
        let peer_received = answer.header(RESUME).and_then(|count| count.parse().ok());
        Ok(Opened { stream, already_read: answer.rest, id, peer_received })
    }

    async fn dial(&self) -> Result<Box<dyn Stream>, ConnectError> {
        let address = &self.address;
        let unreachable = |error: std::io::Error| ConnectError::Unreachable(error.to_string());
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(unreachable)?;
        let _ = stream.set_nodelay(true);
        let Some(config) = self.tls.clone().filter(|_| address.is_secure) else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(address.host.clone())
            .map_err(|_| ConnectError::Refused("its name is not one of a host".to_owned()))?;
        match tokio_rustls::TlsConnector::from(config).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(tls_error(&error)),
        }
    }

    fn request(&self, key: &str, resumed: Option<(&str, u64)>) -> String {
        let Address { authority, path, .. } = &self.address;
        let received = resumed.map_or(0, |(_, received)| received);
        let mut request = format!(
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nUser-Agent: {}\r\n\
             Authorization: Bearer {}\r\n{RESUME}: {received}\r\n",
            self.program, self.token
        );
        if let Some((id, _)) = resumed {
            request.push_str(&format!("{CONNECTION_ID}: {id}\r\n"));
        }
        request + "\r\n"
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A certificate that does not fit stays so; everything else may pass.
fn tls_error(error: &std::io::Error) -> ConnectError {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. },
        )) => ConnectError::Refused(
            "its certificate has expired; the administrator of the server must renew it".to_owned(),
        ),
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::General(_)) => {
            ConnectError::Refused(format!(
                "its certificate is not accepted: {error}. Compare its fingerprint with the one that the server prints, and give \
             it as --fingerprint"
            ))
        }
        _ => ConnectError::Unreachable(error.to_string()),
    }
}

async fn read_head(stream: &mut Box<dyn Stream>) -> Result<Answer, ConnectError> {
    let mut bytes = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(&bytes) {
            Ok(httparse::Status::Complete(length)) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
                let headers = response
                    .headers
                    .iter()
                    .map(|it| (it.name.to_ascii_lowercase(), text(it.value)))
                    .collect();
                let status = response.code.unwrap_or_default();
                return Ok(Answer { status, headers, rest: bytes.split_off(length) });
            }
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES => {}
            _ => return Err(ConnectError::Refused("its answer is not HTTP".to_owned())),
        }
        let count = stream.read_buf(&mut bytes).await;
        match count {
            Ok(0) => return Err(ConnectError::Unreachable("it closed the connection".to_owned())),
            Ok(_) => {}
            Err(error) => return Err(ConnectError::Unreachable(error.to_string())),
        }
    }
}

/// The server's own sentence, where it has one.
async fn refusal(answer: Answer, stream: &mut Box<dyn Stream>, is_resumed: bool) -> ConnectError {
    let length =
        answer.header("content-length").and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let mut body = answer.rest;
    while body.len() < length.min(HEAD_BYTES) {
        match stream.read_buf(&mut body).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let error = value.get("error").unwrap_or(&value);
    let told = match error["message"].as_str() {
        Some(message) => {
            let hint = error["hint"].as_str().unwrap_or_default();
            let shown: String =
                format!("{message} {hint}").chars().filter(|c| !c.is_control()).take(500).collect();
            shown.trim().trim_end_matches('.').to_owned()
        }
        None => format!("it answers with status {}", answer.status),
    };
    match answer.status {
        404 | 410 if is_resumed => ConnectError::Lost,
        408 | 425 | 429 | 500..=599 => ConnectError::Unreachable(told),
        _ => ConnectError::Refused(told),
    }
}
