//! Known models: limits, prices and abilities, without asking a server.
//!
//! Owns the built-in list (`data/catalog.txt`, read on first use) and its format, which a refreshed list shares.
//! Invariant: a model that is not listed can still be used; it only has no price and no limits.

mod fetch;
mod import;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, RwLock};

use domain::model::{ModelInfo, Price};

use crate::format::Thinking;
pub use fetch::{SOURCE, fetch};
pub use import::{facts, import};

/// One model of the list.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownModel {
    pub info: ModelInfo,
    pub thinking: Thinking,
    pub temperature: bool,
}

/// A list of models by provider, in the order of the file: best first.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    providers: HashMap<String, Section>,
}

/// The models of one provider. Most providers are never asked for, so the built-in rows are read on first use.
#[derive(Clone, Debug, Default)]
struct Section {
    unread: &'static str,
    models: OnceLock<Vec<KnownModel>>,
}

static CURRENT: LazyLock<RwLock<std::sync::Arc<Catalog>>> =
    LazyLock::new(|| RwLock::new(std::sync::Arc::new(Catalog::built_in())));

/// The list in use.
pub fn current() -> std::sync::Arc<Catalog> {
    CURRENT.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

/// Replaces the list, e.g. by one that was fetched and cached; the built-in rows stay where it has none.
pub fn refresh(newer: Catalog) {
    let mut merged = current().as_ref().clone();
    for provider in newer.providers.keys() {
        let mut models = newer.models(provider).to_vec();
        let old = merged.models(provider).iter();
        let kept: Vec<_> =
            old.filter(|old| models.iter().all(|new| new.info.id != old.info.id)).cloned().collect();
        models.extend(kept);
        merged.providers.insert(provider.clone(), Section { unread: "", models: models.into() });
    }
    *CURRENT.write().unwrap_or_else(std::sync::PoisonError::into_inner) = std::sync::Arc::new(merged);
}

impl Catalog {
    /// Reads the list; the second value names the lines that could not be read.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let mut providers: HashMap<String, Vec<KnownModel>> = HashMap::new();
        let mut bad = Vec::new();
        let mut provider = "";
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                provider = name;
                continue;
            }
            match parse_row(provider, line) {
                Some(known) => providers.entry(provider.to_owned()).or_default().push(known),
                None => bad.push(format!("line {}: {line}", number + 1)),
            }
        }
        let read = |(provider, models): (String, Vec<KnownModel>)| {
            (provider, Section { unread: "", models: models.into() })
        };
        (Self { providers: providers.into_iter().map(read).collect() }, bad)
    }

    /// The list that the program brings; a test shows that every row of it can be read.
    fn built_in() -> Self {
        let sections = include_str!("../data/catalog.txt").split("\n[").skip(1);
        let section = |text: &'static str| {
            let (provider, unread) = text.split_once("]\n")?;
            Some((provider.to_owned(), Section { unread, models: OnceLock::new() }))
        };
        Self { providers: sections.filter_map(section).collect() }
    }

    /// A model of a provider; a dated or tagged name is found by the name it begins with.
    pub fn find(&self, provider: &str, name: &str) -> Option<&KnownModel> {
        let rows = self.models(provider);
        let bare = |known: &KnownModel| known.info.id.len() - provider.len() - 1;
        let named = |known: &KnownModel| &known.info.id[known.info.id.len() - bare(known)..] == name;
        rows.iter().find(|known| named(known)).or_else(|| {
            rows.iter()
                .filter(|known| {
                    let known = &known.info.id[provider.len() + 1..];
                    name.strip_prefix(known).is_some_and(is_tag)
                })
                .max_by_key(|known| known.info.id.len())
        })
    }

    /// Any provider's row for this name, for gateways that pass other vendors' models on.
    pub fn find_anywhere(&self, name: &str) -> Option<&KnownModel> {
        let last = name.rsplit('/').next().unwrap_or(name);
        ["openai", "anthropic", "google", "deepseek", "mistral", "xai", "moonshot", "z-ai", "qwen"]
            .iter()
            .find_map(|provider| self.find(provider, last))
    }

    pub fn models(&self, provider: &str) -> &[KnownModel] {
        let Some(section) = self.providers.get(provider) else { return &[] };
        section.models.get_or_init(|| {
            let rows = section.unread.lines().map(str::trim);
            let rows = rows.filter(|line| !line.is_empty() && !line.starts_with('#'));
            rows.filter_map(|line| parse_row(provider, line)).collect()
        })
    }
}

/// `-20250929`, `-2025-09-29`, `:latest`, `@default`.
fn is_tag(rest: &str) -> bool {
    rest.starts_with([':', '@'])
        || rest.strip_prefix('-').is_some_and(|date| {
            date.len() >= 8 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        })
}

/// `name context output input-price output-price cache-read cache-write abilities variants`, `-` for unknown.
fn parse_row(provider: &str, line: &str) -> Option<KnownModel> {
    let mut columns = line.split_whitespace();
    let name = columns.next()?;
    let context_limit = parse_limit(columns.next()?)?;
    let output_limit = parse_limit(columns.next()?)?;
    let mut price = || columns.next().and_then(parse_price);
    let (input, output, cache_read, cache_write) = (price()?, price()?, price()?, price()?);
    let abilities: Vec<&str> = columns.next()?.split(',').collect();
    let variants = columns.next().unwrap_or("-");
    let has = |ability: &str| abilities.contains(&ability);
    let thinking = if has("budget") {
        Thinking::Budget
    } else if has("adaptive") {
        Thinking::Adaptive
    } else if has("effort") {
        Thinking::Effort
    } else {
        Thinking::None
    };
    Some(KnownModel {
        info: ModelInfo {
            id: format!("{provider}/{name}"),
            context_limit,
            output_limit,
            price: input.zip(output).map(|(input, output)| Price { input, output, cache_read, cache_write }),
            tools: has("tools"),
            images: has("images"),
            reasoning: has("reasoning"),
            loads_tools: false,
            single_slot: false,
            fills_middle: false,
            variants: variants.split(',').filter(|name| *name != "-").map(str::to_owned).collect(),
        },
        thinking,
        temperature: has("temperature"),
    })
}

fn parse_limit(column: &str) -> Option<Option<u64>> {
    if column == "-" { Some(None) } else { column.parse().ok().map(Some) }
}

fn parse_price(column: &str) -> Option<Option<f64>> {
    if column == "-" { Some(None) } else { column.parse().ok().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_built_in_list_is_read() {
        let (catalog, bad) = Catalog::parse(include_str!("../data/catalog.txt"));
        assert_eq!(bad, Vec::<String>::new());
        let by_section = Catalog::built_in();
        assert_eq!(by_section.providers.len(), catalog.providers.len());
        for provider in catalog.providers.keys() {
            assert_eq!(by_section.models(provider), catalog.models(provider), "{provider}");
        }
        for provider in [
            "openai",
            "anthropic",
            "google",
            "deepseek",
            "mistral",
            "groq",
            "xai",
            "moonshot",
            "z-ai",
            "qwen",
        ] {
            assert!(!catalog.models(provider).is_empty(), "{provider}");
            for known in catalog.models(provider) {
                assert!(known.info.tools && known.info.context_limit.is_some(), "{}", known.info.id);
                assert_eq!(
                    known.thinking != Thinking::None,
                    !known.info.variants.is_empty(),
                    "{}",
                    known.info.id
                );
            }
        }
    }

    #[test]
    fn models_are_found_by_name_and_by_dated_name() {
        let catalog = current();
        let id = |provider, name| catalog.find(provider, name).map(|known| known.info.id.as_str());
        assert_eq!(id("anthropic", "claude-sonnet-4-5"), Some("anthropic/claude-sonnet-4-5"));
        assert_eq!(id("anthropic", "claude-sonnet-4-5-20250929"), Some("anthropic/claude-sonnet-4-5"));
        assert_eq!(id("openai", "gpt-5"), Some("openai/gpt-5"));
        assert_eq!(id("openai", "gpt-5-unheard-of"), None);
        assert_eq!(id("nobody", "gpt-5"), None);
        assert!(catalog.find_anywhere("anthropic/claude-opus-4-5").is_some());
        let price = catalog.find("anthropic", "claude-sonnet-4-5").and_then(|known| known.info.price);
        assert_eq!(
            price,
            Some(Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) })
        );
    }
}
