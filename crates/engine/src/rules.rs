//! The user's rules: which of them hold in a chat, and those that the model must read before it touches certain files.
//!
//! Must not know where rules are kept. Invariants: a rule for agents or models holds with these only; a rule that the model
//! must read is read once in what the model still has, so again after a compaction.

use std::sync::{Arc, LazyLock};

use domain::BoxFuture;
use domain::item::{Item, ItemKind};
use domain::model::ModelInfo;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Origin, ToolState};
use regex::Regex;
use serde_json::{Value, json};

use crate::behavior::{self, canonical};
use crate::session::Session;
use crate::workspace::NamedText;

/// The name of the tool, without its server.
const FETCH: &str = "fetch_rule";

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: FETCH.to_owned(),
    server: "eca".to_owned(),
    origin: Origin::Native,
    description: "Gives the text of a rule for certain files. Call it before you read or change such a file."
        .to_owned(),
    input_schema: json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The name of the rule."},
            "path": {"type": "string", "description": "The file that you want to read or change."},
        },
        "required": ["id"],
    }),
    effect: ToolEffect::Reads,
});

/// The rules of a chat.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// The model has them from the start.
    pub(crate) given: Vec<NamedText>,
    /// The model reads them when it comes to their files.
    pub(crate) fetched: Arc<[NamedText]>,
}

impl Rules {
    /// Those that hold for a behavior and a model.
    pub(crate) fn of(session: &Session, behavior: &str, model: &ModelInfo) -> Self {
        let can_fetch = model.tools && !behavior::is_disabled(session, &SPEC);
        let all = session.workspace.texts.rules();
        let holding = all.into_iter().filter(|rule| holds(rule, behavior, &model.id));
        let (fetched, given): (Vec<_>, Vec<_>) = holding.partition(|rule| can_fetch && is_fetched(rule));
        Self { given, fetched: fetched.into() }
    }
}

/// A rule without agents holds with all of them, and so it is with models.
pub(crate) fn holds(rule: &NamedText, behavior: &str, model: &str) -> bool {
    let is_agent = |name: &String| canonical(name) == canonical(behavior);
    // A pattern that cannot be read matches no model.
    let is_model = |pattern: &String| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(model));
    (rule.agents.is_empty() || rule.agents.iter().any(is_agent))
        && (rule.models.is_empty() || rule.models.iter().any(is_model))
}

/// A rule for certain files that says when it must be read.
fn is_fetched(rule: &NamedText) -> bool {
    !rule.paths.is_empty() && rule.enforce.iter().any(|when| matches!(when.as_str(), "read" | "modify"))
}

/// A rule as the model is given it.
pub(crate) fn text(rule: &NamedText) -> String {
    let paths = if rule.paths.is_empty() {
        String::new()
    } else {
        format!(" for-files=\"{}\"", rule.paths.join(", "))
    };
    format!("<rule name=\"{}\"{paths}>\n{}\n</rule>", rule.name, rule.text.trim())
}

/// The part of the system prompt that names the rules to be read; `None` where there are none.
pub(crate) fn catalog(rules: &[NamedText]) -> Option<String> {
    let line = |rule: &NamedText| {
        let description = rule.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        format!("- {} (for {}){description}", rule.name, rule.paths.join(", "))
    };
    let lines: Vec<String> = rules.iter().map(line).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "Rules for certain files. Read one with {FETCH} before you touch such a file:\n{}",
            lines.join("\n")
        )
    })
}

/// What the model must read before a call may run.
pub(crate) fn missing(
    rules: &[NamedText],
    session: &Session,
    spec: &ToolSpec,
    review: &Review,
) -> Option<String> {
    let when = match spec.effect {
        ToolEffect::WritesFiles => "modify",
        ToolEffect::Reads | ToolEffect::Previews => "read",
        ToolEffect::UsesNetwork | ToolEffect::RunsCommands | ToolEffect::Other => return None,
    };
    if rules.is_empty() || spec.origin != Origin::Native {
        return None;
    }
    let files = review.paths.iter().filter(|(_, [_, absolute])| !std::path::Path::new(absolute).is_dir());
    let files: Vec<&str> = files.map(|(_, [relative, _])| relative.as_str()).collect();
    let state = session.state();
    let is_missing = |rule: &&NamedText| {
        let is_about = || files.iter().any(|file| rule.paths.iter().any(|glob| matches_path(glob, file)));
        rule.enforce.iter().any(|known| known == when) && is_about() && !has_read(state.items(), &rule.name)
    };
    let names: Vec<&str> = rules.iter().filter(is_missing).map(|rule| rule.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "A rule of the user for this file must be read first. Call {FETCH} with the id {}, then repeat this call.",
            names.join(", and with the id ")
        )
    })
}

/// Whether the model was given the rule since the last compaction.
fn has_read(items: &[Item], name: &str) -> bool {
    let since = items.iter().rev().take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }));
    since.into_iter().any(|item| {
        let ItemKind::ToolCall(call) = &item.kind else { return false };
        let input = call.input.as_ref().and_then(|input| input["id"].as_str());
        call.origin == Origin::Native
            && call.name == FETCH
            && call.state == ToolState::Done
            && !call.error
            && input == Some(name)
    })
}

/// Whether a path of a workspace matches a pattern: `*` and `?` within a folder, `**` over folders, `{a,b}`.
pub(crate) fn matches_path(glob: &str, path: &str) -> bool {
    let path = path.replace('\\', "/");
    let mut pattern = String::from("^");
    let mut rest = glob.trim().trim_start_matches("./").trim_start_matches('/');
    let mut open = 0_u32;
    while let Some(character) = rest.chars().next() {
        let (translated, length) = match character {
            '*' if rest.starts_with("**/") => ("(?:.*/)?".to_owned(), 3),
            '*' if rest.starts_with("**") => (".*".to_owned(), 2),
            '*' => ("[^/]*".to_owned(), 1),
            '?' => ("[^/]".to_owned(), 1),
            '{' => {
                open += 1;
                ("(?:".to_owned(), 1)
            }
            '}' if open > 0 => {
                open -= 1;
                (")".to_owned(), 1)
            }
            ',' if open > 0 => ("|".to_owned(), 1),
            other => (regex::escape(&other.to_string()), other.len_utf8()),
        };
        pattern.push_str(&translated);
        rest = &rest[length..];
    }
    pattern.push('$');
    Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(&path))
}

/// The tool `fetch_rule`.
pub(crate) struct FetchRule {
    rules: Arc<[NamedText]>,
}

impl FetchRule {
    /// `None` where there is nothing to read.
    pub(crate) fn of(rules: &Arc<[NamedText]>) -> Option<Self> {
        (!rules.is_empty()).then(|| Self { rules: rules.clone() })
    }

    fn find(&self, input: &Value) -> Result<&NamedText, String> {
        let id = input["id"].as_str().unwrap_or_default().trim();
        self.rules.iter().find(|rule| rule.name == id).ok_or_else(|| {
            let names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
            format!("There is no rule {id:?}. There are: {}.", names.join(", "))
        })
    }
}

impl Tool for FetchRule {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let summary = format!("Reading the rule {}", self.find(input)?.name);
        Ok(Review { summary, harmless: true, ..Review::default() })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.find(&call.input).map_or_else(ToolResult::error, |rule| ToolResult::text(text(rule)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(agents: &[&str], models: &[&str]) -> NamedText {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NamedText { name: "r".into(), agents: owned(agents), models: owned(models), ..NamedText::default() }
    }

    #[test]
    fn a_rule_holds_with_its_agents_and_models() {
        for (agents, models, behavior, model, expected) in [
            (&[][..], &[][..], "plan", "a/b", true),
            (&["plan"], &[], "plan", "a/b", true),
            (&["plan"], &[], "agent", "a/b", false),
            (&["plan", "explorer"], &[], "explorer", "a/b", true),
            // ECA's name of the default agent.
            (&["code"], &[], "agent", "a/b", true),
            (&["code"], &[], "", "a/b", true),
            (&[], &["anthropic/.*"], "", "anthropic/claude", true),
            (&[], &["claude"], "", "anthropic/claude", true),
            (&[], &["gpt", "sonnet$"], "", "anthropic/claude-sonnet", true),
            (&[], &["^claude"], "", "anthropic/claude", false),
            (&[], &["("], "", "anthropic/claude", false),
            (&["plan"], &["gpt"], "plan", "a/claude", false),
        ] {
            assert_eq!(
                holds(&rule(agents, models), behavior, model),
                expected,
                "{agents:?} {models:?} {model}"
            );
        }
    }

    #[test]
    fn patterns_of_files() {
        for (glob, path, expected) in [
            ("**/*.rs", "src/main.rs", true),
            ("**/*.rs", "main.rs", true),
            ("*.rs", "src/main.rs", false),
            ("src/**", "src/a/b.txt", true),
            ("src/*.{ts,tsx}", "src/a.tsx", true),
            ("src/*.{ts,tsx}", "src/a.js", false),
            ("/db/?.sql", "db/1.sql", true),
            ("db/a+b.sql", "db/a+b.sql", true),
            ("db/a+b.sql", "db/aab.sql", false),
            ("{", "{", false),
        ] {
            assert_eq!(matches_path(glob, path), expected, "{glob} {path}");
        }
    }

    fn call(id: u64, name: &str, rule: &str, error: bool) -> Item {
        let mut call =
            domain::tool_call::ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
        (call.state, call.error) = (ToolState::Done, error);
        call.input = Some(json!({"id": rule}));
        let (turn, kind) = (domain::TurnId(1), ItemKind::ToolCall(Box::new(call)));
        Item { id: domain::ItemId(id), turn, step: 1, parent: None, kind }
    }

    #[test]
    fn a_rule_is_read_until_a_summary_takes_its_text_away() {
        let kind = ItemKind::Compaction { summary: "short".into(), kept: Vec::new() };
        let summary = Item { kind, ..call(9, "x", "x", false) };
        for (items, expected) in [
            (vec![], false),
            (vec![call(1, FETCH, "sql", false)], true),
            (vec![call(1, FETCH, "sql", true)], false),
            (vec![call(1, FETCH, "other", false)], false),
            (vec![call(1, "read_file", "sql", false)], false),
            (vec![call(1, FETCH, "sql", false), summary.clone()], false),
            (vec![call(1, FETCH, "sql", false), summary, call(10, FETCH, "sql", false)], true),
        ] {
            assert_eq!(has_read(&items, "sql"), expected, "{items:?}");
        }
    }

    #[test]
    fn only_rules_about_files_with_a_moment_are_read_later() {
        let rule = |paths: &[&str], enforce: &[&str]| NamedText {
            name: "sql".into(),
            text: "Capital letters.\n".into(),
            description: Some("for queries".into()),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            enforce: enforce.iter().map(|when| (*when).to_owned()).collect(),
            ..NamedText::default()
        };
        assert!(is_fetched(&rule(&["db/**"], &["modify"])) && is_fetched(&rule(&["db/**"], &["read"])));
        assert!(!is_fetched(&rule(&[], &["modify"])) && !is_fetched(&rule(&["db/**"], &[])));
        assert!(!is_fetched(&rule(&["db/**"], &["sometimes"])));
        let rule = rule(&["db/**", "*.sql"], &["modify"]);
        assert_eq!(text(&rule), "<rule name=\"sql\" for-files=\"db/**, *.sql\">\nCapital letters.\n</rule>");
        let catalog = catalog(std::slice::from_ref(&rule)).unwrap();
        assert!(catalog.ends_with("- sql (for db/**, *.sql): for queries"), "{catalog}");
        assert_eq!(super::catalog(&[]), None);
        let tool = FetchRule::of(&Arc::from([rule])).unwrap();
        assert!(tool.find(&json!({"id": " sql "})).is_ok());
        assert!(tool.find(&json!({"id": "no"})).unwrap_err().contains("There are: sql."));
    }
}
