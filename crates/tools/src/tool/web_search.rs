//! `web_search`: pages of the web that match some words, by the service or the model that the user configured.

use std::fmt::Write as _;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult, WebAnswer};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::unless_cancelled;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::web::search::Searcher;

const RESULTS: usize = 8;
const MOST_RESULTS: usize = 20;
const MOST_TEXT: usize = 600;

pub(crate) struct WebSearch {
    pub(crate) searcher: Searcher,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    query: String,
    /// How many results
    #[serde(default, deserialize_with = "lenient::number")]
    count: Option<usize>,
}

impl BuiltInTool for WebSearch {
    type Input = Input;

    const NAME: &'static str = "web_search";
    const DESCRIPTION: &'static str = "Search the web; read a result with fetch_url.";
    const EFFECT: ToolEffect = ToolEffect::UsesNetwork;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        if input.query.trim().is_empty() {
            return Err("query is empty.".to_owned());
        }
        let origin = self.searcher.origin()?;
        let summary = format!("Searching the web ({origin}) for {}", input.query);
        Ok(Review { summary, keys: vec![format!("web_search {origin}")], ..Review::default() })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let service = match &self.searcher {
            Searcher::Service(service) => service,
            Searcher::Model(model) => {
                let asked = call.context.search_web(model, &input.query);
                let answer = unless_cancelled(&call.cancel, asked).await?;
                return Ok(ToolResult::text(describe(&answer.map_err(|failure| failure.to_string())?)));
            }
        };
        let most = input.count.unwrap_or(RESULTS).clamp(1, MOST_RESULTS);
        let results = unless_cancelled(&call.cancel, service.search(&input.query, most)).await??;
        if results.is_empty() {
            return Ok(ToolResult::text("No page was found."));
        }
        let mut out = String::new();
        for (number, result) in results.iter().enumerate() {
            let text = &result.text[..result.text.floor_char_boundary(MOST_TEXT)];
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}. {}\n{}\n{text}\n", number + 1, result.title, result.url);
        }
        Ok(ToolResult::text(out.trim_end()))
    }
}

/// What a model found, with the pages that it cites.
fn describe(answer: &WebAnswer) -> String {
    let mut out = answer.text.trim().to_owned();
    if out.is_empty() && answer.pages.is_empty() {
        return "Nothing was found.".to_owned();
    }
    for (number, (title, url)) in answer.pages.iter().enumerate() {
        let gap = if number == 0 { "\n\n" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{gap}{}. {title}\n{url}", number + 1);
    }
    out.trim_start().to_owned()
}
