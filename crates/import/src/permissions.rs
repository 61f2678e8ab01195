//! Permission rules of other programs as our rules.
//!
//! Invariants: our allow rule covers no call that theirs did not cover; a deny or ask rule covers at least the calls
//! that theirs did. A rule that cannot be converted so has a reason instead.

use std::collections::HashSet;
use std::path::Path;

use super::plan::{NewRule, RuleList};
use super::tool_names;

const SHELL: &str = "eca__shell_command";
const EDITORS: [&str; 3] = ["eca__edit_file", "eca__write_file", "eca__apply_patch"];

/// What a conversion needs to know.
pub(super) struct Context<'a> {
    pub home: &'a Path,
    /// Servers that mean the same there and here.
    pub servers: &'a HashSet<String>,
}

type Converted = Result<Vec<NewRule>, String>;

/// A rule of Claude Code: `Tool` or `Tool(specifier)`.
pub(super) fn of_claude(rule: &str, list: RuleList, context: &Context<'_>) -> Converted {
    let (tool, specifier) = match rule.split_once('(') {
        Some((tool, rest)) => (tool.trim(), rest.strip_suffix(')').map(str::trim)),
        None => (rule.trim(), None),
    };
    let specifier = specifier.filter(|specifier| !specifier.is_empty() && *specifier != "*");
    match (tool, specifier) {
        ("Bash", None) => Ok(vec![whole(SHELL)]),
        ("Bash", Some(command)) => Ok(vec![shell(&claude_command(command), list)]),
        ("WebFetch", None) => Ok(vec![whole("eca__fetch_url")]),
        ("WebFetch", Some(specifier)) => web(specifier, list),
        ("Read", Some(path)) if list != RuleList::Allow => paths(path, &["eca__read_file"], context),
        ("Read", None) if list != RuleList::Allow => Ok(vec![whole("eca__read_file")]),
        ("Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "TodoWrite", _) if list == RuleList::Allow => {
            Err("reading inside the folder needs no rule here, and outside of it a person is always asked"
                .to_owned())
        }
        ("Edit" | "Write" | "MultiEdit", None) => Ok(EDITORS.iter().map(|editor| whole(editor)).collect()),
        ("Edit" | "Write" | "MultiEdit", Some(path)) if list != RuleList::Allow => {
            paths(path, &EDITORS, context)
        }
        ("Edit" | "Write" | "MultiEdit", Some(_)) => {
            Err("an allow rule for some paths cannot be converted exactly".to_owned())
        }
        (tool, _) if tool.starts_with("mcp__") => server_tool(tool, list, context),
        // What forbids or asks holds for the same tool here; an allowance is not widened.
        (tool, None) if list != RuleList::Allow && !tool_names::targets(&tool.to_lowercase()).is_empty() => {
            Ok(tool_names::targets(&tool.to_lowercase()).iter().map(|target| whole(target)).collect())
        }
        _ => Err("there is no such tool here".to_owned()),
    }
}

/// A rule of opencode for commands: a pattern with `*` and `?`.
pub(super) fn of_opencode_command(pattern: &str, list: RuleList) -> NewRule {
    if pattern == "*" { whole(SHELL) } else { shell(pattern, list) }
}

/// A rule of opencode that asks or denies, for a command, a path or an address; `None` where there is no such rule here.
pub(super) fn of_opencode(
    tool: &str,
    pattern: &str,
    list: RuleList,
    context: &Context<'_>,
) -> Option<Vec<NewRule>> {
    let rule = |target: &str, argument: &'static str, expression: String| NewRule {
        target: target.to_owned(),
        pattern: Some((argument, expression)),
    };
    // `*` crosses folders there, and a path may be written in full here.
    let path = || match pattern.strip_prefix("~/") {
        Some(rest) => {
            let home = domain::escape_pattern(&context.home.display().to_string());
            format!("({home}|~)/{}", glob(rest, ".*"))
        }
        None => format!("(.*/)?{}", glob(pattern.trim_start_matches("./"), ".*")),
    };
    match tool {
        "bash" => Some(vec![of_opencode_command(pattern, list)]),
        "read" => Some(vec![rule("eca__read_file", "path", path())]),
        "edit" | "write" | "patch" => {
            let mut rules: Vec<NewRule> = EDITORS.iter().map(|editor| rule(editor, "path", path())).collect();
            // It has two paths, which one pattern cannot name.
            rules.push(whole("eca__move_file"));
            Some(rules)
        }
        "webfetch" => Some(vec![rule("eca__fetch_url", "url", glob(pattern, ".*"))]),
        _ => None,
    }
}

fn whole(target: &str) -> NewRule {
    NewRule { target: target.to_owned(), pattern: None }
}

/// `npm test:*` is the older form of `npm test *`.
fn claude_command(command: &str) -> String {
    match command.strip_suffix(":*") {
        Some(prefix) => format!("{prefix} *"),
        None => command.to_owned(),
    }
}

/// A pattern with `*` as a regular expression for a command.
fn shell(pattern: &str, list: RuleList) -> NewRule {
    let expression = match (pattern.strip_suffix(" *"), list) {
        // `npm test *` also means `npm test`.
        (Some(prefix), RuleList::Allow) => format!("{}( .*)?", glob(prefix, ".*")),
        // Here more is better: also `npm tests`.
        (Some(prefix), RuleList::Ask | RuleList::Deny) => format!("{}.*", glob(prefix, ".*")),
        (None, _) => glob(pattern, ".*"),
    };
    NewRule { target: SHELL.to_owned(), pattern: Some(("command", expression)) }
}

fn web(specifier: &str, list: RuleList) -> Converted {
    let Some(domain) = specifier.strip_prefix("domain:").map(str::trim) else {
        return Err("only rules for a domain can be converted".to_owned());
    };
    let expression = match (domain.strip_prefix("*."), list) {
        (None, RuleList::Allow) => format!("https?://{}([/?#].*)?", domain::escape_pattern(domain)),
        (None, _) => format!("https?://([^/?#]*[@.])?{}([:/?#].*)?", domain::escape_pattern(domain)),
        (Some(parent), RuleList::Allow) => {
            format!("https?://[A-Za-z0-9.-]+\\.{}([/?#].*)?", domain::escape_pattern(parent))
        }
        (Some(parent), _) => format!("https?://[^/?#]*{}([:/?#].*)?", domain::escape_pattern(parent)),
    };
    Ok(vec![NewRule { target: "eca__fetch_url".to_owned(), pattern: Some(("url", expression)) }])
}

fn server_tool(tool: &str, list: RuleList, context: &Context<'_>) -> Converted {
    let name = tool.trim_start_matches("mcp__");
    let (server, tool) = name.split_once("__").map_or((name, None), |(server, tool)| (server, Some(tool)));
    if list == RuleList::Allow && !context.servers.contains(server) {
        return Err(format!("the MCP server {server} is not the same here"));
    }
    match tool.filter(|tool| *tool != "*") {
        None => Ok(vec![whole(server)]),
        Some(tool) if tool.contains('*') => Err("only whole names of tools can be converted".to_owned()),
        Some(tool) => Ok(vec![whole(&format!("{server}__{tool}"))]),
    }
}

/// A pattern of paths as `.gitignore` has them, for lists that may cover more.
fn paths(pattern: &str, targets: &[&str], context: &Context<'_>) -> Converted {
    if pattern.contains(['[', ']', '{', '}', '!', '\\']) {
        return Err("its path has brackets; write the rule yourself".to_owned());
    }
    let (start, rest) = if let Some(rest) = pattern.strip_prefix("~/") {
        (format!("({}|~)/", domain::escape_pattern(&context.home.display().to_string())), rest)
    } else if let Some(rest) = pattern.strip_prefix("//") {
        ("/".to_owned(), rest)
    } else {
        let rest = pattern.trim_start_matches("./").trim_start_matches('/');
        ("(.*/)?".to_owned(), rest.strip_prefix("**/").unwrap_or(rest))
    };
    let rest = rest.strip_suffix('/').map_or_else(|| rest.to_owned(), |folder| format!("{folder}/**"));
    let expression = match rest.strip_suffix("/**") {
        Some(folder) => format!("{start}{}(/.*)?", path_glob(folder)),
        // A name also means the folder of this name.
        None => format!("{start}{}(/.*)?", path_glob(&rest)),
    };
    let rule =
        |target: &&str| NewRule { target: (*target).to_owned(), pattern: Some(("path", expression.clone())) };
    Ok(targets.iter().map(rule).collect())
}

/// `**` crosses folders, `*` does not.
fn path_glob(pattern: &str) -> String {
    let parts: Vec<String> = pattern.split("**").map(|part| glob(part, "[^/]*")).collect();
    parts.join(".*")
}

fn glob(pattern: &str, star: &str) -> String {
    let mut expression = String::new();
    for character in pattern.chars() {
        match character {
            '*' => expression.push_str(star),
            '?' if star != ".*" => expression.push_str("[^/]"),
            other => expression.push_str(&domain::escape_pattern(&other.to_string())),
        }
    }
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(rule: &str, list: RuleList) -> Vec<(String, String)> {
        let servers = HashSet::from(["github".to_owned()]);
        let context = Context { home: Path::new("/home/me"), servers: &servers };
        let rules = of_claude(rule, list, &context).unwrap_or_default();
        rules
            .into_iter()
            .map(|rule| (rule.target, rule.pattern.map(|(_, pattern)| pattern).unwrap_or_default()))
            .collect()
    }

    #[test]
    fn rules_are_converted_or_refused() {
        use RuleList::{Allow, Deny};
        type Row = (&'static str, RuleList, &'static [(&'static str, &'static str)]);
        let rows: [Row; 17] = [
            ("Bash(npm test)", Allow, &[(SHELL, "npm test")]),
            ("Bash(npm test:*)", Allow, &[(SHELL, "npm test( .*)?")]),
            ("Bash(git push:*)", Deny, &[(SHELL, "git push.*")]),
            ("Bash(* --version)", Allow, &[(SHELL, r".* \-\-version")]),
            ("Bash", Allow, &[(SHELL, "")]),
            ("Bash(*)", Deny, &[(SHELL, "")]),
            ("WebFetch(domain:docs.rs)", Allow, &[("eca__fetch_url", r"https?://docs\.rs([/?#].*)?")]),
            (
                "WebFetch(domain:x.io)",
                Deny,
                &[("eca__fetch_url", r"https?://([^/?#]*[@.])?x\.io([:/?#].*)?")],
            ),
            ("Read(./.env)", Deny, &[("eca__read_file", r"(.*/)?\.env(/.*)?")]),
            ("Read(**/secrets/**)", Deny, &[("eca__read_file", "(.*/)?secrets(/.*)?")]),
            ("Read(~/.ssh/**)", Deny, &[("eca__read_file", r"(/home/me|~)/\.ssh(/.*)?")]),
            ("Edit", Allow, &[("eca__edit_file", ""), ("eca__write_file", ""), ("eca__apply_patch", "")]),
            ("mcp__github__list_issues", Allow, &[("github__list_issues", "")]),
            ("mcp__other__list", Allow, &[]),
            ("Edit(src/**)", Allow, &[]),
            ("Read(src/[a-z])", Deny, &[]),
            ("Task(x)", Allow, &[]),
        ];
        for (rule, list, expected) in rows {
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(target, pattern)| ((*target).to_owned(), (*pattern).to_owned()))
                .collect();
            assert_eq!(converted(rule, list), expected, "{rule}");
        }
    }
}
