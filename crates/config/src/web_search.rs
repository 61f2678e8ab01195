//! `webSearch`: the service or the model that the tool `web_search` asks.

use domain::Level;

use crate::cursor::Cursor;
use crate::destination::Destination;
use crate::lazy_text::SecretSource;

#[derive(Debug, Clone, PartialEq)]
pub enum WebSearchSettings {
    Service {
        /// With `{query}` where the words stand, or an address that they are posted to.
        url: String,
        headers: Vec<(String, SecretSource)>,
    },
    /// `provider/model`: its provider searches by a tool of its own.
    Model(String),
}

impl WebSearchSettings {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let url = cursor.get("url").text();
        let (destination, headers) = (Destination::of(cursor, &[cursor.get("url")]), cursor.get("headers"));
        let (headers, is_short) = destination.members(&headers, headers.secrets());
        if is_short || destination.is_secret() {
            destination.report(&cursor.dotted());
        }
        if destination.is_secret() {
            return None;
        }
        let model = cursor.get("model").text();
        let Some(url) = url else {
            let is_embedded = model.as_ref().is_some_and(|model| model.starts_with("local/"));
            if is_embedded {
                cursor
                    .get("model")
                    .report(Level::Error, "must be a model of a provider; others cannot search.");
            }
            return model.filter(|_| !is_embedded).map(Self::Model);
        };
        if !url.starts_with("https://") && !url.starts_with("http://") {
            cursor
                .get("url")
                .report(Level::Error, "must be an http or https address. There is no web search.");
            return None;
        }
        for secret in crate::address::secrets(&url) {
            cursor.scope().redactor.add_secret(&secret);
        }
        Some(Self::Service { url, headers })
    }
}
