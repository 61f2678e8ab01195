//! The resolved settings for people: every value with its origin, secrets masked. Makes text and JSON;
//! printing is the caller's.

use std::borrow::Cow;
use std::fmt::Write;

use domain::visible_line;
use serde_json::{Map, Value, json};

use crate::address;
use crate::approval::{Approval, ApprovalRules};
use crate::cursor::RefusedValue;
use crate::defaults;
use crate::layer::{Authority, Layer};
use crate::lazy_text::closing;
use crate::managed::Managed;
use crate::origin::Origin;
use crate::places::{self, Place};
use crate::resolve::Resolved;
use crate::rule::Rule;
use crate::secret::MASK;
use crate::tree::{Node, dotted};

impl Resolved {
    /// Every file of the workspace folders that counts, or does not, skills and commands included.
    pub fn all_places(&self) -> Vec<Place> {
        let texts = self.folders.iter().flat_map(places::of_texts);
        self.places.iter().cloned().chain(texts).collect()
    }

    /// Where the value of a dotted key came from.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.leaves()
            .into_iter()
            .find(|leaf| dotted(leaf.path.iter().copied()) == key)
            .map(|leaf| leaf.origin)
    }

    /// One line for each setting: `key = value    (origin)`. Every character is visible.
    pub fn show_text(&self) -> String {
        let mut text = String::new();
        for leaf in self.leaves() {
            let key = dotted(leaf.path.iter().copied());
            let state = match self.refusal(&leaf.path, leaf.origin) {
                Some(refused) => format!("; refused: {}", refused.reason),
                None => self.ignored_suffix(&leaf.path, leaf.origin).to_owned(),
            };
            let line = format!("{key} = {}    ({}{state})", mask(&leaf.path, &leaf.value), leaf.origin);
            let _ = writeln!(text, "{}", visible_line(&line));
        }
        for hook in &self.settings.tools.approval.blocking_hooks {
            let line = format!(
                "hooks.{}: it cannot run, so the calls that it matches are asked    ({})",
                hook.name, hook.origin
            );
            let _ = writeln!(text, "{}", visible_line(&line));
        }
        for (name, rules) in self.rules() {
            let default = rules.by_default.map(word).unwrap_or("(as for all behaviors)");
            let _ = writeln!(text, "{name}.byDefault = \"{default}\"");
            for (list, rules) in lists(rules) {
                for rule in rules {
                    let line =
                        format!("{name}.{list}.{} = {}    ({})", rule.target, show_rule(rule), rule.origin);
                    let _ = writeln!(text, "{}", visible_line(&line));
                }
            }
        }
        if let Some(managed) = &self.managed {
            for (key, value) in managed_rules(managed).as_object().into_iter().flatten() {
                let line = format!("managed.{key} = {value}    ({})", managed.file.display());
                let _ = writeln!(text, "{}", visible_line(&line));
            }
        }
        for notice in &self.notices {
            let _ = writeln!(text, "# {}", visible_line(&notice.text));
        }
        self.redactor.redact(&text).into_owned()
    }

    /// `; not supported, ignored` where the setting has no effect.
    fn ignored_suffix(&self, path: &[&str], origin: &Origin) -> &'static str {
        let is_under =
            |ignored: &str| (1..=path.len()).any(|length| dotted(path[..length].iter().copied()) == ignored);
        let ignored =
            self.ignored_keys.iter().find(|ignored| ignored.origin == *origin && is_under(&ignored.key));
        match ignored {
            Some(ignored) if ignored.unknown => "; unknown, ignored",
            Some(_) => "; not supported, ignored",
            None => "",
        }
    }

    /// Marks what is set at a place as refused: the settings alone did not show that it cannot be used.
    pub fn refuse(&mut self, path: &[&str], reason: &str) {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        self.refused.push(RefusedValue { path, origin: Origin::Default, reason: reason.to_owned() });
    }

    /// Why a value is not in force. A refusal of an object holds for everything in it.
    fn refusal(&self, path: &[&str], origin: &Origin) -> Option<&RefusedValue> {
        let is_meant = |refused: &&RefusedValue| {
            let is_above = path.len() >= refused.path.len()
                && refused.path.iter().zip(path).all(|(refused, part)| refused == part);
            is_above && (path.len() > refused.path.len() || refused.origin == *origin)
        };
        self.refused.iter().find(is_meant)
    }

    /// `{settings, origins, approval, ignored, refused, notices, managed}`. A refused value is not among the settings.
    pub fn show_json(&self) -> Value {
        let (refused, accepted): (Vec<Leaf<'_>>, Vec<Leaf<'_>>) =
            self.leaves().into_iter().partition(|leaf| self.refusal(&leaf.path, leaf.origin).is_some());
        let origins: Map<String, Value> = accepted
            .iter()
            .map(|leaf| (dotted(leaf.path.iter().copied()), leaf.origin.to_string().into()))
            .collect();
        let mut settings = masked(&self.tree, &mut Vec::new());
        let refused: Vec<Value> = refused
            .iter()
            .map(|leaf| {
                put(&mut settings, &leaf.path, default_at(&leaf.path));
                let reason = self.refusal(&leaf.path, leaf.origin).map(|refused| refused.reason.as_str());
                json!({"key": dotted(leaf.path.iter().copied()), "value": mask(&leaf.path, &leaf.value),
                    "origin": leaf.origin.to_string(), "reason": reason})
            })
            .collect();
        let approval: Map<String, Value> =
            self.rules().into_iter().map(|(name, rules)| (name, show_rules(rules))).collect();
        let notices: Vec<&str> = self.notices.iter().map(|notice| notice.text.as_str()).collect();
        let ignored: Vec<Value> = self.ignored_keys.iter().map(|ignored| {
            json!({"key": ignored.key, "origin": ignored.origin.to_string(), "unknown": ignored.unknown})
        }).collect();
        let shown = json!({
            "settings": settings,
            "origins": origins,
            "approval": approval,
            "ignored": ignored,
            "refused": refused,
            "notices": notices,
            "managed": self.managed.as_ref().map(|managed| json!({"file": managed.file, "rules": managed_rules(managed)})),
        });
        redact(&self.redactor, shown)
    }

    fn rules(&self) -> Vec<(String, &ApprovalRules)> {
        let mut rules = vec![("toolCall.approval".to_owned(), &self.settings.tools.approval)];
        let own = self
            .settings
            .behaviors
            .iter()
            .filter(|(_, behavior)| behavior.approval != ApprovalRules::default());
        rules.extend(
            own.map(|(name, behavior)| (dotted(["agent", name, "toolCall", "approval"]), &behavior.approval)),
        );
        rules
    }

    fn leaves(&self) -> Vec<Leaf<'_>> {
        let mut leaves = Vec::new();
        self.collect(&self.tree, &mut Vec::new(), &mut leaves);
        leaves
    }

    /// The highest layer that names a key.
    fn origin_of(&self, path: &[&str]) -> &Origin {
        let names = |layer: &&Layer| {
            let (first, rest) = path.split_first()?;
            rest.iter().try_fold(layer.values.get(*first)?, |value, key| value.get(*key)).map(drop)
        };
        let full = self.layers.iter().rev().filter(|layer| layer.authority == Authority::Full);
        let layer = full.into_iter().find(|layer| names(layer).is_some());
        layer.map_or(&Origin::Default, |layer| &layer.origin)
    }

    fn collect<'a>(&'a self, node: &'a Node, path: &mut Vec<&'a str>, leaves: &mut Vec<Leaf<'a>>) {
        match node {
            // Rules are not merged like other settings, so the tree does not tell what holds.
            _ if is_approval(path) => {}
            Node::Leaf { value, layer } => {
                let origin = self.layers.get(*layer).map_or(&Origin::Default, |layer| &layer.origin);
                leaves.push(Leaf { path: path.clone(), value: Cow::Borrowed(value), origin });
            }
            // `"models": {"m": {}}` says that there is an m.
            Node::Branch(branch) if branch.is_empty() && !path.is_empty() => {
                let value = Cow::Owned(json!({}));
                leaves.push(Leaf { path: path.clone(), value, origin: self.origin_of(path) });
            }
            Node::Branch(branch) => {
                for (key, node) in branch {
                    path.push(key);
                    self.collect(node, path, leaves);
                    path.pop();
                }
            }
        }
    }
}

/// Headers of `telemetry` are secrets as those of `otlp` are.
fn managed_rules(managed: &Managed) -> Value {
    let shown = managed.written.iter().map(|(key, value)| {
        let telemetry = value.as_object().filter(|_| key == "telemetry");
        let shown = telemetry.map_or_else(
            || mask(&[key], value),
            |members| {
                members.iter().map(|(name, value)| (name.clone(), mask(&["otlp", name], value))).collect()
            },
        );
        (key.clone(), shown)
    });
    shown.collect::<Map<_, _>>().into()
}

/// The default of a setting, where it has one.
fn default_at(path: &[&str]) -> Option<Value> {
    path.iter().try_fold(defaults::tree(), |node, part| node.get(part)).map(Node::to_value)
}

/// Replaces a member of the settings, or takes it out.
fn put(settings: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = settings;
    for part in parents {
        let Some(inner) = place.get_mut(*part) else { return };
        place = inner;
    }
    let Value::Object(members) = place else { return };
    match value {
        Some(value) => drop(members.insert((*last).to_owned(), value)),
        None => drop(members.shift_remove(*last)),
    }
}

struct Leaf<'a> {
    path: Vec<&'a str>,
    value: Cow<'a, Value>,
    origin: &'a Origin,
}

fn is_approval(path: &[&str]) -> bool {
    matches!(path, ["toolCall", "approval"] | ["agent", _, "toolCall", "approval"])
}

/// The entry of an MCP server as it may be shown.
pub fn masked_server_entry(entry: &Value) -> Value {
    fn visit(value: &Value, path: &mut Vec<String>) -> Value {
        let Value::Object(members) = value else {
            return mask(&path.iter().map(String::as_str).collect::<Vec<_>>(), value);
        };
        let mut shown = Map::new();
        for (name, value) in members {
            path.push(name.clone());
            shown.insert(name.clone(), visit(value, path));
            path.pop();
        }
        shown.into()
    }
    visit(entry, &mut Vec::new())
}

fn masked<'a>(node: &'a Node, path: &mut Vec<&'a str>) -> Value {
    match node {
        Node::Leaf { value, .. } => mask(path, value),
        Node::Branch(branch) => {
            let mut object = Map::new();
            for (key, node) in branch {
                path.push(key);
                if !is_approval(path) {
                    object.insert(key.clone(), masked(node, path));
                }
                path.pop();
            }
            object.into()
        }
    }
}

/// The value as it may be shown.
fn mask(path: &[&str], value: &Value) -> Value {
    let secret = match path {
        [.., "headers" | "extraHeaders" | "env" | "otlp", _] => true,
        [.., last] => matches!(
            *last,
            "key"
                | "clientSecret"
                | "clientKeyPassphrase"
                | "password"
                | "privateKey"
                | "assertion"
                | "identityToken"
        ),
        [] => false,
    };
    match value {
        Value::String(text) if secret => mask_secret(text).into(),
        Value::String(text) => address::masked(text).into(),
        Value::Array(values) if path.last() == Some(&"args") => mask_arguments(values),
        Value::Null => Value::Null,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) if secret => MASK.into(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.clone(),
    }
}

/// References are shown; the text around them and the default of a variable are masked.
fn mask_secret(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("${") {
        let Some(end) = closing(inside) else { break };
        if !before.is_empty() {
            shown.push_str(MASK);
        }
        let reference = &inside[..end];
        let reference = match reference.strip_prefix("env:").and_then(|name| name.split_once(':')) {
            Some((name, _)) => format!("env:{name}:{MASK}"),
            None => reference.to_owned(),
        };
        let _ = write!(shown, "${{{reference}}}");
        rest = &inside[end + 1..];
    }
    if !rest.is_empty() {
        shown.push_str(MASK);
    }
    shown
}

/// Arguments of a program: what follows a flag like `--api-key`.
fn mask_arguments(values: &[Value]) -> Value {
    let is_secret = |flag: &str| {
        let flag = flag.to_ascii_lowercase();
        flag.starts_with('-') && ["key", "token", "secret", "password"].iter().any(|word| flag.contains(word))
    };
    let mut after = false;
    let mut mask = |value: &Value| {
        let Some(text) = value.as_str() else { return value.clone() };
        if std::mem::take(&mut after) {
            return mask_secret(text).into();
        }
        match text.split_once('=') {
            Some((flag, secret)) if is_secret(flag) => format!("{flag}={}", mask_secret(secret)).into(),
            Some(_) => address::masked(text).into(),
            None => {
                after = is_secret(text);
                address::masked(text).into()
            }
        }
    };
    values.iter().map(&mut mask).collect()
}

fn redact(redactor: &crate::secret::Redactor, value: Value) -> Value {
    match value {
        Value::String(text) => redactor.redact(&text).into_owned().into(),
        Value::Array(values) => values.into_iter().map(|value| redact(redactor, value)).collect(),
        Value::Object(object) => object
            .into_iter()
            .map(|(key, value)| (key, redact(redactor, value)))
            .collect::<Map<_, _>>()
            .into(),
        value @ Value::Null | value @ Value::Bool(_) | value @ Value::Number(_) => value,
    }
}

fn lists(rules: &ApprovalRules) -> [(&'static str, &[Rule]); 3] {
    [("allow", &rules.allow), ("ask", &rules.ask), ("deny", &rules.deny)]
}

fn show_rules(rules: &ApprovalRules) -> Value {
    let list = |rules: &[Rule]| -> Vec<Value> {
        let shown = rules.iter().map(|rule| {
            json!({"target": rule.target, "argsMatchers": matchers(rule), "origin": rule.origin.to_string()})
        });
        shown.collect()
    };
    json!({
        "byDefault": rules.by_default.map(word),
        "allow": list(&rules.allow),
        "ask": list(&rules.ask),
        "deny": list(&rules.deny),
        "closed": rules.closed,
    })
}

fn show_rule(rule: &Rule) -> Value {
    if rule.args_matchers.is_empty() { json!({}) } else { json!({"argsMatchers": matchers(rule)}) }
}

fn matchers(rule: &Rule) -> Map<String, Value> {
    rule.args_matchers.iter().map(|(argument, patterns)| (argument.clone(), json!(patterns))).collect()
}

fn word(approval: Approval) -> &'static str {
    match approval {
        Approval::Allow => "allow",
        Approval::Ask => "ask",
        Approval::Deny => "deny",
    }
}
