//! When a subagent works in a git worktree, and what becomes of the worktree.
//!
//! Must not know git. Invariants: no rule of the parent is lost by another path; a worktree that is kept is named to the
//! model and to the user.

use config::{ApprovalRules, Rule};
use domain::Failure;
use domain::event::{Fact, Level, Notice};
use serde_json::Value;

use crate::behavior;
use crate::session::Session;
use crate::tool_calls::approval::rules_for;
use crate::workspace::Worktree;

/// `None`: the agent works where its parent does.
pub(super) async fn create(
    session: &Session,
    agent: &str,
    input: &Value,
) -> Result<Option<Worktree>, Failure> {
    let settings = &session.workspace.settings;
    let own = settings.behaviors.get(agent).is_some_and(|own| own.worktree);
    if !input["worktree"].as_bool().unwrap_or(own) {
        return Ok(None);
    }
    if behavior::forbids_changes(session, agent) {
        return Err(Failure::user("An agent that changes nothing needs no worktree."));
    }
    let Some(worktrees) = &session.workspace.worktrees else {
        return Err(Failure::user("Worktrees are not available here."));
    };
    for name in [agent, &session.behavior()] {
        let rules = rules_for(settings, behavior::canonical(name));
        if let Some(rule) = session.roots.first().and_then(|root| rule_about(&rules, &root.to_string_lossy()))
        {
            let text =
                format!("A rule about {} names files of this folder by their whole path.", rule.target);
            return Err(Failure::user(text).hint("Start the agent without a worktree."));
        }
    }
    worktrees.create().await.map(Some)
}

/// A rule that forbids or asks by whole paths of a folder would not hold for a copy of the folder elsewhere.
fn rule_about<'a>(rules: &'a ApprovalRules, root: &str) -> Option<&'a Rule> {
    let names_root = |pattern: &String| {
        let plain = pattern.replace('\\', "");
        let is_literal = |character: char| character.is_alphanumeric() || "/._-".contains(character);
        let end = plain.find(|character| !is_literal(character)).unwrap_or(plain.len());
        let start = plain[..end].trim_end_matches('.');
        plain.contains(root) || (start.starts_with('/') && root.starts_with(start))
    };
    let is_about =
        |rule: &&Rule| rule.args_matchers.iter().any(|(_, patterns)| patterns.iter().any(names_root));
    rules.deny.iter().chain(&rules.ask).find(is_about)
}

/// What the agent must know about its place.
pub(super) fn note(worktree: &Worktree) -> String {
    format!(
        "\n\n<note>You work in a git worktree of your own, {}, at the last commit and on no branch. It is removed when you end, \
         except for work that is not on a branch. Commit finished work on a new branch and name the branch in your \
         report.</note>",
        worktree.folder.display()
    )
}

/// Removes the worktree, or says why it is kept.
pub(super) async fn release(session: &Session, worktree: &Worktree) -> Option<String> {
    let worktrees = session.workspace.worktrees.as_ref()?;
    let text = worktrees.release(&worktree.folder).await?;
    let notice = Notice { level: Level::Info, text: text.clone() };
    session.commit(vec![Fact::Notice { notice }]);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_whole_paths_of_the_folder_are_found() {
        let config = |pattern: &str| {
            let rules = serde_json::json!({"toolCall": {"approval": {"deny": {"eca__read_file": {
                "argsMatchers": {"path": [pattern]}}}}}});
            let home = tempfile::tempdir().unwrap();
            let variables = [("DRAGOMAN_CONFIG", rules.to_string())];
            let environment = config::Environment::new(home.path(), variables);
            config::resolve(&environment, &config::Inputs::default()).settings
        };
        for (pattern, is_found) in [
            ("/home/u/shop/secret.txt", true),
            ("/home/u/.*\\.env", true),
            (".*/home/u/shop/x", true),
            ("/etc/.*", false),
            (".*\\.env", false),
            ("secret.txt", false),
        ] {
            let settings = config(pattern);
            let rules = rules_for(&settings, "agent");
            assert_eq!(rule_about(&rules, "/home/u/shop").is_some(), is_found, "{pattern}");
        }
    }
}
