//! The sending half of a ready connection: typed requests with deadlines, their failures as sentences.
//!
//! Knows neither pipes nor HTTP. In the stateless era each request carries the revision and the client's capabilities,
//! and a result may ask for input first. Cheap to clone; it outlives its connection and then refuses.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::AskKind;
use rpc::{Outgoing, RequestError};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::calls::{ActiveCall, Calls};
use crate::era::Era;
use crate::form;
use crate::handler::ChangedLists;
use crate::http::Refusal;
use crate::read_cache::ReadCache;
use crate::request_error::describe_error;
use crate::sampling;
use crate::text::single_line;
use crate::wire::{self, Capabilities, InputRequired, Offered};

/// How often a server may ask for more input before it gives a result.
pub(crate) const MAX_INPUT_ROUNDS: usize = 10;

#[derive(Clone)]
pub(crate) struct Client {
    pub outgoing: Outgoing,
    pub calls: Arc<Calls>,
    shared: Arc<ClientFacts>,
}

/// The facts of a connection that do not change.
pub(crate) struct ClientFacts {
    pub server: String,
    pub era: Era,
    pub offered: Offered,
    pub roots: Value,
    pub capabilities: Capabilities,
    pub is_http: bool,
    /// Set when the server refuses requests without a login.
    pub refusal: Arc<Mutex<Option<Refusal>>>,
    /// What a person does to log in.
    pub login_help: String,
    /// The revision of the protocol that is spoken.
    pub revision: String,
    /// The version of the server's own program.
    pub program_version: Option<String>,
    pub changed: Arc<ChangedLists>,
    pub read_cache: Arc<ReadCache>,
}

impl Client {
    pub(crate) fn new(outgoing: Outgoing, calls: Arc<Calls>, facts: ClientFacts) -> Self {
        Self { outgoing, calls, shared: Arc::new(facts) }
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    pub(crate) fn revision(&self) -> &str {
        &self.shared.revision
    }

    pub(crate) fn program_version(&self) -> Option<&str> {
        self.shared.program_version.as_deref()
    }

    pub(crate) fn is_http(&self) -> bool {
        self.shared.is_http
    }

    /// What a person must do before the server takes requests, where it has refused one without a login.
    pub(crate) fn login_required(&self) -> Option<String> {
        let refusal = self.shared.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_login = refusal.as_ref().is_some_and(|refusal| refusal.is_login);
        is_login.then(|| self.shared.login_help.clone())
    }

    pub(crate) fn changed(&self) -> &ChangedLists {
        &self.shared.changed
    }

    pub(crate) fn read_cache(&self) -> &ReadCache {
        &self.shared.read_cache
    }

    pub(crate) fn era(&self) -> Era {
        self.shared.era
    }

    /// The params of a request, with the members that its era demands.
    pub(crate) fn params(&self, mut params: Value) -> Value {
        if self.shared.era == Era::Stateless
            && let (Value::Object(members), Value::Object(meta)) =
                (&mut params, wire::meta(self.shared.offered))
            && let Value::Object(known) = members.entry("_meta").or_insert_with(|| json!({}))
        {
            known.extend(meta);
        }
        params
    }

    /// One request; a failure is a sentence about the server (`It …`). Forms are declined: no call is there to show them.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        deadline: Duration,
    ) -> Result<T, String> {
        Ok(self.request_rounds(method, params, deadline).await?.0)
    }

    /// The same, with how often the server asked for input before.
    pub(crate) async fn request_rounds<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        deadline: Duration,
    ) -> Result<(T, usize), String> {
        let failed = |error: RequestError| describe_error(method, &error, deadline);
        let mut params = self.params(params.clone());
        for rounds in 0..MAX_INPUT_ROUNDS {
            let reply = self.outgoing.request(method, &params, deadline).await.map_err(failed)?;
            match self.input_required(&reply) {
                Some(required) => params = self.with_input(params, required, None).await?,
                None => {
                    let read = serde_json::from_str(reply.get()).map_err(RequestError::Unexpected);
                    return Ok((read.map_err(failed)?, rounds));
                }
            }
        }
        Err(format!("It asked for input more than {MAX_INPUT_ROUNDS} times."))
    }

    /// Whether a result of the stateless era asks for input first.
    pub(crate) fn input_required(&self, reply: &RawValue) -> Option<InputRequired> {
        let required: InputRequired = serde_json::from_str(reply.get()).ok()?;
        (self.shared.era == Era::Stateless && required.result_type.as_deref() == Some("input_required"))
            .then_some(required)
    }

    /// The params of the repeated request: with an answer for each question of the server, and with its state.
    pub(crate) async fn with_input(
        &self,
        mut params: Value,
        required: InputRequired,
        call: Option<&ActiveCall>,
    ) -> Result<Value, String> {
        let mut responses = Map::new();
        for (key, request) in required.input_requests.unwrap_or_default() {
            let response = match request["method"].as_str() {
                Some("roots/list") => self.shared.roots.clone(),
                Some("elicitation/create") => self.elicit(&request["params"], call).await?,
                Some("sampling/createMessage") => self.sample(&request["params"], call).await?,
                other => {
                    let other = single_line(other.unwrap_or("something without a name"), 100);
                    return Err(format!("It asks for {other}, which this client does not offer."));
                }
            };
            responses.insert(key, response);
        }
        if let Value::Object(members) = &mut params {
            members.insert("inputResponses".to_owned(), responses.into());
            members.shift_remove("requestState");
            if let Some(state) = required.request_state {
                members.insert("requestState".to_owned(), state);
            }
        }
        Ok(params)
    }

    async fn sample(&self, params: &Value, call: Option<&ActiveCall>) -> Result<Value, String> {
        let server = &self.shared.server;
        match call {
            _ if !self.shared.offered.sampling => Err(sampling::refusal(server)),
            None => Err("It asks for the model where nobody can be asked.".to_owned()),
            Some(call) => sampling::sample_input(server, params, call).await,
        }
    }

    async fn elicit(&self, params: &Value, call: Option<&ActiveCall>) -> Result<Value, String> {
        let unreadable = |problem: String| format!("It asks for a form that cannot be shown: {problem}.");
        let elicitation =
            serde_json::from_value(params.clone()).map_err(|error| unreadable(error.to_string()))?;
        let form: AskKind = form::parse_form(&self.shared.server, elicitation).map_err(unreadable)?;
        match call.filter(|call| call.open_form()) {
            Some(call) => Ok(form::ask_user(call, form).await),
            None => Ok(json!({"action": "decline"})),
        }
    }
}
