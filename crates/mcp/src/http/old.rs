//! The HTTP+SSE transport of the revision 2024-11-05: one long stream for all messages of the server, and an address of
//! its own for messages to it.
//!
//! Invariants: messages go only to the origin that the user configured; the end of the stream ends the connection.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use rpc::sse::SseParser;
use tokio_util::task::AbortOnDropHandle;

use super::exchange::{Exchange, HttpSession, OldTransport};
use super::response::is_stream;
use crate::wire::MAX_MESSAGE_BYTES;

/// How long the server may take to name its address for messages.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(5);

impl Exchange {
    /// Opens the stream; `None` where the server has none.
    pub(super) async fn open_old_stream(self: &Arc<Self>) -> Option<OldTransport> {
        let opening = async {
            let session = HttpSession::default();
            let mut response = self.send(Method::GET, &session, None, None).await.ok().filter(is_stream)?;
            let mut parser = SseParser::with_limit(MAX_MESSAGE_BYTES);
            loop {
                parser.push(&response.chunk().await.ok()??).ok()?;
                if let Some(event) = parser.next_event() {
                    let endpoint =
                        (event.name == "endpoint").then(|| self.endpoint_at(event.data)).flatten()?;
                    return Some((endpoint, response, parser));
                }
            }
        };
        let (endpoint, mut response, mut parser) =
            tokio::time::timeout(ENDPOINT_TIMEOUT, opening).await.ok()??;
        let reading = self.clone();
        let reader = tokio::spawn(async move {
            loop {
                while let Some(event) = parser.next_event() {
                    let data = if matches!(event.name, "" | "message") { event.data.as_bytes() } else { b"" };
                    reading.route_messages(data, None).await;
                }
                match response.chunk().await {
                    Ok(Some(chunk)) if parser.push(&chunk).is_ok() => {}
                    _ => return reading.end(),
                }
            }
        });
        Some(OldTransport { endpoint, _reader: AbortOnDropHandle::new(reader) })
    }
}
