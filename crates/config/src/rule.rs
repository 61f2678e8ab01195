//! One rule about tool calls: a tool and patterns of its arguments.

use serde_json::Value;

use crate::origin::Origin;

/// One rule: a tool and, optionally, patterns of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `tool`, `eca__tool`, `server__tool` or `server`.
    pub target: String,
    /// For each argument the sources of regular expressions, of which one must match the whole value; all
    /// arguments must match. Empty: the rule holds whatever the arguments are.
    pub args_matchers: Vec<(String, Vec<String>)>,
    pub origin: Origin,
}

/// The rules of a map from target to matchers, as in `approval.deny` and in a hook's `matcher`, and an error for each
/// entry that cannot be read.
pub(crate) fn read_rules(value: &Value, origin: &Origin) -> (Vec<Rule>, Vec<RuleError>) {
    let mut malformed = Vec::new();
    let rule =
        |target: &str, args_matchers| Rule { target: target.into(), args_matchers, origin: origin.clone() };
    let mut rules = Vec::new();
    match value {
        Value::Object(map) => {
            for (target, matchers) in map {
                match read_matchers(matchers) {
                    Ok(args_matchers) => rules.push(rule(target, args_matchers)),
                    Err(what) => malformed.push(RuleError { target: Some(target.clone()), what }),
                }
            }
        }
        // The form of ECA's agent files.
        Value::Array(targets) => {
            for target in targets {
                match target.as_str() {
                    Some(target) => rules.push(rule(target, Vec::new())),
                    None => malformed.push(RuleError {
                        target: None,
                        what: "names a tool by something else than text".into(),
                    }),
                }
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            malformed.push(RuleError { target: None, what: "must be an object from tool to {}".into() })
        }
    }
    (rules, malformed)
}

/// `{}` or `{"argsMatchers": {"argument": ["regex"]}}`.
fn read_matchers(value: &Value) -> Result<Vec<(String, Vec<String>)>, String> {
    let Value::Object(rule) = value else { return Err("must be {} or {\"argsMatchers\": …}".into()) };
    // A misspelt `argsMatchers` would silently make the rule hold for every argument.
    if let Some(key) = rule.keys().find(|key| *key != "argsMatchers") {
        return Err(format!("has the unknown key “{key}”; only `argsMatchers` is known"));
    }
    match rule.get("argsMatchers") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(matchers)) => matchers.iter().map(read_matcher).collect(),
        Some(_) => Err("has `argsMatchers` that are no object".into()),
    }
}

pub(crate) struct RuleError {
    /// The tool the rule is about, when that much is known.
    pub(crate) target: Option<String>,
    pub(crate) what: String,
}

fn read_matcher((argument, patterns): (&String, &Value)) -> Result<(String, Vec<String>), String> {
    let Value::Array(patterns) = patterns else {
        return Err(format!("has no list of regular expressions for “{argument}”"));
    };
    let read = |pattern: &Value| {
        let pattern =
            pattern.as_str().ok_or_else(|| format!("has a pattern for “{argument}” that is no text"))?;
        let error = match regex_syntax::parse(pattern) {
            Ok(_) => return Ok(pattern.to_owned()),
            Err(regex_syntax::Error::Parse(error)) => error.kind().to_string(),
            Err(regex_syntax::Error::Translate(error)) => error.kind().to_string(),
            Err(_) => "unknown error".to_owned(),
        };
        Err(format!("has a regular expression for “{argument}” that cannot be read ({error})"))
    };
    Ok((argument.clone(), patterns.iter().map(read).collect::<Result<_, _>>()?))
}
