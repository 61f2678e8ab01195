//! `webSearch`: the service that the tool `web_search` asks.

use domain::Level;

use crate::cursor::Cursor;
use crate::lazy_text::SecretSource;

#[derive(Debug, Clone, PartialEq)]
pub struct WebSearchSettings {
    /// With `{query}` where the words stand, or an address that they are posted to.
    pub url: String,
    pub headers: Vec<(String, SecretSource)>,
}

impl WebSearchSettings {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let (url, headers) = (cursor.get("url").text(), cursor.get("headers").secrets());
        let url = url?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            cursor
                .get("url")
                .report(Level::Error, "must be an http or https address. There is no web search.");
            return None;
        }
        for secret in crate::address::secrets(&url) {
            cursor.scope().redactor.add_secret(&secret);
        }
        Some(Self { url, headers })
    }
}
