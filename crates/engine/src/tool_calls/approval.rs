//! The one place that decides whether a tool call runs. Pure: rules, call and review in, verdict out.
//!
//! Order: deny · plan · taint · broken policy · hooks that cannot run · files without undo · sandbox grants · outside the workspace ·
//! ask by argument · remembered · allow by argument · ask · allow · default ·
//! contained by a sandbox. Invariants: a deny rule is absolute, whichever layer it
//! stands in; broken policy asks, trust or not; a path is what it leads to, however it is written; what cannot be asked is refused;
//! neither rules nor hooks nor trust nor what is remembered let a tainted chat send secrets or change what runs later.

use config::{Approval, ApprovalRules, BlockingHook, HookMatcher, Rule};
use domain::host::Grants;
use domain::names::is_same_name;
use domain::tool::{Review, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::cause::cause_of;
use super::remembered::allows;
use super::{reviewer, taint};
use crate::behavior;
use crate::session::Session;

pub use super::case::rules_for;
pub use super::remembered::rememberable;
pub use super::verdict::{ApprovalDecision, Case, Decision, HookVerdict};
pub use session::Remembered;

/// The server of the built-in tools.
const BUILT_IN: &str = "eca";
/// How rules name the tool that reads files, or all built-in tools.
const READERS: &[&str] = &["read_file", "eca__read_file", BUILT_IN];

pub fn decide(case: &Case<'_>) -> ApprovalDecision {
    let by_rules = by_rules(case);
    let asked_by_default = by_rules.is_none();
    let mut verdict = by_rules.unwrap_or_else(|| by_default(case));
    if verdict.decision == Decision::Deny {
        return verdict;
    }
    if let Some(reason) = taint::find_danger(case) {
        let ask = ApprovalDecision { once: true, ..ApprovalDecision::new(Decision::Ask, reason) };
        return if case.can_ask { ask } else { ask.refuse_unasked() };
    }
    let doubt = find_doubt(case).map(str::to_owned).or_else(|| find_unknown_code(case));
    if let Some(reason) = doubt.clone().filter(|_| verdict.decision == Decision::Allow) {
        verdict = ApprovalDecision::new(Decision::Ask, reason);
    }
    if verdict.decision != Decision::Ask {
        return verdict;
    }
    // The doubt is why neither trust nor `--approve` answers.
    if let Some(reason) = doubt.clone().filter(|_| case.trust || grants(case)) {
        verdict = ApprovalDecision::new(Decision::Ask, reason);
    }
    // A rule that could not be read, or a hook that cannot run, may be one that forbids; one that forbids may be
    // evaded. A way out of the sandbox is a person's to give.
    let readable = case.rules.closed.is_none()
        && blocking_hook(case).is_none()
        && !matches!(case.hook, Some(HookVerdict::Ask { .. }))
        && doubt.is_none()
        && case.review.unrecoverable.is_empty()
        && case.review.grants.is_empty();
    if readable && case.trust {
        return ApprovalDecision::new(Decision::Allow, "This chat is trusted.");
    }
    if readable && grants(case) {
        return ApprovalDecision::new(Decision::Allow, "Allowed by --approve.");
    }
    // A program could read what a rule forbids, unless its sandbox keeps that closed.
    let keeps_rules = forbidden_paths(case.rules).is_empty() || case.review.seals_forbidden;
    let is_limited = doubt.is_none() && keeps_rules && !case.rules.asks_explicitly;
    let may_be_contained = case.can_ask || (readable && case.granted.contained);
    if asked_by_default && is_limited && case.review.contained && may_be_contained {
        let reason = "Its sandbox keeps it in the workspace, where changes can be undone.";
        return ApprovalDecision { contained: true, ..ApprovalDecision::new(Decision::Allow, reason) };
    }
    if !case.can_ask {
        return verdict.refuse_unasked();
    }
    ApprovalDecision { reviewable: asked_by_default && readable && reviewer::may_look_at(case), ..verdict }
}

/// `None`: no rule is about this call.
fn by_rules(case: &Case<'_>) -> Option<ApprovalDecision> {
    let Case { rules, review, .. } = case;
    if let Some(decided) = forbid(case).or_else(|| ask_whatever_rules_say(case)) {
        return Some(decided);
    }
    if let Some(rule) = matching_rule(case, &rules.ask, true, Reach::Any) {
        return Some(ApprovalDecision::new(Decision::Ask, format!("Asked by {rule}.")));
    }
    if is_remembered(case) {
        return Some(ApprovalDecision::new(Decision::Allow, "Allowed earlier in this session."));
    }
    if let Some(rule) = matching_rule(case, &rules.allow, true, Reach::All) {
        return match &review.must_ask {
            // A pattern cannot know what else a line does; a sandbox need not.
            Some(_) if review.contained => None,
            Some(why) => Some(ApprovalDecision::new(Decision::Ask, why.clone())),
            None => Some(ApprovalDecision::new(Decision::Allow, format!("Allowed by {rule}."))),
        };
    }
    if let Some(rule) = matching_rule(case, &rules.ask, false, Reach::Any) {
        return Some(ApprovalDecision::new(Decision::Ask, format!("Asked by {rule}.")));
    }
    if let Some(rule) = matching_rule(case, &rules.allow, false, Reach::All) {
        return Some(ApprovalDecision::new(Decision::Allow, format!("Allowed by {rule}.")));
    }
    None
}

fn is_remembered(case: &Case<'_>) -> bool {
    allows(case.remembered, case.spec, case.input, case.review)
}

/// What nothing can allow.
fn forbid(case: &Case<'_>) -> Option<ApprovalDecision> {
    let deny = &case.rules.deny;
    let rule = matching_rule(case, deny, true, Reach::Any)
        .or_else(|| matching_rule(case, deny, false, Reach::Any))
        .or_else(|| find_forbidden_path(case));
    let reason = if let Some(rule) = rule {
        format!("Forbidden by {rule}.")
    } else if let Some(HookVerdict::Deny { reason }) = &case.hook {
        reason.clone()
    } else if case.read_only && case.review.changes {
        "This behavior changes nothing; switch to agent to do it.".to_owned()
    } else if case.remembered.is_denied(case.spec) {
        "The user refused this tool for the rest of the session.".to_owned()
    } else {
        return None;
    };
    Some(ApprovalDecision::new(Decision::Deny, reason))
}

/// What is asked before any rule could allow it.
fn ask_whatever_rules_say(case: &Case<'_>) -> Option<ApprovalDecision> {
    let Case { rules, review, .. } = case;
    let reason = if let Some(problem) = &rules.closed {
        format!("The approval rules are broken ({problem}), so everything is asked.")
    } else if let Some(hook) = blocking_hook(case) {
        let BlockingHook { name, origin, .. } = hook;
        format!("The hook {name} ({origin}) would decide about this call, but it cannot be read.")
    } else if let Some(HookVerdict::Ask { reason }) = &case.hook {
        reason.clone()
    } else if !review.unrecoverable.is_empty() {
        let files: Vec<String> = review.unrecoverable.iter().map(|path| path.display().to_string()).collect();
        format!("It may destroy files that undo cannot bring back: {}.", files.join(", "))
    } else if !review.grants.is_empty() {
        format!("It asks for more than its sandbox allows. {}", review.grants.join(" "))
    } else if let Some(path) = review.outside.first().filter(|_| !is_remembered(case)) {
        let why = review.must_ask.clone().filter(|_| review.keys.is_empty());
        why.unwrap_or_else(|| format!("{} is outside the workspace.", path.display()))
    } else {
        return None;
    };
    Some(ApprovalDecision::new(Decision::Ask, reason))
}

/// The first rule that matches, for people; `by_argument`: among those that look at arguments, else among the others.
fn matching_rule(case: &Case<'_>, rules: &[Rule], by_argument: bool, reach: Reach) -> Option<String> {
    rules
        .iter()
        .find(|rule| rule.args_matchers.is_empty() != by_argument && matches(rule, case, reach))
        .map(|rule| describe(rule, case, reach))
}

/// A hook that may forbid this call and cannot run.
fn blocking_hook<'a>(case: &Case<'a>) -> Option<&'a BlockingHook> {
    case.rules.blocking_hooks.iter().find(|hook| is_about(&hook.matcher, case))
}

/// Whether a hook is about this call.
pub(crate) fn is_about(matcher: &HookMatcher, case: &Case<'_>) -> bool {
    match matcher {
        HookMatcher::All => true,
        // A pattern that cannot be compared is about every call.
        HookMatcher::Pattern(pattern) => RegexBuilder::new(pattern)
            .build()
            .map_or(true, |pattern| pattern.is_match(&format!("{}__{}", case.spec.server, case.spec.name))),
        HookMatcher::Rules(rules) => rules.iter().any(|rule| matches(rule, case, Reach::Any)),
    }
}

fn by_default(case: &Case<'_>) -> ApprovalDecision {
    match case.rules.by_default {
        Some(Approval::Deny) => {
            ApprovalDecision::new(Decision::Deny, "Forbidden by toolCall.approval.byDefault.")
        }
        Some(Approval::Allow) => {
            ApprovalDecision::new(Decision::Allow, "Allowed by toolCall.approval.byDefault.")
        }
        Some(Approval::Ask) | None if case.review.harmless && !case.rules.asks_explicitly => {
            ApprovalDecision::new(Decision::Allow, "It changes nothing and stays in the workspace.")
        }
        Some(Approval::Ask) | None => {
            if let (Some(HookVerdict::Allow { hook }), None) = (&case.hook, &case.review.must_ask) {
                return ApprovalDecision::new(Decision::Allow, format!("Allowed by the hook {hook}."));
            }
            let why = case.review.must_ask.clone().unwrap_or_else(|| cause_of(case));
            ApprovalDecision::new(Decision::Ask, why)
        }
    }
}

/// How far a front-end without a person may go by itself. Using the network is a permission of its own.
fn grants(case: &Case<'_>) -> bool {
    let Grants { reads, edits, network, all, contained: _ } = case.granted;
    let stays_inside = case.review.outside.is_empty();
    let is_native = case.spec.origin == Origin::Native;
    all || match case.spec.effect {
        ToolEffect::Reads | ToolEffect::Previews => reads && stays_inside,
        ToolEffect::WritesFiles => edits && stays_inside && is_native,
        ToolEffect::UsesNetwork => network && is_native,
        ToolEffect::RunsCommands | ToolEffect::Other => false,
    }
}

/// Why a shell line could do what a rule forbids although no rule matches it. Such a line is never allowed without a
/// person.
fn find_doubt(case: &Case<'_>) -> Option<&'static str> {
    let review = case.review;
    if case.spec.effect != ToolEffect::RunsCommands || !(review.unclear || review.reads_unnamed) {
        return None;
    }
    let on_command = |rule: &Rule| {
        is_target(rule, case.spec) && rule.args_matchers.iter().any(|(name, _)| name == "command")
    };
    if review.unclear && case.rules.deny.iter().any(on_command) {
        return Some("The line is not fully understood, and a rule forbids some commands.");
    }
    if forbidden_paths(case.rules).is_empty() || review.seals_forbidden {
        return None;
    }
    Some("The line could read a file that a rule forbids. The tools read_file and grep leave such files out.")
}

/// Why a command that nobody approved by itself is asked about in a tainted chat.
fn find_unknown_code(case: &Case<'_>) -> Option<String> {
    let reason = taint::find_unknown_code(case)?;
    let is_approved =
        is_remembered(case) || matching_rule(case, &case.rules.allow, true, Reach::All).is_some();
    (!is_approved).then_some(reason)
}

/// The patterns of paths that no tool may read: those of the deny rules for `read_file`.
pub fn forbidden_paths(rules: &ApprovalRules) -> Vec<String> {
    path_rules(rules).flat_map(|(_, patterns)| patterns.iter().cloned()).collect()
}

/// The same for everything in a session, its parent's behavior included.
pub(crate) fn forbidden_paths_of(session: &Session) -> Vec<String> {
    let parent = session.inherited.as_ref().map(|inherited| inherited.parent.behavior());
    let behaviors = std::iter::once(session.behavior()).chain(parent);
    let rules = behaviors.map(|name| rules_for(&session.workspace.settings, behavior::canonical(&name)));
    rules.flat_map(|rules| forbidden_paths(&rules)).collect()
}

/// Whether one of these paths may not be read in a session. A pattern that cannot be compared forbids everything.
pub(crate) fn is_forbidden(session: &Session, paths: &[[String; 2]]) -> bool {
    let matches = |pattern: &String| match compile(pattern, true) {
        Ok(regex) => paths.iter().flatten().any(|text| regex.is_match(text)),
        Err(_) => true,
    };
    forbidden_paths_of(session).iter().any(matches)
}

fn path_rules(rules: &ApprovalRules) -> impl Iterator<Item = (&Rule, &Vec<String>)> {
    rules.deny.iter().filter_map(|rule| match rule.args_matchers.as_slice() {
        [(name, patterns)]
            if name == "path" && READERS.iter().any(|reader| is_same_name(&rule.target, reader)) =>
        {
            Some((rule, patterns))
        }
        _ => None,
    })
}

/// The rule that forbids reading one of the paths that a call names, whatever the tool is.
fn find_forbidden_path(case: &Case<'_>) -> Option<String> {
    let Review { paths, read_paths, .. } = case.review;
    let named: Vec<&String> = paths.iter().map(|(_, texts)| texts).chain(read_paths).flatten().collect();
    let is_forbidden = |pattern: &String| match compile(pattern, true) {
        Ok(regex) => named.iter().any(|text| regex.is_match(text)),
        // A pattern that cannot be compared forbids everything.
        Err(_) => !named.is_empty(),
    };
    let mut found =
        path_rules(case.rules).flat_map(|(rule, patterns)| patterns.iter().map(move |it| (rule, it)));
    found.find(|(_, pattern)| is_forbidden(pattern)).map(|(Rule { target, origin, .. }, pattern)| {
        format!("the argument rule for {target}: path = {} ({origin})", domain::visible_line(pattern))
    })
}

/// A pattern that must match a whole text.
fn compile(pattern: &str, any_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{pattern})$"))
        .dot_matches_new_line(true)
        .case_insensitive(any_case)
        .build()
}

/// An allow pattern for commands covers whole words: behind a letter, `.*` begins a new word or is empty, so that
/// `git status.*` does not cover `git statusx`.
fn cover_whole_words(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len());
    let mut at = 0;
    while at < chars.len() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let escaped = at >= 2 && chars[at - 2] == '\\';
        let in_word = before.is_some_and(|char| char.is_alphanumeric() || "_)".contains(char)) && !escaped;
        let end = match chars[at..] {
            ['.', '*' | '+', ..] => Some(at + 1),
            ['[', '^', ..] => chars[at..]
                .iter()
                .position(|char| *char == ']')
                .map(|close| at + close + 1)
                .filter(|end| matches!(chars.get(*end), Some('*' | '+'))),
            _ => None,
        };
        match end.filter(|_| in_word) {
            Some(end) => {
                let piece: String = chars[at..=end].iter().collect();
                let optional = if chars[end] == '*' { "?" } else { "" };
                out.push_str(&format!("(?:\\s{piece}){optional}"));
                at = end + 1;
            }
            None if chars[at] == '\\' && at + 1 < chars.len() => {
                out.extend([chars[at], chars[at + 1]]);
                at += 2;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// A shell line is several commands: one of them is enough to deny or ask, all of them are needed to allow.
#[derive(Clone, Copy)]
enum Reach {
    Any,
    All,
}

fn matches(rule: &Rule, case: &Case<'_>, reach: Reach) -> bool {
    let is_counted = || {
        let names = case.review.counts_as.iter();
        matches!(reach, Reach::Any) && names.into_iter().any(|name| is_target_name(rule, name))
    };
    (is_target(rule, case.spec) || is_counted())
        && (rule.args_matchers.is_empty()
            || rule.args_matchers.iter().all(|matcher| argument_matches(matcher, case, reach)))
}

fn is_target(rule: &Rule, spec: &ToolSpec) -> bool {
    let is_named = |name: &str| is_same_name(&rule.target, name);
    is_named(&spec.server)
        || spec.server == BUILT_IN && is_named(&spec.name)
        || rule.target.contains("__") && is_named(&spec.offered_name())
}

/// Whether the rule is for the built-in tool of this name.
fn is_target_name(rule: &Rule, name: &str) -> bool {
    is_same_name(&rule.target, name) || is_same_name(&rule.target, &format!("{BUILT_IN}__{name}"))
}

/// A pattern must match the whole argument. A path is compared as it is written and as what it leads to, a shell line
/// as a whole and command by command.
fn argument_matches((name, patterns): &(String, Vec<String>), case: &Case<'_>, reach: Reach) -> bool {
    let written = case.input.get(name).map(|value| match value {
        Value::String(text) => text.clone(),
        other @ Value::Null
        | other @ Value::Bool(_)
        | other @ Value::Number(_)
        | other @ Value::Array(_)
        | other @ Value::Object(_) => other.to_string(),
    });
    let Review { subcommands, commands, paths, arguments, .. } = case.review;
    let given = arguments.iter().filter(|(argument, _)| argument == name).map(|(_, text)| text.clone());
    let written: Vec<String> = written.into_iter().chain(given).collect();
    let leads_to: Vec<&[String; 2]> =
        paths.iter().filter(|(argument, _)| argument == name).map(|(_, texts)| texts).collect();
    let parts: Vec<&String> =
        if name == "command" { subcommands.iter().chain(commands).collect() } else { Vec::new() };
    patterns.iter().any(|pattern| {
        // Where it is forbidden, a path in other letters may be the same file, and `RM` the same program.
        let any_case = matches!(reach, Reach::Any) && !leads_to.is_empty();
        let is_allow = matches!(reach, Reach::All) && name == "command";
        let pattern = if is_allow { cover_whole_words(pattern) } else { pattern.clone() };
        // What cannot be compared allows nothing and forbids all.
        let Ok(regex) = compile(&pattern, any_case) else { return matches!(reach, Reach::Any) };
        let is_written = written.iter().any(|text| regex.is_match(text));
        let is_led = |texts: &&[String; 2]| texts.iter().any(|text| regex.is_match(text));
        match reach {
            Reach::Any => {
                let named = |text: &&String| regex.is_match(text) || regex.is_match(&lower_name(text));
                is_written || leads_to.iter().any(is_led) || parts.iter().any(named)
            }
            // `src/../.env` is not in `src`.
            Reach::All if !leads_to.is_empty() => leads_to.iter().all(is_led),
            Reach::All => {
                is_written && (commands.len() < 2 || commands.iter().all(|text| regex.is_match(text)))
            }
        }
    })
}

/// The command with its name in small letters.
fn lower_name(command: &str) -> String {
    let end = command.find(' ').unwrap_or(command.len());
    command[..end].to_lowercase() + &command[end..]
}

/// The rule for people, with the pattern of each argument that matched.
fn describe(rule: &Rule, case: &Case<'_>, reach: Reach) -> String {
    let origin = &rule.origin;
    if rule.args_matchers.is_empty() {
        return format!("the rule for {} ({origin})", rule.target);
    }
    let matched = |(name, patterns): &(String, Vec<String>)| {
        let is_match =
            |pattern: &&String| argument_matches(&(name.clone(), vec![(*pattern).clone()]), case, reach);
        let pattern = patterns.iter().find(is_match).map(String::as_str).unwrap_or_default();
        format!("{name} = {}", domain::visible_line(pattern))
    };
    let matched: Vec<String> = rule.args_matchers.iter().map(matched).collect();
    format!("the argument rule for {}: {} ({origin})", rule.target, matched.join(", "))
}
