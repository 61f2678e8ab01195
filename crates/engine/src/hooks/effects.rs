//! What one action of a hook asks for: its exit code and its output, read as effects. Pure.

use config::Hook;
use serde_json::{Map, Value};

use super::HookExit;
use crate::tool_calls::approval::HookVerdict;

/// The exit code of a hook that intervenes.
const INTERVENE: i32 = 2;
/// The shell could not run what it was given.
const NOT_RUN: [i32; 2] = [126, 127];

/// The effects of all actions of an event so far.
#[derive(Default, Debug)]
pub(super) struct Effects {
    pub(super) replaced_prompt: Option<String>,
    /// For the model.
    pub(super) contexts: Vec<String>,
    pub(super) updated_input: Map<String, Value>,
    pub(super) verdict: Option<HookVerdict>,
    pub(super) replaced_output: Option<String>,
    pub(super) follow_ups: Vec<String>,
    /// A hook ended with 2: its name and what it wrote to standard error.
    pub(super) intervened: Option<(String, String)>,
    /// A sentence for the user: the turn must end.
    pub(super) stop: Option<String>,
    /// For the user, of the last action.
    pub(super) message: Option<String>,
}

impl Effects {
    pub(super) fn add(&mut self, hook: &Hook, exit: &HookExit) {
        match exit.status {
            Some(0) => {
                if let Some(output) = output_of(exit) {
                    self.apply(hook, &output);
                }
            }
            Some(INTERVENE) => {
                let text = exit.stderr.trim().to_owned();
                self.decide(HookVerdict::Deny { reason: rejection(hook, Some(&text)) });
                self.intervened = Some((hook.name.clone(), text));
                // It may also end the turn; nothing else of its output counts.
                if let Some(output) = output_of(exit) {
                    self.stop_where_asked(hook, &output);
                }
            }
            None => self.decide(HookVerdict::Ask { reason: could_not_run(hook, &exit.stderr) }),
            Some(code) if NOT_RUN.contains(&code) => {
                self.decide(HookVerdict::Ask { reason: could_not_run(hook, &exit.stderr) });
            }
            Some(_) => {}
        }
    }

    fn apply(&mut self, hook: &Hook, output: &Map<String, Value>) {
        let text = |name: &str| output.get(name).and_then(Value::as_str).map(str::to_owned);
        self.message = text("systemMessage").filter(|message| !message.is_empty());
        self.replaced_prompt = text("replacedPrompt").or(self.replaced_prompt.take());
        self.replaced_output = text("replacedOutput").or(self.replaced_output.take());
        self.follow_ups.extend(text("followUp").filter(|text| !text.trim().is_empty()));
        if let Some(Value::Object(changes)) = output.get("updatedInput") {
            self.updated_input.extend(changes.clone());
        }
        let context = text("additionalContext");
        match text("approval").as_deref() {
            Some("allow") => self.decide(HookVerdict::Allow { hook: hook.name.clone() }),
            Some("ask") => self
                .decide(HookVerdict::Ask { reason: format!("The hook {} asks for an approval.", hook.name) }),
            Some("deny") => {
                self.decide(HookVerdict::Deny { reason: rejection(hook, context.as_deref()) });
            }
            // A word that is not known could have meant no.
            Some(word) => self.decide(HookVerdict::Ask {
                reason: format!("The hook {} said {word:?} about this call.", hook.name),
            }),
            None => {}
        }
        self.contexts.extend(context.filter(|context| !context.is_empty()));
        self.stop_where_asked(hook, output);
    }

    fn stop_where_asked(&mut self, hook: &Hook, output: &Map<String, Value>) {
        if output.get("continue") != Some(&Value::Bool(false)) {
            return;
        }
        let (name, reason) = (&hook.name, output.get("stopReason").and_then(Value::as_str));
        self.stop = Some(match reason.filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("Turn stopped by hook '{name}': {reason}"),
            None => format!("Turn stopped by hook '{name}'."),
        });
    }

    /// The strictest verdict holds.
    fn decide(&mut self, verdict: HookVerdict) {
        if self.verdict.as_ref().is_none_or(|known| rank(known) < rank(&verdict)) {
            self.verdict = Some(verdict);
        }
    }

    /// What hooks add for the model, as one text each.
    pub(super) fn context_texts(&self) -> impl Iterator<Item = String> {
        self.contexts.iter().map(|text| format!("<additionalContext>\n{text}\n</additionalContext>"))
    }
}

fn rank(verdict: &HookVerdict) -> u8 {
    match verdict {
        HookVerdict::Allow { .. } => 0,
        HookVerdict::Ask { .. } => 1,
        HookVerdict::Deny { .. } => 2,
    }
}

fn rejection(hook: &Hook, why: Option<&str>) -> String {
    match why.filter(|why| !why.is_empty()) {
        Some(why) => format!("The hook {} rejected it: {why}", hook.name),
        None => format!("The hook {} rejected it.", hook.name),
    }
}

fn could_not_run(hook: &Hook, why: &str) -> String {
    format!("The hook {} could not run, and what it would have said is not known. {}", hook.name, why.trim())
        .trim_end()
        .to_owned()
}

/// The JSON object on standard output; anything else is for people.
fn output_of(exit: &HookExit) -> Option<Map<String, Value>> {
    match serde_json::from_str(exit.stdout.trim()) {
        Ok(Value::Object(output)) => Some(output),
        Ok(_) | Err(_) => None,
    }
}

/// Whether the hook asks not to show its output.
pub(super) fn hides_output(exit: &HookExit) -> bool {
    exit.status == Some(0)
        && output_of(exit).is_some_and(|output| output.get("suppressOutput") == Some(&Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use config::{HookEvent, HookMatcher, Origin};
    use serde_json::json;

    use super::*;

    fn effects(exits: &[(Option<i32>, Value, &str)]) -> Effects {
        let hook = Hook {
            name: "h".into(),
            event: HookEvent::PreToolCall,
            matcher: HookMatcher::All,
            actions: Vec::new(),
            visible: true,
            description: None,
            run_on_error: false,
            format: config::HookFormat::Own,
            origin: Origin::Default,
        };
        let mut effects = Effects::default();
        for (status, output, stderr) in exits {
            let exit = HookExit {
                status: *status,
                stdout: output.to_string(),
                stderr: (*stderr).into(),
                stopped: None,
            };
            effects.add(&hook, &exit);
        }
        effects
    }

    /// The verdict as one letter.
    fn verdict(exits: &[(Option<i32>, Value, &str)]) -> &'static str {
        match effects(exits).verdict {
            None => "-",
            Some(HookVerdict::Allow { .. }) => "allow",
            Some(HookVerdict::Ask { .. }) => "ask",
            Some(HookVerdict::Deny { .. }) => "deny",
        }
    }

    #[test]
    fn the_strictest_verdict_holds_and_a_hook_that_did_not_run_is_no_consent() {
        let (allow, ask, deny) =
            (json!({"approval": "allow"}), json!({"approval": "ask"}), json!({"approval": "deny"}));
        let ok = Some(0);
        assert_eq!(verdict(&[(ok, allow.clone(), "")]), "allow");
        assert_eq!(verdict(&[(ok, ask.clone(), ""), (ok, allow.clone(), "")]), "ask");
        assert_eq!(verdict(&[(ok, deny.clone(), ""), (ok, ask, ""), (ok, allow.clone(), "")]), "deny");
        assert_eq!(verdict(&[(ok, allow.clone(), ""), (Some(2), json!({}), "no")]), "deny");
        assert_eq!(verdict(&[(ok, allow.clone(), ""), (None, json!({}), "timeout")]), "ask");
        assert_eq!(verdict(&[(Some(127), allow.clone(), "")]), "ask", "no such program");
        assert_eq!(verdict(&[(ok, json!({"approval": "deney"}), "")]), "ask", "a misspelt word");
        assert_eq!(verdict(&[(Some(1), deny, "")]), "-", "effects count only at 0 and 2");
        assert_eq!(verdict(&[(Some(1), allow, "")]), "-");
        let both = effects(&[(Some(2), json!({"continue": false, "stopReason": "policy"}), "no")]);
        assert!(matches!(both.verdict, Some(HookVerdict::Deny { .. })));
        assert_eq!(both.stop.as_deref(), Some("Turn stopped by hook 'h': policy"));
    }

    #[test]
    fn effects_of_several_actions_are_merged() {
        let merged = effects(&[
            (Some(0), json!({"updatedInput": {"a": 1, "b": 1}, "additionalContext": "one"}), ""),
            (Some(0), json!({"updatedInput": {"b": 2}, "additionalContext": "two", "followUp": "again"}), ""),
            (Some(0), json!({"continue": false, "stopReason": "enough"}), ""),
        ]);
        assert_eq!(Value::Object(merged.updated_input), json!({"a": 1, "b": 2}));
        assert_eq!(
            (merged.contexts, merged.follow_ups),
            (vec!["one".into(), "two".into()], vec!["again".into()])
        );
        assert_eq!(merged.stop.as_deref(), Some("Turn stopped by hook 'h': enough"));
    }
}
