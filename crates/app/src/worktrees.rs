//! Git worktrees in which subagents work: made at the last commit in a private folder, removed where nothing is lost.
//!
//! Invariants: git runs no program that the repository names; a worktree whose `.git` does not lead back to this
//! repository is not touched; whatever cannot be checked is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{Environment, Resolved};
use domain::{BoxFuture, CancellationToken, Failure};
use engine::{Texts, UndoLog, Workspace, Worktree, Worktrees};
use process::{OutputLimit, Spawn};

use crate::hooks::WorkspaceHooks;
use crate::models::AllModels;
use crate::{built_in_tools, sandboxing};

/// A checkout of a large repository takes its time.
const GIT_TIMEOUT: Duration = Duration::from_secs(300);
const OUTPUT_BYTES: usize = 32 << 20;
/// Files of git's that stand for work under way.
const UNDER_WAY: &[&str] =
    &["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"];

/// The worktrees of one workspace.
pub(crate) struct WorkspaceWorktrees {
    pub(crate) environment: Arc<Environment>,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) models: Arc<AllModels>,
    pub(crate) texts: Arc<dyn Texts>,
    pub(crate) undo: Arc<UndoLog>,
    pub(crate) jobs_observer: tools::jobs::JobsObserver,
    pub(crate) is_ephemeral: bool,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) is_trusted: bool,
}

impl Worktrees for WorkspaceWorktrees {
    fn create(&self) -> BoxFuture<'_, Result<Worktree, Failure>> {
        Box::pin(async move {
            let folder = self.add().await.map_err(|problem| {
                Failure::user(format!("The worktree could not be made: {problem}"))
                    .hint("Start the agent without a worktree.")
            })?;
            let workspace = self.workspace(&folder);
            Ok(Worktree { folder, workspace })
        })
    }

    fn release<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let why = self.remove(folder).await.err()?;
            Some(format!("The worktree {} is kept: {why}", folder.display()))
        })
    }
}

impl WorkspaceWorktrees {
    async fn add(&self) -> Result<PathBuf, String> {
        let root = self.roots.first().ok_or("there is no folder.")?;
        let root = root.canonicalize().map_err(|error| error.to_string())?;
        repository_of(&root)
            .ok_or_else(|| format!("{} is not the top of a git repository.", root.display()))?;
        let private = self.private_folder().map_err(|error| error.to_string())?;
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name: String =
            name.chars().filter(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it)).collect();
        let folder = private.join(format!("{}-{}", name.trim_start_matches('.'), uuid::Uuid::now_v7()));
        let text = folder.to_str().ok_or("its path is not text.")?;
        git(&root, &["worktree", "add", "--detach", "--quiet", text, "HEAD"]).await?;
        let same = repository_of(&folder).is_some_and(|found| Some(found) == repository_of(&root));
        if same { Ok(folder) } else { Err(format!("{text} does not lead back to the repository.")) }
    }

    /// A folder of the user's alone, beside our data and not in it: programs in the sandbox never see our data.
    fn private_folder(&self) -> std::io::Result<PathBuf> {
        let folder = self.environment.data_dir().with_file_name("dragoman-worktrees");
        platform::create_private_folder(&folder)?;
        folder.canonicalize()
    }

    /// An error says why the worktree must stay.
    async fn remove(&self, folder: &Path) -> Result<(), String> {
        let root =
            self.roots.first().and_then(|root| root.canonicalize().ok()).ok_or("the project is gone.")?;
        let repository = repository_of(&root).ok_or("the repository is gone.")?;
        if repository_of(folder) != Some(repository) {
            return Err("its .git does not lead back to this repository.".to_owned());
        }
        let own = process::sandbox::work_tree(folder).ok_or("its .git cannot be read.")?.0;
        if UNDER_WAY.iter().any(|name| own.join(name).exists()) {
            return Err("a merge, rebase or the like is under way.".to_owned());
        }
        if folder.join(".gitmodules").exists() {
            return Err("it has submodules.".to_owned());
        }
        // `git worktree remove` would look into one, with the settings that are there.
        let listed = git(folder, &["ls-files", "--stage"]).await?;
        if listed.lines().any(|line| line.starts_with("160000 ")) {
            return Err("it has submodules.".to_owned());
        }
        let changes = git(folder, &["status", "--porcelain", "--untracked-files=all"]).await?;
        if let count @ 1.. = changes.lines().count() {
            return Err(format!("{count} files have changes that are not committed."));
        }
        let seen = git(folder, &["log", "--walk-reflogs", "--format=%H", "HEAD"]).await.unwrap_or_default();
        let mut commits: Vec<&str> = seen.lines().collect();
        commits.sort_unstable();
        commits.dedup();
        let query = ["rev-list", "--max-count=1", "HEAD"].into_iter().chain(commits);
        let query: Vec<&str> = query.chain(["--not", "--branches", "--remotes", "--tags"]).collect();
        if !git(folder, &query).await?.is_empty() {
            return Err("it has commits that are on no branch.".to_owned());
        }
        let text = folder.to_str().ok_or("its path is not text.")?;
        git(&root, &["worktree", "remove", text]).await.map(drop)
    }

    /// The parent's settings, models and texts, with tools and hooks that are confined to the worktree.
    fn workspace(&self, folder: &Path) -> Arc<Workspace> {
        let roots = vec![folder.to_owned()];
        let mut notices = Vec::new();
        let (environment, resolved) = (&self.environment, &self.resolved);
        let sandbox = sandboxing::workspace_sandbox(environment, resolved, &roots, &mut notices);
        let built_in = built_in_tools::of_workspace(
            environment,
            resolved,
            sandbox.as_ref(),
            self.jobs_observer.clone(),
            &roots,
            self.is_ephemeral,
        );
        Arc::new(Workspace {
            settings: Arc::new(resolved.settings.clone()),
            models: self.models.clone(),
            files: built_in.files(),
            sources: vec![built_in],
            notices,
            is_trusted: self.is_trusted,
            texts: self.texts.clone(),
            accounts: None,
            roots,
            hooks: Some(WorkspaceHooks::new(resolved, sandbox.as_ref())),
            undo: Some(self.undo.clone()),
            worktrees: None,
        })
    }
}

/// The repository behind a folder with its own `.git`; a worktree counts only if its repository names it.
fn repository_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.symlink_metadata().ok()?.is_dir() {
        return git.canonicalize().ok();
    }
    process::sandbox::work_tree(folder).map(|(_, shared)| shared)
}

/// Runs git; an error is what it said.
async fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let cancel = CancellationToken::new();
    let variables = tools::git_environment(folder, &cancel).await?;
    let finished = Spawn::new("git")
        .args(arguments)
        .directory(folder)
        .envs(variables)
        .deadline(GIT_TIMEOUT)
        .limit(OutputLimit { head: OUTPUT_BYTES, tail: 0 })
        .run(&cancel)
        .await
        .map_err(|error| error.to_string())?;
    if finished.success() && finished.stdout.dropped == 0 {
        return Ok(String::from_utf8_lossy(&finished.stdout.head).into_owned());
    }
    let said = String::from_utf8_lossy(&finished.stderr.head);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed");
    Err(format!("{}.", line.trim().trim_end_matches('.')))
}
