//! What the sandbox of a shell line keeps closed, what its output may then hold, and why a person is asked about it.
//!
//! Must not know rules. Invariant: in a tainted chat the output of a line that could read a secret counts as one.

use std::path::PathBuf;

use domain::Review;
use domain::taint::Taint;
use domain::tool::{Exposure, Invocation, Scope};
use platform::project_files;
use process::sandbox::{Allowance, GitAccess, Grant, Support, support};

use super::shell_command::{Input, ShellCommand, is_wall_whole, parse_grants};
use crate::git_history;
use crate::needs::{Needs, needs_of};
use crate::paths::{ResolvedPath, path_texts};
use crate::sealed::{self, Sealed};
use crate::shell::{LinePaths, ShellLine};

/// More of what runs later cannot be protected one by one.
const MOST_RUN_LATER: usize = 250;

impl ShellCommand {
    /// Secrets that a person opened: for this call, for the session or for the project.
    fn opened_secrets(&self, input: &Input, scope: &Scope) -> Vec<Grant> {
        let Some(confine) = &self.runner.sandbox else { return Vec::new() };
        let mut grants = parse_grants(&input.grants).unwrap_or_default();
        grants.extend(confine.given_to(scope).into_iter().chain(confine.grants.iter().cloned()));
        let remembered =
            scope.remembered.iter().filter_map(|key| Grant::parse(key.strip_prefix("sandbox ")?).ok());
        grants.extend(remembered);
        grants.retain(|grant| matches!(grant, Grant::Secret(_)));
        grants
    }

    /// A wall that can keep files closed.
    fn closes_files(&self) -> bool {
        self.runner.sandbox.is_some() && is_wall_whole()
    }

    /// The line reads nothing but what it names.
    fn reads_named_only(&self, line: &ShellLine, paths: &LinePaths) -> bool {
        line.read_only() && paths.reasons.is_empty() && !paths.reads_unnamed && !self.has_own_shell()
    }

    /// What the sandbox will keep closed, as far as a decision depends on it.
    pub(super) fn review_sealing(
        &self,
        input: &Input,
        line: &ShellLine,
        paths: &LinePaths,
        scope: &Scope,
        review: &mut Review,
    ) {
        if !self.closes_files() {
            return;
        }
        review.seals_secrets = scope.tainted;
        if scope.tainted {
            let only_named = self.reads_named_only(line, paths);
            let opened = self.opened_secrets(input, scope).into_iter().filter_map(|grant| {
                let Grant::Secret(path) = &grant else { return None };
                let is_read = |named| sealed::is_granted(named, scope, std::slice::from_ref(&grant));
                let reads = !only_named || paths.named.iter().any(|named| is_read(named));
                reads.then(|| path.display().to_string())
            });
            review.secrets.extend(opened);
            // What is named and not closed is read: secrets outside of the workspace, and names that only look like one.
            let opened = self.opened_secrets(input, scope);
            let is_read =
                |path: &&PathBuf| project_files::is_secret(path) && !sealed::is_closed(path, scope, &opened);
            let shown = |path: &PathBuf| path_texts(path, scope)[0].clone();
            review.secrets.extend(paths.named.iter().filter(is_read).map(shown));
        }
        // git reads from its own store what is closed as a file.
        review.seals_forbidden = !scope.forbidden_paths.is_empty()
            && !line.shows_git_contents()
            && (self.reads_named_only(line, paths) || sealed::find(scope, &[]).closes_forbidden);
    }

    /// What the command may have: what it asked for and needs, as it was approved.
    pub(super) async fn allowance(
        &self,
        input: &Input,
        line: &ShellLine,
        paths: &LinePaths,
        folder: &ResolvedPath,
        call: &Invocation,
    ) -> Result<(Allowance, Sealed), String> {
        let needs = needs_of(line, folder.path());
        let mut allowance = Allowance::new(parse_grants(&input.grants)?);
        allowance.grants.extend(self.take_reviewed(&input.command, &call.scope));
        allowance.strict = call.contained;
        allowance.writes_git = needs.writes_git;
        allowance.only_reads = line.read_only() && !call.outside_allowed;
        // A job may run for days, and a copy does not see what others change meanwhile.
        let has_copy = !call.contained && input.background.is_none() && !line.read_only();
        if has_copy || needs.writes_git {
            allowance.git = GitAccess::Copy;
        }
        allowance.run_later = call.run_later.clone();
        allowance.keeps_run_later = call.keeps_run_later;
        if call.keeps_run_later && call.run_later.len() > MOST_RUN_LATER {
            return Err(format!(
                "The workspace has more than {MOST_RUN_LATER} files and folders that other programs run, too many to \
                 protect each. To ask the user instead, repeat the call with grants: run-later."
            ));
        }
        // A registry takes uploads, too.
        allowance.offline =
            call.scope.tainted && call.scope.secret_read && !needs.registries && !needs.publishes;
        let sealed = self.seal(input, line, paths, call).await;
        allowance.unreadable.clone_from(&sealed.paths);
        Ok((allowance, sealed))
    }

    async fn seal(&self, input: &Input, line: &ShellLine, paths: &LinePaths, call: &Invocation) -> Sealed {
        let scope = call.scope.clone();
        if !self.closes_files() || !scope.tainted && scope.forbidden_paths.is_empty() {
            return Sealed::default();
        }
        let opened = self.opened_secrets(input, &scope);
        if self.reads_named_only(line, paths) {
            return sealed::find_named(&scope, &paths.named, &opened);
        }
        let found = tokio::task::spawn_blocking(move || sealed::find(&scope, &opened)).await;
        found.unwrap_or_else(|_| Sealed::unknown())
    }

    /// What the output counts as, whatever it looks like.
    pub(super) async fn taint_of_output(
        &self,
        line: &ShellLine,
        paths: &LinePaths,
        sealed: &Sealed,
        call: &Invocation,
    ) -> Taint {
        let mut taint = Taint::default();
        if !call.scope.tainted {
            return taint;
        }
        let program = line.names().first().cloned().unwrap_or_default();
        let mut add = |secret: &str| taint.add_possible_secret(format!("{secret}, by {program}"));
        // Every program can read what git keeps.
        let only_named = self.reads_named_only(line, paths);
        let reads_history = !only_named || line.shows_git_contents();
        if reads_history && self.history_may_hold_secrets(paths, call).await {
            add("what git keeps");
        }
        if only_named {
            return taint;
        }
        if self.closes_files() {
            // A line that only looks through git shows what git keeps, which was asked for above.
            sealed.open.iter().for_each(|secret| add(secret));
        } else if self.runner.sandbox.is_none() && line.exposure() != Exposure::Local {
            // Without a wall it reads what the user can.
            add("whatever you can read");
        } else {
            let scope = call.scope.clone();
            let found = tokio::task::spawn_blocking(move || sealed::any_secret(&scope)).await;
            found.unwrap_or_default().iter().for_each(|secret| add(secret));
        }
        taint
    }

    /// Whether a commit ever held a file with secrets. An answer that does not come in time is a yes.
    async fn history_may_hold_secrets(&self, paths: &LinePaths, call: &Invocation) -> bool {
        for folder in paths.git_folders.iter().chain(call.scope.roots.first()) {
            if folder.is_dir() && git_history::has_secrets(folder, &call.cancel).await {
                return true;
            }
        }
        false
    }

    /// Why a person is asked where no rule says so.
    pub(super) fn cause(&self, input: &Input, needs: &Needs, review: &Review) -> Option<String> {
        let name = review.subcommands.first().map(String::as_str).unwrap_or_default();
        let asks = self.runner.sandbox.as_ref().is_some_and(|confine| confine.asks);
        let cause = if let Some(cause) = &needs.cause {
            format!("{cause}.")
        } else if input.background.is_some() && !review.contained {
            format!("It goes on in the background: {name}.")
        } else if asks {
            "The setting \"sandbox\": \"ask\" asks about every command.".to_owned()
        } else if self.runner.sandbox.is_none() {
            format!("The sandbox is off, so nothing contains it: {name}.")
        } else if !is_wall_whole() {
            format!("There is no whole sandbox here to contain it: {name}.")
        } else {
            return None;
        };
        Some(cause)
    }

    /// Tells the people of a chat once that its commands have no sandbox, where nothing said so at the start.
    pub(super) fn report_missing_wall(&self, call: &Invocation) {
        let Some(confine) = &self.runner.sandbox else { return };
        let text = match process::known_sandbox_support() {
            Some(support @ Support::Failed { .. }) => support.sentence(),
            Some(support @ (Support::Unavailable { .. } | Support::Landlock { .. }))
                if support::expected().is_none() && confine.sandbox.tries_namespaces() =>
            {
                support.sentence()
            }
            _ => return,
        };
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.insert(call.scope.session.clone()) {
            call.context.notice(&text);
        }
    }
}
