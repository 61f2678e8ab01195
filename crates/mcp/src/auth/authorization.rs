//! The authorization of one server: its settings, its stored login and the token in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Failure;
use reqwest::Url;

use super::logins::{self, LoginStore, Logins, StoredToken};
use super::settings::OauthSettings;

/// The authorization of one server.
pub(crate) struct Authorization {
    pub(super) url: Url,
    pub(super) settings: OauthSettings,
    pub(super) logins: Arc<dyn LoginStore>,
    pub(super) token: Mutex<Option<StoredToken>>,
    /// The token that was sent last: a server may repeat it in its answer.
    pub(super) last_sent: Mutex<String>,
    /// Held during a renewal, so that requests that were refused together renew once. Always under a deadline.
    pub(super) renewal: tokio::sync::Mutex<()>,
}

impl Authorization {
    pub(crate) fn new(url: &Url, settings: OauthSettings, logins: Arc<dyn LoginStore>) -> Self {
        let mut url = url.clone();
        url.set_fragment(None);
        Self {
            url,
            settings,
            logins,
            token: Mutex::default(),
            last_sent: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        }
    }

    /// The server as its login is stored under.
    pub(super) fn key(&self) -> &str {
        self.url.as_str()
    }

    pub(super) fn read(&self) -> Result<Logins, Failure> {
        logins::read(self.logins.as_ref())
    }

    pub(super) fn change(&self, change: impl Fn(&mut Logins)) -> Result<(), Failure> {
        logins::change(self.logins.as_ref(), change)
    }

    pub(super) fn token(&self) -> MutexGuard<'_, Option<StoredToken>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
