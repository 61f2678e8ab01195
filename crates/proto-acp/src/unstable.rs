//! Methods that the schema marks as unstable, for clients that ask for them: `session/set_title`, `session/status` and
//! `auth/status`.
//!
//! Invariant: a title is stored before the response leaves, and no session stays loaded for it.

use domain::command::{Catalog, SessionSettings};
use domain::provider::{AccountState, ProviderStatus};
use domain::{Command, Failure, FailureKind, SessionId, visible_line};
use rpc::Responder;

use crate::faults::{fault_of, not_found};
use crate::from_wire::invalid;
use crate::server::Server;
use crate::wire::acp;

/// Longest title, in characters.
const TITLE: usize = 200;
/// How the ids of models begin that need no account.
const EMBEDDED: &str = "local/";

impl Server {
    pub(crate) async fn set_title(&mut self, params: acp::SetSessionTitleRequest, responder: Responder) {
        let title = title_of(&params.title);
        if title.is_empty() {
            return responder.fail(invalid("The title is empty."));
        }
        let session = SessionId::new(params.session_id.0);
        let is_open = self.sessions.contains_key(&session);
        let change = SessionSettings { title: Some(title.clone()), ..SessionSettings::default() };
        let (chat, loaded) = (Some(session.clone()), session.clone());
        self.engine
            .call(
                |reply| Command::Configure { session: chat, change, reply },
                move |server, done| match done {
                    Ok(settings) => {
                        let stored = settings.title.unwrap_or(title);
                        server.respond(responder, &acp::SetSessionTitleResponse::new(stored));
                    }
                    Err(failure) if failure.kind == FailureKind::User => {
                        server.fail(responder, not_found(&session, &failure.to_string()));
                    }
                    Err(failure) => server.fail(responder, fault_of(&failure)),
                },
            )
            .await;
        if !is_open {
            let closed = self.engine.send(|reply| Command::Close { session: loaded, reply }).await;
            self.engine.later(closed, |_, _| {});
        }
    }

    /// `open` for the sessions of this connection; `saved` is always a safe answer.
    pub(crate) async fn session_status(&mut self, params: acp::SessionStatusRequest, responder: Responder) {
        let session = SessionId::new(params.session_id.0);
        if self.sessions.contains_key(&session) {
            return self.respond(responder, &acp::SessionStatusResponse::new(acp::SessionStatus::Open));
        }
        let chat = session.clone();
        self.engine
            .call(
                |reply| Command::Preview { session: chat, limit: 1, reply },
                move |server, found| match found {
                    Ok(Some(_)) => {
                        let saved = acp::SessionStatusResponse::new(acp::SessionStatus::Saved);
                        server.respond(responder, &saved);
                    }
                    Ok(None) => {
                        server.fail(responder, not_found(&session, "There is no such session."));
                    }
                    Err(failure) => server.fail(responder, fault_of(&failure)),
                },
            )
            .await;
    }

    pub(crate) async fn auth_status(&mut self, responder: Responder) {
        let catalog = self.engine.send(|reply| Command::Catalog { reply }).await;
        let providers = self.engine.send(|reply| Command::Providers { reply }).await;
        let work = async move { Ok((catalog.await?, providers.await)) };
        self.engine.later(work, move |server, done: Result<_, Failure>| match done {
            // A server on another machine keeps its accounts to itself.
            Ok((catalog, providers)) => {
                let is_in = !server.logged_out;
                let response = auth_status(&catalog, &providers.unwrap_or_default(), is_in);
                server.respond(responder, &response);
            }
            Err(failure) => server.fail(responder, fault_of(&failure)),
        });
    }
}

/// One line without characters that hide something.
fn title_of(title: &str) -> String {
    let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    visible_line(&line).chars().take(TITLE).collect()
}

fn auth_status(catalog: &Catalog, providers: &[ProviderStatus], is_in: bool) -> acp::AuthStatusResponse {
    let model = catalog.default_model.as_deref();
    let state = match model {
        Some(_) if !is_in => acp::AuthState::Unauthenticated,
        Some(model) if model.starts_with(EMBEDDED) => acp::AuthState::NotRequired,
        Some(_) => acp::AuthState::Authenticated,
        None => acp::AuthState::Unauthenticated,
    };
    let is_used = |provider: &ProviderStatus| {
        model.and_then(|model| model.split_once('/')).is_some_and(|(first, _)| first == provider.id)
    };
    let accounts = providers.iter().filter(|provider| provider.state == AccountState::LoggedIn);
    let accounts = accounts.map(|it| acp::AuthAccount::new(it.id.clone()).active(is_used(it)));
    acp::AuthStatusResponse::new(state).accounts(accounts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title_of("  two\n words "), "two words");
        assert_eq!(title_of(" \n "), "");
        assert_eq!(title_of(&"a".repeat(500)).chars().count(), TITLE);
    }

    #[test]
    fn the_state_of_accounts_follows_from_the_model() {
        let account = |id: &str, state| ProviderStatus {
            id: id.to_owned(),
            is_configured: true,
            state,
            source: None,
            methods: Vec::new(),
            models: Vec::new(),
        };
        let providers = [account("a", AccountState::LoggedIn), account("b", AccountState::LoggedOut)];
        for (model, is_in, state) in [
            (Some("a/plain"), true, acp::AuthState::Authenticated),
            (Some("a/plain"), false, acp::AuthState::Unauthenticated),
            (Some("local/small"), true, acp::AuthState::NotRequired),
            (None, true, acp::AuthState::Unauthenticated),
        ] {
            let catalog = Catalog { default_model: model.map(Into::into), ..Catalog::default() };
            let status = auth_status(&catalog, &providers, is_in);
            assert_eq!(status.state, state, "{model:?} {is_in}");
            assert_eq!(status.accounts.len(), 1);
            assert_eq!(status.accounts[0].active, Some(model == Some("a/plain")));
        }
    }
}
