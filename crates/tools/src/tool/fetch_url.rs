//! `fetch_url`: a page of the web as text.

use std::sync::Arc;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{CancellationToken, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::blocking;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::web::fetch::Fetcher;
use crate::web::page::page_text;

pub struct FetchUrl {
    pub fetcher: Arc<Fetcher>,
    pub output_bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    url: String,
    /// Bytes of text to skip
    #[serde(default, deserialize_with = "lenient::number")]
    offset: Option<usize>,
}

impl BuiltInTool for FetchUrl {
    type Input = Input;

    const NAME: &'static str = "fetch_url";
    const DESCRIPTION: &'static str = "Fetch a web page as text.";
    const EFFECT: ToolEffect = ToolEffect::UsesNetwork;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        if !input.url.starts_with("http://") && !input.url.starts_with("https://") {
            return Err(format!("{} is not an http or https address.", input.url));
        }
        // An approval for the session covers the host and the port, not the whole network.
        let address = reqwest::Url::parse(&input.url).map_err(|error| format!("{}: {error}.", input.url))?;
        let keys = vec![format!("fetch_url {}", address.origin().ascii_serialization())];
        Ok(Review { summary: format!("Fetching {}", input.url), keys, ..Review::default() })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let text = page(&self.fetcher, &input.url, &call.cancel).await?;
        Ok(ToolResult::text(window(&text, input.offset.unwrap_or(0), self.output_bytes)))
    }
}

/// The whole text of a page.
pub async fn page(fetcher: &Fetcher, url: &str, cancel: &CancellationToken) -> Result<String, String> {
    let fetched = fetcher.fetch(url, cancel).await?;
    let cut = fetched.cut;
    let text = blocking(move || Ok(page_text(&fetched))).await?;
    Ok(if cut { text + "\n[the page is longer than what was fetched]" } else { text })
}

pub fn window(text: &str, from: usize, most: usize) -> String {
    if text.is_empty() {
        return "(The page holds no text.)".to_owned();
    }
    let start = text.ceil_char_boundary(from);
    let end = text.floor_char_boundary((start + most).min(text.len()));
    if start >= text.len() {
        return format!("(The text has only {} bytes.)", text.len());
    }
    let note = if end < text.len() {
        format!("\n[{end} of {} bytes; go on with offset {end}]", text.len())
    } else {
        String::new()
    };
    format!("{}{note}", &text[start..end])
}
