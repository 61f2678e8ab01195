//! Requests that are repeated while the first one still runs: the later ones get the same answer.
//!
//! Owns the table of running requests by their whole params. Invariant: an entry lives exactly as long as its request
//! runs, so nothing is kept between requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rpc::Fault;
use tokio::sync::watch;

use crate::wire::CustomizeResult;

type Answer = Result<CustomizeResult, Fault>;
type Running = Arc<Mutex<HashMap<Arc<str>, watch::Receiver<Option<Answer>>>>>;

#[derive(Default, Clone)]
pub(crate) struct JoinedRequests {
    running: Running,
}

pub(crate) enum Join {
    First(FirstRequest),
    Repeated(watch::Receiver<Option<Answer>>),
}

/// The request that does the work; its entry goes when it is dropped.
pub(crate) struct FirstRequest {
    params: Arc<str>,
    running: Running,
    answer: watch::Sender<Option<Answer>>,
}

impl JoinedRequests {
    pub(crate) fn join(&self, params: &str) -> Join {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = running.get(params) {
            return Join::Repeated(answer.clone());
        }
        let params: Arc<str> = Arc::from(params);
        let (answer, receiver) = watch::channel(None);
        running.insert(params.clone(), receiver);
        Join::First(FirstRequest { params, running: self.running.clone(), answer })
    }
}

impl FirstRequest {
    pub(crate) fn publish(&self, answer: Answer) {
        self.answer.send_replace(Some(answer));
    }
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.params);
    }
}

/// The answer of the first request; `None` where it ended without one.
pub(crate) async fn wait(mut answer: watch::Receiver<Option<Answer>>) -> Option<Answer> {
    let found = answer.wait_for(Option::is_some).await.ok()?;
    found.clone()
}
