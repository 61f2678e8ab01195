//! Permission rules of Claude Code (`Tool` or `Tool(specifier)`) as our rules.
//!
//! Invariants: an allow rule covers no call that theirs did not cover; a deny or ask rule covers at least the calls that theirs
//! did, and one that cannot be read asks for its whole tool.

use serde_json::{Map, Value, json};

const SHELL: &str = "eca__shell_command";
const READER: &str = "eca__read_file";
const EDITORS: [&str; 3] = ["eca__edit_file", "eca__write_file", "eca__apply_patch"];
/// It overwrites a file at one path and takes it away from another.
const MOVER: &str = "eca__move_file";

/// Tools of Claude Code and ours that do the same or a part of it.
pub(super) const TOOLS: [(&str, &[&str]); 13] = [
    ("Bash", &[SHELL]),
    ("Read", &[READER]),
    ("Edit", &EDITORS),
    ("Write", &EDITORS),
    ("MultiEdit", &EDITORS),
    ("NotebookEdit", &EDITORS),
    ("Grep", &["eca__grep"]),
    ("Glob", &["eca__glob"]),
    ("LS", &["eca__directory_tree"]),
    ("WebFetch", &["eca__fetch_url"]),
    ("WebSearch", &["eca__web_search"]),
    ("Task", &["eca__spawn_agent"]),
    ("Agent", &["eca__spawn_agent"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Allow,
    Ask,
    Deny,
}

/// One of our tools, and a pattern for one of its arguments.
type OurRule = (String, Option<(&'static str, String)>);

/// `toolCall.approval`, and what of the lists has no effect.
pub(super) fn translate(lists: &Map<String, Value>) -> (Value, Vec<String>) {
    let mut approval = json!({});
    let mut unused = Vec::new();
    for (list, key) in [(List::Allow, "allow"), (List::Ask, "ask"), (List::Deny, "deny")] {
        let rules = lists.get(key).and_then(Value::as_array).into_iter().flatten();
        for rule in rules.filter_map(Value::as_str) {
            match (translate_rule(rule, list), list) {
                (Ok(rules), _) => {
                    // One rule cannot be about either of two arguments: taking a file away is asked about.
                    for (target, pattern) in rules.iter().filter(|_| list == List::Deny) {
                        if let (MOVER, Some((_, pattern))) = (target.as_str(), pattern) {
                            add(&mut approval["ask"], (MOVER.to_owned(), Some(("source", pattern.clone()))));
                        }
                    }
                    rules.into_iter().for_each(|rule| add(&mut approval[key], rule));
                }
                (Err(why), List::Allow) => unused.push(format!("allow `{rule}`: {why}")),
                (Err(why), List::Ask | List::Deny) => {
                    let tools = targets(rule.split('(').next().unwrap_or_default().trim());
                    let more = if tools.is_empty() { "" } else { ", so the whole tool is asked about" };
                    unused.push(format!("{key} `{rule}`: {why}{more}"));
                    tools.iter().for_each(|tool| add(&mut approval["ask"], ((*tool).to_owned(), None)));
                }
            }
        }
    }
    (approval, unused)
}

fn add(list: &mut Value, (target, pattern): OurRule) {
    if list.is_null() {
        *list = json!({});
    }
    let place = &mut list[&target];
    match pattern {
        // A rule for the whole tool covers everything.
        None => *place = json!({}),
        Some(_) if place.as_object().is_some_and(Map::is_empty) => {}
        Some((argument, _)) if has_other_argument(place, argument) => *place = json!({}),
        Some((argument, pattern)) => {
            let patterns = &mut place["argsMatchers"][argument];
            let mut known = patterns.as_array().cloned().unwrap_or_default();
            known.push(json!(pattern));
            *patterns = json!(known);
        }
    }
}

/// All arguments of a rule must match, so patterns for two of them would cover less than either.
fn has_other_argument(rule: &Value, argument: &str) -> bool {
    let known = rule.get("argsMatchers").and_then(Value::as_object);
    known.is_some_and(|known| known.keys().any(|key| key != argument))
}

pub(super) fn targets(tool: &str) -> &'static [&'static str] {
    TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, targets)| *targets).unwrap_or_default()
}

fn translate_rule(rule: &str, list: List) -> Result<Vec<OurRule>, String> {
    let (tool, specifier) = match rule.split_once('(') {
        Some((tool, rest)) => (tool.trim(), rest.strip_suffix(')').map(str::trim)),
        None => (rule.trim(), None),
    };
    let specifier = specifier.filter(|specifier| !matches!(*specifier, "" | "*" | "**"));
    let mover = (list != List::Allow && is_editor(tool)).then_some(MOVER);
    let whole = |targets: &[&'static str]| -> Vec<OurRule> {
        targets.iter().copied().chain(mover).map(|target| (target.to_owned(), None)).collect()
    };
    match (tool, specifier, list) {
        ("Read" | "Glob" | "Grep" | "LS", _, List::Allow) => {
            Err("reading in the folder needs no rule here, and outside of it a person is asked".to_owned())
        }
        (tool, _, _) if tool.starts_with("mcp__") => server_tool(tool),
        (tool, None, _) if !targets(tool).is_empty() => Ok(whole(targets(tool))),
        ("Bash", Some(command), _) => Ok(vec![(SHELL.to_owned(), Some(("command", shell(command, list))))]),
        ("WebFetch", Some(specifier), _) => web(specifier, list),
        ("Read", Some(path), _) => Ok(paths(path, &[READER])),
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(path), List::Ask | List::Deny) => {
            let argument = |rule: &OurRule| rule.1.clone().map(|(_, pattern)| ("destination", pattern));
            let mut rules = paths(path, &EDITORS);
            let moves = rules.first().map(|rule| (MOVER.to_owned(), argument(rule)));
            rules.extend(moves);
            Ok(rules)
        }
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(_), List::Allow) => {
            Err("an allow rule for some paths has no exact equivalent".to_owned())
        }
        (_, Some(_), _) if !targets(tool).is_empty() => Err("its specifier is not understood".to_owned()),
        _ => Err("there is no such tool here".to_owned()),
    }
}

fn is_editor(tool: &str) -> bool {
    matches!(tool, "Edit" | "Write" | "MultiEdit" | "NotebookEdit")
}

/// `npm test:*` is the older form of `npm test *`.
fn shell(command: &str, list: List) -> String {
    let command = match command.strip_suffix(":*") {
        Some(prefix) => format!("{prefix} *"),
        None => command.to_owned(),
    };
    let escape_all = |text: &str| {
        let parts: Vec<String> = text.split('*').map(domain::escape_pattern).collect();
        parts.join(".*")
    };
    match (command.strip_suffix(" *"), list) {
        // `npm test *` also means `npm test`.
        (Some(prefix), List::Allow) => format!("{}( .*)?", escape_all(prefix)),
        // Here more is better: also `npm tests`.
        (Some(prefix), List::Ask | List::Deny) => format!("{}.*", escape_all(prefix)),
        (None, _) => escape_all(&command),
    }
}

fn web(specifier: &str, list: List) -> Result<Vec<OurRule>, String> {
    let host = specifier
        .strip_prefix("domain:")
        .map(str::trim)
        .ok_or("only rules for a domain have an equivalent")?;
    let expression = match (host.strip_prefix("*."), list) {
        (None, List::Allow) => format!("https?://{}([/?#].*)?", domain::escape_pattern(host)),
        (None, _) => format!("(?i)https?://([^/?#]*[@.])?{}([:/?#].*)?", domain::escape_pattern(host)),
        (Some(parent), List::Allow) => {
            format!("https?://[A-Za-z0-9.-]+\\.{}([/?#].*)?", domain::escape_pattern(parent))
        }
        (Some(parent), _) => format!("(?i)https?://[^/?#]*{}([:/?#].*)?", domain::escape_pattern(parent)),
    };
    Ok(vec![("eca__fetch_url".to_owned(), Some(("url", expression)))])
}

/// The servers of the same files have the same names here.
fn server_tool(tool: &str) -> Result<Vec<OurRule>, String> {
    let name = tool.trim_start_matches("mcp__");
    let (server, tool) = name.split_once("__").map_or((name, None), |(server, tool)| (server, Some(tool)));
    match tool.filter(|tool| *tool != "*") {
        None => Ok(vec![(server.to_owned(), None)]),
        Some(tool) if tool.contains('*') => Err("only whole names of tools have an equivalent".to_owned()),
        Some(tool) => Ok(vec![(format!("{server}__{tool}"), None)]),
    }
}

/// A pattern of paths as `.gitignore` has them, for lists that may cover more.
fn paths(pattern: &str, targets: &[&str]) -> Vec<OurRule> {
    let (start, rest) = if let Some(rest) = pattern.strip_prefix("~/") {
        ("(.*/|~/)".to_owned(), rest)
    } else if let Some(rest) = pattern.strip_prefix("//") {
        ("/".to_owned(), rest)
    } else {
        let rest = pattern.trim_start_matches("./").trim_start_matches('/');
        ("(.*/)?".to_owned(), rest.strip_prefix("**/").unwrap_or(rest))
    };
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/**").unwrap_or(rest);
    // A name also means the folder of this name.
    let expression = format!("{start}{}(/.*)?", glob(rest));
    let rule = |target: &&str| ((*target).to_owned(), Some(("path", expression.clone())));
    targets.iter().map(rule).collect()
}

/// `**` crosses folders, `*` and `?` do not; `{a,b}` and `[ab]` are choices.
fn glob(pattern: &str) -> String {
    let mut expression = String::new();
    let mut rest = pattern;
    let mut open = 0_usize;
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        let class = rest.strip_prefix('[').and_then(|inner| inner.find(']')).filter(|end| *end > 0);
        match (character, class) {
            ('*', _) if rest.starts_with("**/") => {
                expression.push_str("(.*/)?");
                length = 3;
            }
            ('*', _) if rest.starts_with("**") => {
                expression.push_str(".*");
                length = 2;
            }
            ('*', _) => expression.push_str("[^/]*"),
            ('?', _) => expression.push_str("[^/]"),
            ('[', Some(_)) => {
                // Any letter covers at least what the class does.
                expression.push_str("[^/]");
                length = rest.find(']').map_or(1, |end| end + 1);
            }
            ('{', _) => {
                expression.push('(');
                open += 1;
            }
            ('}', _) if open > 0 => {
                expression.push(')');
                open -= 1;
            }
            (',', _) if open > 0 => expression.push('|'),
            (other, _) => expression.push_str(&domain::escape_pattern(&other.to_string())),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    expression.push_str(&")".repeat(open));
    expression
}
