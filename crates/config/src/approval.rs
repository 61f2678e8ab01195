//! `toolCall.approval` as typed rules; the engine decides by them. Collected layer by layer, not merged like
//! other settings, so that no layer can take a deny or ask rule of another one away.
//!
//! Rules that cannot be read fail closed: a deny or ask rule then holds for the whole tool, an allow rule is dropped,
//! and where a whole block or file is unreadable every tool call asks.

use domain::{Level, Notice};
use serde_json::Value;

use crate::hooks::BlockingHook;
use crate::layer::{Authority, Layer, Object};
use crate::origin::Origin;
use crate::rule::{Rule, RuleError, read_rules};

/// The decision about a call. Stricter is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approval {
    Allow,
    Ask,
    Deny,
}

/// The rules of all layers, the lowest layer first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Always set for the global rules; a behavior may leave it open.
    pub by_default: Option<Approval>,
    /// A file says `byDefault: "ask"`: calls without a rule ask, also those that change nothing or stay in a sandbox.
    pub asks_explicitly: bool,
    pub allow: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
    /// Why everything asks, when part of the policy could not be read. `allow` is empty then.
    pub closed: Option<String>,
    /// Hooks that may forbid calls and cannot run: the calls that they match ask, in trusted chats too. The rules of
    /// a behavior have none of their own.
    pub blocking_hooks: Vec<BlockingHook>,
}

impl ApprovalRules {
    /// These rules on top of inherited ones.
    pub(crate) fn over(self, inherited: &Self) -> Self {
        let mut rules = inherited.clone();
        rules.set_default(&self);
        rules.closed = rules.closed.or(self.closed);
        rules.ask.extend(self.ask);
        rules.deny.extend(self.deny);
        self.allow.into_iter().for_each(|rule| replace(&mut rules.allow, rule));
        rules.finish()
    }

    /// Takes over the default of other rules, where they have one.
    pub fn set_default(&mut self, from: &Self) {
        if from.by_default.is_some() {
            self.by_default = from.by_default;
            self.asks_explicitly = from.asks_explicitly;
        }
    }

    /// Everything asks from now on, deny rules excepted.
    pub(crate) fn close(&mut self, why: &str) {
        self.closed.get_or_insert_with(|| why.to_owned());
        self.allow.clear();
        self.by_default = self.by_default.max(Some(Approval::Ask));
    }

    fn finish(mut self) -> Self {
        if let Some(why) = self.closed.clone() {
            self.close(&why);
        }
        self
    }
}

/// Collects the rules that are at `path` (`toolCall.approval`, or that of a behavior) in every layer.
/// `otherwise` holds where these rules have no `byDefault`.
pub(crate) fn collect(
    layers: &[Layer],
    path: &[&str],
    otherwise: Option<Approval>,
    notices: &mut Vec<Notice>,
) -> ApprovalRules {
    let mut rules = ApprovalRules::default();
    for layer in layers {
        // `toolCall: 5` hides rules that somebody believed in, just like a wrong `approval` itself.
        let known = (1..=path.len()).rev().find_map(|length| Some((length, layer.at(&path[..length])?)));
        match known {
            Some((length, Value::Object(block))) if length == path.len() => {
                RuleCollector { layer, path, otherwise, rules: &mut rules, notices }.read(block);
            }
            None | Some((_, Value::Object(_) | Value::Null)) => {}
            Some((length, _)) => {
                let what = "must be an object; every tool call asks until it is corrected.";
                let wrong = layer.describe_invalid(Level::Error, &path[..length], what);
                rules.closed.get_or_insert_with(|| wrong.text.clone());
                notices.push(wrong);
            }
        }
    }
    rules.finish()
}

struct RuleCollector<'a> {
    layer: &'a Layer,
    path: &'a [&'a str],
    otherwise: Option<Approval>,
    rules: &'a mut ApprovalRules,
    notices: &'a mut Vec<Notice>,
}

impl RuleCollector<'_> {
    fn read(&mut self, block: &Object) {
        let authority = self.layer.authority;
        for (key, value) in block {
            match key.as_str() {
                "byDefault" => self.read_default(value),
                "deny" => self.read_strict("deny", value),
                "ask" if authority != Authority::DenyOnly => self.read_strict("ask", value),
                "allow" if authority == Authority::Full => self.read_allow(value),
                "ask" | "allow" => {}
                // Read elsewhere: only the user's own settings name one.
                "reviewer" if self.path.len() == 2 => {}
                _ => self.close(key, "is no list of rules; `byDefault`, `allow`, `ask` and `deny` are."),
            }
        }
    }

    fn read_default(&mut self, value: &Value) {
        let approval = match value.as_str() {
            Some("allow") => Approval::Allow,
            Some("ask") => Approval::Ask,
            Some("deny") => Approval::Deny,
            _ if value.is_null() => return,
            _ => return self.close("byDefault", "must be \"allow\", \"ask\" or \"deny\"."),
        };
        let asks_explicitly = approval == Approval::Ask && self.layer.origin != Origin::Default;
        let before = (self.rules.by_default.or(self.otherwise), self.rules.asks_explicitly);
        let stricter = (Some(approval), asks_explicitly) > before;
        let applies = match self.layer.authority {
            Authority::Full => true,
            Authority::Untrusted => stricter,
            Authority::DenyOnly => stricter && approval == Approval::Deny,
        };
        if applies {
            self.rules.by_default = Some(approval);
            self.rules.asks_explicitly = asks_explicitly;
        }
    }

    /// Rules add up; one that cannot be read holds for all of its tool, or for all tools.
    fn read_strict(&mut self, list: &str, value: &Value) {
        let (mut rules, malformed) = read_rules(value, &self.layer.origin);
        for RuleError { target, what } in malformed {
            let Some(target) = target else {
                self.close(list, &format!("{what}."));
                continue;
            };
            let now = if list == "deny" { "denied" } else { "asked about" };
            let what = format!("{what}; the tool is {now} whatever its arguments until it is corrected.");
            self.report(&[list, &target], &what);
            let origin = self.layer.origin.clone();
            rules.push(Rule { target, args_matchers: Vec::new(), origin });
        }
        let rules_so_far = if list == "deny" { &mut self.rules.deny } else { &mut self.rules.ask };
        rules_so_far.append(&mut rules);
    }

    /// A higher layer's rule about the same target replaces the lower one; one that cannot be read is dropped.
    fn read_allow(&mut self, value: &Value) {
        let (rules, malformed) = read_rules(value, &self.layer.origin);
        for RuleError { target, what } in malformed {
            let what = format!("{what}; it allows nothing until it is corrected.");
            self.report(&["allow"].into_iter().chain(target.as_deref()).collect::<Vec<_>>(), &what);
            self.rules.allow.retain(|rule| Some(&rule.target) != target.as_ref());
        }
        if self.layer.adds_rules {
            return self.rules.allow.extend(rules);
        }
        rules.into_iter().for_each(|rule| replace(&mut self.rules.allow, rule));
    }

    fn close(&mut self, key: &str, what: &str) {
        let what = format!("{what} Every tool call asks until it is corrected.");
        self.report(&[key], &what);
        let why = self.notices.last().map(|notice| notice.text.clone()).unwrap_or_default();
        self.rules.closed.get_or_insert(why);
    }

    fn report(&mut self, key: &[&str], what: &str) {
        let path: Vec<&str> = self.path.iter().chain(key).copied().collect();
        self.notices.push(self.layer.describe_invalid(Level::Error, &path, what));
    }
}

fn replace(rules: &mut Vec<Rule>, rule: Rule) {
    rules.retain(|other| other.target != rule.target);
    rules.push(rule);
}
