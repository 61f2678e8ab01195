//! Finds settings that are well-formed and still cannot take effect: rules about tools that do not exist. Only `app`
//! knows both the settings and the tools. Pure.

use config::{ApprovalRules, Origin, Resolved, Rule, nearest};
use domain::names::is_same_name;
use domain::tool::ToolSpec;
use domain::{Level, Notice, visible_line};

/// The notices of the settings, and those about rules that match no tool.
pub(crate) fn notices(resolved: &Resolved, tools: &[ToolSpec]) -> Vec<Notice> {
    let mut notices = resolved.notices.clone();
    notices.extend(unmatched_rules(resolved, tools));
    notices
}

/// The specifications of the built-in tools, for commands that start no engine.
pub(crate) fn built_in_tools() -> Vec<ToolSpec> {
    let source = tools::builtin(tools::Options::default());
    domain::tool::ToolSource::tools(source.as_ref()).iter().map(|tool| tool.spec().clone()).collect()
}

fn unmatched_rules(resolved: &Resolved, tools: &[ToolSpec]) -> Vec<Notice> {
    let settings = &resolved.settings;
    let names = Names { resolved, tools };
    let mut notices = names.check_rules("toolCall.approval", &settings.tools.approval);
    let disabled = settings.tools.disabled.iter();
    notices.extend(disabled.filter_map(|name| names.check_name("disabledTools", name, None)));
    let prompts = settings.prompts.tools.iter();
    notices.extend(prompts.filter_map(|(name, _)| names.check_name("prompts.tools", name, None)));
    for (name, behavior) in &settings.behaviors {
        let key = format!("agent.{name}");
        notices.extend(names.check_rules(&format!("{key}.toolCall.approval"), &behavior.approval));
        let disabled = behavior.disabled_tools.iter();
        let key = format!("{key}.disabledTools");
        notices.extend(disabled.filter_map(|name| names.check_name(&key, name, None)));
    }
    notices
}

/// The tools that the engine itself offers.
const ENGINE_TOOLS: &[&str] = &[
    "spawn_agent",
    "eca__spawn_agent",
    "skill",
    "eca__skill",
    "recall",
    "eca__recall",
    "search_tools",
    "eca__search_tools",
];

/// The names that a rule may use.
struct Names<'a> {
    resolved: &'a Resolved,
    tools: &'a [ToolSpec],
}

impl Names<'_> {
    fn check_rules(&self, key: &str, rules: &ApprovalRules) -> Vec<Notice> {
        let lists = [("allow", &rules.allow), ("ask", &rules.ask), ("deny", &rules.deny)];
        let own = lists.into_iter().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)));
        let own = own.filter(|(_, rule)| rule.origin != Origin::Default);
        own.filter_map(|(list, rule)| {
            let key = format!("{key}.{list}");
            let unknown = self.check_name(&key, &rule.target, Some(&rule.origin));
            unknown.or_else(|| self.check_arguments(&key, rule))
        })
        .collect()
    }

    fn check_name(&self, key: &str, name: &str, origin: Option<&Origin>) -> Option<Notice> {
        let servers = &self.resolved.settings.mcp_servers;
        let is_server = |name: &str| servers.keys().any(|known| is_same_name(known, name));
        let of_server = |(server, _): (&str, &str)| is_server(server);
        // A pattern may be about tools of servers that are not running yet.
        let is_pattern = key.ends_with("disabledTools") && name.contains(['*', '.', '[', '(', '|', '+', '?']);
        if is_pattern
            || self.tool(name).is_some()
            || ENGINE_TOOLS.contains(&name)
            || self.tools.iter().any(|tool| is_same_name(&tool.server, name))
            || is_server(name)
            || name.split_once("__").is_some_and(of_server)
        {
            return None;
        }
        let known = self.tools.iter().flat_map(|tool| [tool.name.clone(), tool.offered_name()]);
        let known: Vec<String> = known.chain(servers.keys().cloned()).collect();
        let mut text = format!("`{key}` names {name}, which is no known tool and no configured MCP server.");
        if let Some(suggestion) = nearest(name, known.iter().map(String::as_str)) {
            text.push_str(&format!(" Did you mean {suggestion}?"));
        }
        Some(warning(origin, &text))
    }

    /// A rule about an argument that a built-in tool does not have never matches.
    fn check_arguments(&self, key: &str, rule: &Rule) -> Option<Notice> {
        let properties = self.tool(&rule.target)?.input_schema.get("properties")?.as_object()?;
        let (argument, _) =
            rule.args_matchers.iter().find(|(argument, _)| !properties.contains_key(argument))?;
        let known: Vec<&str> = properties.keys().map(String::as_str).collect();
        let text = format!(
            "`{key}.{}` is about the argument {argument}, which the tool does not have. It has {}.",
            rule.target,
            known.join(", ")
        );
        Some(warning(Some(&rule.origin), &text))
    }

    fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name || tool.offered_name() == name)
    }
}

fn warning(origin: Option<&Origin>, text: &str) -> Notice {
    let text = origin.map_or_else(|| text.to_owned(), |origin| format!("{origin}: {text}"));
    let text: String = visible_line(&text).chars().take(2000).collect();
    Notice { level: Level::Warning, text }
}
