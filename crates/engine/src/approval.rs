//! The one place that decides whether a tool call runs. Pure: rules, call and review in, verdict out.
//!
//! Order: deny · plan · outside the workspace · remembered · ask by argument · allow by argument · ask · allow ·
//! default. Invariants: a deny rule is absolute, whichever layer it stands in; broken policy asks; what cannot be
//! asked is refused.

use config::{Approval, ApprovalRules, Rule, Settings};
use domain::host::Grants;
use domain::tool::{Review, ToolSpec};
use regex::RegexBuilder;
use serde_json::Value;

/// Everything a decision depends on.
pub struct Case<'a> {
    pub rules: &'a ApprovalRules,
    pub spec: &'a ToolSpec,
    pub input: &'a Value,
    pub review: &'a Review,
    pub remembered: &'a Remembered,
    pub plan: bool,
    pub trust: bool,
    /// A person can be asked.
    pub can_ask: bool,
    pub granted: Grants,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub decision: Decision,
    /// Why, as a sentence for people.
    pub reason: String,
    /// It would have been asked, but nobody can be.
    pub unasked: bool,
}

/// What a person allowed or refused for the rest of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    commands: Vec<String>,
    tools: Vec<String>,
    denied: Vec<String>,
}

/// The rules for all behaviors with those of one beside them.
pub fn rules_for(settings: &Settings, behavior: &str) -> ApprovalRules {
    let mut rules = settings.tools.approval.clone();
    if let Some(own) = settings.behaviors.get(behavior) {
        let own = own.approval.clone();
        rules.by_default = own.by_default.or(rules.by_default);
        rules.closed = rules.closed.or(own.closed);
        rules.allow.extend(own.allow);
        rules.ask.extend(own.ask);
        rules.deny.extend(own.deny);
    }
    rules
}

impl Remembered {
    pub fn allow(&mut self, spec: &ToolSpec, review: &Review) {
        if review.keys.is_empty() {
            if spec.name != "shell_command" {
                self.tools.push(spec.offered_name());
            }
        } else if review.must_ask.is_none() {
            self.commands.extend(review.keys.iter().cloned());
        }
    }

    pub fn deny(&mut self, spec: &ToolSpec) {
        self.denied.push(spec.offered_name());
    }

    pub fn commands(&self) -> Vec<String> {
        self.commands.clone()
    }

    fn allows(&self, spec: &ToolSpec, review: &Review) -> bool {
        if review.must_ask.is_some() {
            return false;
        }
        if review.keys.is_empty() {
            return self.tools.contains(&spec.offered_name());
        }
        review.keys.iter().all(|key| self.commands.contains(key))
    }
}

impl Verdict {
    fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self { decision, reason: reason.into(), unasked: false }
    }

    /// What the model is told of a refused call.
    pub fn told(&self) -> String {
        format!("This call was refused and not run. {} Go on without it or ask the user.", self.reason)
    }
}

pub fn decide(case: &Case<'_>) -> Verdict {
    let verdict = by_rules(case);
    if verdict.decision != Decision::Ask {
        return verdict;
    }
    if case.trust {
        return Verdict::new(Decision::Allow, "This chat is trusted.");
    }
    if grants(case) {
        return Verdict::new(Decision::Allow, "Allowed by --approve.");
    }
    if !case.can_ask {
        let reason = format!("{} Nobody can be asked here.", verdict.reason);
        return Verdict { unasked: true, ..Verdict::new(Decision::Deny, reason) };
    }
    verdict
}

fn by_rules(case: &Case<'_>) -> Verdict {
    let Case { rules, spec, review, remembered, .. } = case;
    let matched = |rules: &[Rule], by_argument: bool, reach: Reach| {
        rules
            .iter()
            .find(|rule| rule.args_matchers.is_empty() != by_argument && matches(rule, case, reach))
            .map(said)
    };
    let denied = matched(&rules.deny, true, Reach::Any).or_else(|| matched(&rules.deny, false, Reach::Any));
    if let Some(rule) = denied {
        return Verdict::new(Decision::Deny, format!("Forbidden by {rule}."));
    }
    if let Some(problem) = &rules.closed {
        return Verdict::new(
            Decision::Ask,
            format!("The approval rules are broken ({problem}), so everything is asked."),
        );
    }
    if case.plan && review.changes {
        return Verdict::new(Decision::Deny, "The plan behavior changes nothing; switch to agent to do it.");
    }
    if remembered.denied.contains(&spec.offered_name()) {
        return Verdict::new(Decision::Deny, "The user refused this tool for the rest of the session.");
    }
    if let Some(path) = review.outside.first() {
        return Verdict::new(Decision::Ask, format!("{} is outside the workspace.", path.display()));
    }
    if remembered.allows(spec, review) {
        return Verdict::new(Decision::Allow, "Allowed earlier in this session.");
    }
    if let Some(rule) = matched(&rules.ask, true, Reach::Any) {
        return Verdict::new(Decision::Ask, format!("Asked by {rule}."));
    }
    if let Some(rule) = matched(&rules.allow, true, Reach::All) {
        return match &review.must_ask {
            // A pattern cannot know what else a line does.
            Some(why) => Verdict::new(Decision::Ask, why.clone()),
            None => Verdict::new(Decision::Allow, format!("Allowed by {rule}.")),
        };
    }
    if let Some(rule) = matched(&rules.ask, false, Reach::Any) {
        return Verdict::new(Decision::Ask, format!("Asked by {rule}."));
    }
    if let Some(rule) = matched(&rules.allow, false, Reach::All) {
        return Verdict::new(Decision::Allow, format!("Allowed by {rule}."));
    }
    by_default(case)
}

fn by_default(case: &Case<'_>) -> Verdict {
    match case.rules.by_default {
        Some(Approval::Deny) => Verdict::new(Decision::Deny, "Forbidden by toolCall.approval.byDefault."),
        Some(Approval::Allow) => Verdict::new(Decision::Allow, "Allowed by toolCall.approval.byDefault."),
        Some(Approval::Ask) | None if case.review.harmless => {
            Verdict::new(Decision::Allow, "It changes nothing and stays in the workspace.")
        }
        Some(Approval::Ask) | None => {
            let why = case.review.must_ask.clone().unwrap_or_else(|| "It could change something.".into());
            Verdict::new(Decision::Ask, why)
        }
    }
}

/// How far a front-end without a person may go by itself.
fn grants(case: &Case<'_>) -> bool {
    match case.granted {
        Grants::None => false,
        Grants::Read => case.spec.read_only && case.review.outside.is_empty(),
        Grants::Edit => {
            case.review.outside.is_empty()
                && case.spec.server == "eca"
                && (case.spec.read_only
                    || matches!(case.spec.name.as_str(), "write_file" | "edit_file" | "move_file"))
        }
        Grants::All => true,
    }
}

/// A shell line is several commands: one of them is enough to deny or ask, all of them are needed to allow.
#[derive(Clone, Copy)]
enum Reach {
    Any,
    All,
}

fn matches(rule: &Rule, case: &Case<'_>, reach: Reach) -> bool {
    let spec = case.spec;
    let named = rule.target == spec.name && spec.server == "eca"
        || rule.target == spec.offered_name()
        || rule.target == spec.server && spec.server != "eca";
    named
        && (rule.args_matchers.is_empty()
            || rule.args_matchers.iter().all(|matcher| argument_matches(matcher, case, reach)))
}

/// A pattern must match the whole argument.
fn argument_matches((name, patterns): &(String, Vec<String>), case: &Case<'_>, reach: Reach) -> bool {
    let Some(value) = case.input.get(name) else { return false };
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let keys = &case.review.keys;
    patterns.iter().any(|pattern| {
        let whole = RegexBuilder::new(&format!("^(?:{pattern})$")).dot_matches_new_line(true).build();
        whole.is_ok_and(|regex| match reach {
            Reach::Any => regex.is_match(&text) || keys.iter().any(|key| regex.is_match(key)),
            Reach::All => {
                regex.is_match(&text) && (keys.len() < 2 || keys.iter().all(|key| regex.is_match(key)))
            }
        })
    })
}

fn said(rule: &Rule) -> String {
    let origin = &rule.origin;
    if rule.args_matchers.is_empty() {
        format!("the rule for {} ({origin})", rule.target)
    } else {
        format!("the argument rule for {} ({origin})", rule.target)
    }
}
