//! Gathers everything that a decision about a call depends on, and decides. Must not know what rules mean.
//!
//! Invariant: a subagent never does what its parent could not.

use config::{ApprovalRules, Settings};
use domain::ItemId;
use domain::host::Grants;
use domain::taint::Taint;
use domain::tool::{Review, Scope, Tool};
use serde_json::Value;

use super::approval::{self, ApprovalDecision, Decision, HookVerdict};
use crate::behavior;
use crate::turn::{Turn, goal_checks};

/// The decision about a call that its tool has reviewed. `hook`: what hooks say about it; `taint`: what the chat has read.
pub(super) fn decide(
    turn: &Turn,
    item: ItemId,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
    hook: Option<HookVerdict>,
    taint: &Taint,
) -> ApprovalDecision {
    let by_rules = || decide_by_rules(turn, item, tool, input, review, (hook.clone(), taint));
    turn.session.decisions.decide_call(item, &by_rules)
}

/// The decision of the user's rules, by [`approval::decide`].
fn decide_by_rules(
    turn: &Turn,
    item: ItemId,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
    (hook, taint): (Option<HookVerdict>, &Taint),
) -> ApprovalDecision {
    let behavior = turn.session.behavior();
    // The user named the command of a goal, so nobody has to be there for a check that its sandbox contains.
    let is_check = goal_checks::is_check_of(turn, item);
    let decide = |case: &approval::Case<'_>| {
        let granted = Grants { contained: case.granted.contained || is_check, ..case.granted };
        approval::decide(&approval::Case { granted, hook: case.hook.clone(), ..*case })
    };
    let own = with_case_of(turn, &behavior, tool, input, review, (hook, taint), decide);
    let Some(inherited) = &turn.session.inherited else { return own };
    // A subagent never does what its parent could not.
    let parent = inherited.parent.behavior();
    let of_parent = with_case_of(turn, &parent, tool, input, review, (None, taint), approval::decide);
    let reviewable = own.reviewable && (of_parent.reviewable || of_parent.decision == Decision::Allow);
    match of_parent.decision > own.decision {
        true => ApprovalDecision { reviewable: false, ..of_parent },
        false => ApprovalDecision { reviewable, ..own },
    }
}

/// Everything that a decision about a call depends on.
pub(crate) fn with_case<R>(
    turn: &Turn,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
    hook: Option<HookVerdict>,
    decide: impl FnOnce(&approval::Case<'_>) -> R,
) -> R {
    let taint = turn.session.taint();
    with_case_of(turn, &turn.session.behavior(), tool, input, review, (hook, &taint), decide)
}

/// The same in another behavior.
fn with_case_of<R>(
    turn: &Turn,
    behavior: &str,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
    (hook, taint): (Option<HookVerdict>, &Taint),
    decide: impl FnOnce(&approval::Case<'_>) -> R,
) -> R {
    let remembered = turn.session.remembered().clone();
    let abilities = turn.editor.as_ref().map(|editor| editor.abilities.clone()).unwrap_or_default();
    let behavior = behavior::canonical(behavior);
    let mut rules = rules_for(&turn.session.workspace.settings, behavior);
    if rules.closed.is_none() {
        rules.allow.extend(turn.session.workspace.texts.added_rules());
    }
    decide(&approval::Case {
        rules: &rules,
        spec: tool.spec(),
        input,
        review,
        remembered: &remembered,
        read_only: behavior::is_read_only(behavior, &turn.session.workspace.settings),
        trust: turn.session.is_trusted(),
        can_ask: abilities.approvals,
        granted: abilities.grants,
        hook,
        taint,
    })
}

pub(super) fn scope(turn: &Turn) -> Scope {
    let taint = turn.session.taint();
    Scope {
        session: turn.session.id.clone(),
        roots: turn.session.roots.clone(),
        read_only: behavior::forbids_changes(&turn.session, &turn.session.behavior()),
        remembered: turn.session.remembered().keys().into(),
        forbidden_paths: approval::forbidden_paths_of(&turn.session).into(),
        tainted: taint.is_tainted(),
        secret_read: !taint.secrets().is_empty(),
    }
}

/// The rules for all behaviors with those of one beside them.
pub fn rules_for(settings: &Settings, behavior: &str) -> ApprovalRules {
    let mut rules = settings.tools.approval.clone();
    if let Some(own) = settings.behaviors.get(behavior) {
        let own = own.approval.clone();
        rules.set_default(&own);
        rules.closed = rules.closed.or(own.closed);
        rules.allow.extend(own.allow);
        rules.ask.extend(own.ask);
        rules.deny.extend(own.deny);
    }
    rules
}

#[cfg(test)]
mod tests {
    use config::{Environment, Inputs};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules_of_a_behavior_stand_beside_those_for_all() {
        let config = json!({
            "toolCall": {"approval": {"allow": {"a": {}}, "deny": {"b": {}}}},
            "agent": {"careful": {"toolCall": {"approval": {"byDefault": "deny", "ask": {"c": {}}, "deny": {"d": {}}}}}},
        });
        let environment = Environment::new("/nonexistent", [("DRAGOMAN_CONFIG", config.to_string())]);
        let settings = config::resolve(&environment, &Inputs::default()).settings;
        let names = |rules: &[config::Rule]| rules.iter().map(|rule| rule.target.clone()).collect::<Vec<_>>();
        let careful = rules_for(&settings, "careful");
        assert!(
            names(&careful.deny).contains(&"b".to_owned()) && names(&careful.deny).contains(&"d".to_owned())
        );
        assert!(names(&careful.ask).contains(&"c".to_owned()));
        assert!(names(&careful.allow).contains(&"a".to_owned()));
        assert_eq!(careful.by_default, Some(config::Approval::Deny));
        let other = rules_for(&settings, "agent");
        assert!(
            !names(&other.deny).contains(&"d".to_owned()) && !names(&other.ask).contains(&"c".to_owned())
        );
        assert_ne!(other.by_default, Some(config::Approval::Deny));
    }
}
