//! Which authorization server may get the user's secrets: the one of the settings, else the one of the first login.
//!
//! A server names its authorization server itself. Invariant: a secret or an assertion of the settings goes to no issuer that a
//! person has not seen and accepted, by the settings or by a login. The first one is seen in the browser, or was shown as the
//! state of the server; another one than before is accepted only by a second login.

use super::authorization::Authorization;
use super::settings::OauthGrant;
use crate::text::single_line;

/// Why an authorization server is not used.
#[derive(Debug)]
pub(super) enum IssuerRefused {
    /// A person may accept it by a login.
    Unaccepted(String),
    /// A login does not help.
    Final(String),
}

impl Authorization {
    /// The issuer of the settings, else that of the last login.
    pub(super) fn pinned_issuer(&self) -> Option<String> {
        let stored = || self.read().ok().and_then(|logins| logins.issuer(self.key()).map(str::to_owned));
        self.settings.issuer.clone().or_else(stored)
    }

    /// Whether something of the settings would be sent to the issuer that it must not see.
    fn has_secrets(&self) -> bool {
        let settings = &self.settings;
        let texts = [&settings.client_secret, &settings.private_key, &settings.assertion];
        texts.into_iter().any(Option::is_some) || settings.identity.is_some()
    }

    /// Without a person.
    pub(super) fn check_issuer(&self, issuer: &str) -> Result<(), IssuerRefused> {
        let shown = single_line(issuer, 200);
        if let Some(wanted) = &self.settings.issuer {
            return match is_same(wanted, issuer) {
                true => Ok(()),
                false => Err(IssuerRefused::Final(format!(
                    "It names {shown} as its authorization server, but `issuer` of its entry is {}. It gets nothing there.",
                    single_line(wanted, 200)
                ))),
            };
        }
        if !self.has_secrets() {
            return Ok(());
        }
        match self.pinned_issuer() {
            Some(known) if known == issuer => Ok(()),
            Some(known) => Err(IssuerRefused::Unaccepted(format!(
                "It names {shown} as its authorization server, which was {} before. The secrets of its entry are not sent \
                 there unless you log in twice to accept it, or set `issuer` in its entry.",
                single_line(&known, 200)
            ))),
            None => Err(IssuerRefused::Unaccepted(format!(
                "It names {shown} as its authorization server, which would get the secrets of its entry. Log in to accept \
                 it, or set `issuer` in its entry."
            ))),
        }
    }

    /// The first issuer, which the state of the server shows now. A login accepts what was shown.
    pub(super) fn offer_first_issuer(&self, issuer: &str) {
        let is_first = self.read().is_ok_and(|logins| logins.issuer(self.key()).is_none());
        if is_first
            && let Err(failure) = self.change(|logins| logins.record_offered_issuer(self.key(), issuer))
        {
            tracing::warn!(%failure, "the authorization server of a server could not be stored");
        }
    }

    /// For a person who logs in: an issuer is accepted when the person has been shown it before.
    pub(super) fn accept_issuer(&self, issuer: &str) -> Result<(), String> {
        let reason = match self.check_issuer(issuer) {
            Ok(()) => return Ok(()),
            Err(IssuerRefused::Final(reason)) => return Err(reason),
            Err(IssuerRefused::Unaccepted(reason)) => reason,
        };
        let logins = self.read().map_err(|failure| failure.to_string())?;
        let is_seen_in_browser =
            logins.issuer(self.key()).is_none() && self.settings.grant == OauthGrant::AuthorizationCode;
        if is_seen_in_browser || logins.offered_issuer(self.key()) == Some(issuer) {
            return Ok(());
        }
        self.change(|logins| logins.record_offered_issuer(self.key(), issuer))
            .map_err(|failure| failure.to_string())?;
        Err(reason)
    }
}

/// A slash at the end is written by some and not by others.
fn is_same(wanted: &str, issuer: &str) -> bool {
    wanted.trim_end_matches('/') == issuer.trim_end_matches('/')
}
