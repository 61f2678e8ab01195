//! Which calls taint a chat, and what a tainted chat may not do without a fresh approval. Pure.
//!
//! A model cannot tell instructions of its user from instructions in a text that it reads. A chat that has read text of
//! strangers is tainted; from then on the calls that would do the worst such a text can ask for need a person each time.
//! Must not know tools by name, rules or sessions. Invariant: a text taints before the model gets it.

use std::path::Path;
use std::sync::LazyLock;

use domain::command::Context;
use domain::item::{Item, ItemKind, Part};
use domain::taint::Taint;
use domain::tool::{Exposure, Review, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::Origin;
use platform::project_files;
use platform::project_files::{is_secret, runs_later};
use regex::RegexSet;

use super::approval::Case;
use super::server_paths;

/// What a call brings into the chat. A file that it names to a server's tool may come back in the result.
pub(crate) fn of_call(spec: &ToolSpec, review: &Review, item: &Item, is_trusted: bool) -> Taint {
    let mut taint = of_review(spec, review, is_trusted);
    if let (Origin::Mcp, ItemKind::ToolCall(call)) = (&spec.origin, &item.kind) {
        let named = call.input.as_ref().map(server_paths::texts_of).unwrap_or_default();
        named.iter().filter(|text| is_secret(Path::new(text))).for_each(|text| taint.add_secret(text));
    }
    taint
}

/// What the result of a call may bring into the chat, as far as it is known before the call runs.
pub(crate) fn of_review(spec: &ToolSpec, review: &Review, is_trusted: bool) -> Taint {
    let mut taint = Taint::default();
    review.secrets.iter().for_each(|secret| taint.add_secret(secret));
    if review.unclear && !review.seals_secrets {
        taint.add_secret("whatever a command that is not fully understood has read");
    }
    if spec.origin == Origin::Mcp {
        taint.add_source(format!("results of the MCP server {}", spec.server));
    }
    match spec.effect {
        ToolEffect::UsesNetwork => taint.add_source(&review.summary),
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::RunsCommands => {
            for path in &review.outside {
                taint.add_source(format!("{}, which is outside the workspace", path.display()));
            }
            if !is_trusted {
                taint.add_source("files of a folder that you have not trusted");
            }
        }
        ToolEffect::WritesFiles | ToolEffect::Other => {}
    }
    // What such a command prints may come from anywhere.
    if spec.effect == ToolEffect::RunsCommands && exposure_of(spec, review) >= Exposure::Network {
        taint.add_source(format!("output of {}", review.summary));
    }
    taint
}

/// What the result itself shows.
pub(crate) fn of_result(result: Option<&ToolResult>) -> Taint {
    let Some(result) = result else { return Taint::default() };
    let mut taint = result.taint.clone();
    add_visible_secrets(&result.parts, &mut taint);
    taint
}

/// What the user attached to a prompt.
pub(crate) fn of_contexts(contexts: &[Context], is_trusted: bool) -> Taint {
    let mut taint = Taint::default();
    for context in contexts {
        if let Context::File { path, .. } | Context::Directory { path } | Context::Cursor { path, .. } =
            context
            && project_files::is_secret(path)
        {
            taint.add_secret(path.display().to_string());
        }
        match context {
            Context::Web { url } => taint.add_source(format!("the web page {url}")),
            Context::McpResource(resource) => {
                taint.add_source(format!("a resource of the MCP server {}", resource.server));
            }
            Context::File { .. } | Context::Directory { .. } | Context::RepoMap if !is_trusted => {
                taint.add_source("files of a folder that you have not trusted");
            }
            Context::File { .. }
            | Context::Directory { .. }
            | Context::RepoMap
            | Context::Cursor { .. }
            | Context::Code { .. }
            | Context::Text { .. }
            | Context::Image { .. } => {}
        }
    }
    taint
}

/// Marks texts that look like keys or passwords, wherever they were read.
pub(crate) fn add_visible_secrets(parts: &[Part], taint: &mut Taint) {
    let shows = |part: &Part| match part {
        Part::Text { text } => SECRETS.as_ref().is_none_or(|secrets| secrets.is_match(text)),
        Part::Image { .. } => false,
    };
    if parts.iter().any(shows) {
        taint.add_secret("text that looks like a key or a password");
    }
}

/// `None` cannot happen for patterns that a test compiles; it would count every text as a secret.
static SECRETS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"-----BEGIN [A-Z ]*PRIVATE KEY",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{20,}",
        r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AIza|npm_|hf_)[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",
        r#"(?m)^\s*(?:export )?[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY)[A-Z0-9_]*\s*[=:]\s*["']?[^\s"'()\[\]<>${}]{8,}["']?\s*$"#,
    ])
    .ok()
});

/// Why the call needs a fresh approval, whatever is allowed, remembered or trusted.
pub(super) fn find_danger(case: &Case<'_>) -> Option<String> {
    let source = case.taint.sources().first()?;
    let named = named_by_server_call(case);
    let file = case.review.run_later.first().cloned();
    if let Some(file) = file.or_else(|| named.iter().find(|text| runs_later(Path::new(text))).cloned()) {
        return Some(format!(
            "This chat is tainted (it has read {source}), and {file} decides what runs or what is allowed. This needs \
             your approval each time."
        ));
    }
    let named = named.iter().find(|text| is_secret(Path::new(text)));
    let known = case.taint.secrets().first();
    // Code of the project could send by itself what it reads: that a command may have read a secret changes nothing.
    let known = match exposure_of(case.spec, case.review) {
        Exposure::Local => return None,
        Exposure::RunsProject => case.taint.certain_secret(),
        Exposure::Registries | Exposure::Network | Exposure::Unknown => known,
    };
    let secret = known.or(case.review.secrets.first()).or(named)?;
    Some(format!(
        "This chat is tainted (it has read {source}) and has read a secret ({secret}), and this call could send it \
         to another machine. This needs your approval each time."
    ))
}

/// The texts in the arguments for a server's tool: any of them may be a path that the server uses.
pub(super) fn named_by_server_call(case: &Case<'_>) -> Vec<String> {
    if case.spec.origin == Origin::Mcp { server_paths::texts_of(case.input) } else { Vec::new() }
}

/// Why neither trust nor `--approve` is enough for a command in a tainted chat.
pub(super) fn find_unknown_code(case: &Case<'_>) -> Option<String> {
    let source = case.taint.sources().first()?;
    (exposure_of(case.spec, case.review) == Exposure::Unknown).then(|| {
        format!(
            "This chat is tainted (it has read {source}), and this command runs code that could read secrets, send \
             them, or change what runs later. A sandbox, `dragoman trust` for your own folder, or a rule that allows \
             exactly this command avoids the question."
        )
    })
}

fn exposure_of(spec: &ToolSpec, review: &Review) -> Exposure {
    review.exposure.unwrap_or(match spec.effect {
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::WritesFiles => Exposure::Local,
        // Built-in tools that reach other machines declare it; those of servers declare nothing.
        ToolEffect::Other if spec.origin == Origin::Native => Exposure::Local,
        ToolEffect::UsesNetwork | ToolEffect::Other => Exposure::Network,
        ToolEffect::RunsCommands => Exposure::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_seen_and_code_is_not_taken_for_keys() {
        let shows = |text: &str| {
            let mut taint = Taint::default();
            add_visible_secrets(&[Part::text(text)], &mut taint);
            !taint.secrets().is_empty()
        };
        assert!(SECRETS.is_some());
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "key: AKIAIOSFODNN7EXAMPLE",
            "x\nDB_PASSWORD=hunter2hunter2\ny",
            "export API_TOKEN='abcdefgh1234'",
            "sk-ant-REDACTED-0000000000",
        ] {
            assert!(shows(text), "{text}");
        }
        for text in [
            "API_KEY = os.environ['API_KEY']",
            "API_KEY=$(pass show x)",
            "API_KEY=",
            "fn token() -> Token {",
            "let password = read();",
            "A text about sk- and tokens.",
        ] {
            assert!(!shows(text), "{text}");
        }
    }

    /// Tools of servers reach other machines for all that is known; built-in ones say so.
    #[test]
    fn tools_of_servers_are_taken_for_the_network() {
        let exposure = |origin: Origin, effect: ToolEffect| {
            let (name, server, description) = (String::new(), String::new(), String::new());
            let input_schema = serde_json::Value::Null;
            let spec = ToolSpec { name, server, origin, description, input_schema, effect };
            exposure_of(&spec, &Review::default())
        };
        assert!(exposure(Origin::Native, ToolEffect::Other) == Exposure::Local);
        assert!(exposure(Origin::Mcp, ToolEffect::Other) == Exposure::Network);
        assert!(exposure(Origin::Native, ToolEffect::UsesNetwork) == Exposure::Network);
        assert!(exposure(Origin::Native, ToolEffect::RunsCommands) == Exposure::Unknown);
    }

    fn spec(origin: Origin, effect: ToolEffect) -> ToolSpec {
        let (name, server, description) = ("t".to_owned(), "s".to_owned(), String::new());
        ToolSpec { name, server, origin, description, input_schema: serde_json::Value::Null, effect }
    }

    #[test]
    fn a_call_taints_by_what_it_reads() {
        let reads = spec(Origin::Native, ToolEffect::Reads);
        let review = |fill: fn(&mut Review)| {
            let mut review = Review { summary: "Doing it".into(), ..Review::default() };
            fill(&mut review);
            review
        };
        let plain = review(|_| {});
        let outside = review(|review| review.outside = vec!["/far".into()]);
        let secret = review(|review| review.secrets = vec![".env".into()]);
        let unclear = review(|review| review.unclear = true);
        for (spec, review, is_trusted, sources, secrets) in [
            (&reads, &plain, true, vec![], vec![]),
            (&reads, &plain, false, vec!["files of a folder that you have not trusted"], vec![]),
            (&reads, &outside, true, vec!["/far, which is outside the workspace"], vec![]),
            (&reads, &secret, true, vec![], vec![".env"]),
            (
                &reads,
                &unclear,
                true,
                vec![],
                vec!["whatever a command that is not fully understood has read"],
            ),
            (&spec(Origin::Native, ToolEffect::UsesNetwork), &plain, true, vec!["Doing it"], vec![]),
            (
                &spec(Origin::Mcp, ToolEffect::Other),
                &plain,
                true,
                vec!["results of the MCP server s"],
                vec![],
            ),
            (
                &spec(Origin::Native, ToolEffect::RunsCommands),
                &plain,
                true,
                vec!["output of Doing it"],
                vec![],
            ),
            (&spec(Origin::Native, ToolEffect::WritesFiles), &outside, true, vec![], vec![]),
        ] {
            let taint = of_review(spec, review, is_trusted);
            assert_eq!(taint.sources(), sources, "{:?} {review:?}", spec.effect);
            assert_eq!(taint.secrets(), secrets, "{:?} {review:?}", spec.effect);
        }
    }

    #[test]
    fn what_the_user_attaches_taints_by_its_origin() {
        let file = |path: &str| Context::File { path: path.into(), lines: None };
        for (context, is_trusted, is_tainted, has_secret) in [
            (file("a.rs"), true, false, false),
            (file("a.rs"), false, true, false),
            (file(".env"), true, false, true),
            (Context::Web { url: "https://x.example".into() }, true, true, false),
            (Context::RepoMap, false, true, false),
            (Context::Text { name: "n".into(), text: "t".into() }, false, false, false),
        ] {
            let taint = of_contexts(std::slice::from_ref(&context), is_trusted);
            assert_eq!(taint.is_tainted(), is_tainted, "{context:?}");
            assert_eq!(!taint.secrets().is_empty(), has_secret, "{context:?}");
        }
    }
}
