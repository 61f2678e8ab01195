//! The folder in which a task is worked on: a worktree of a local repository, or a clone; and what is left of it.
//!
//! Invariants: a folder that was not made wholly is made again; a folder that a lost worker left on this machine is used
//! as it is; nothing is pushed unless the worker's settings name the address; changes that are saved nowhere else stay.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use config::{Environment, WorkerSettings};
use sha2::{Digest, Sha256};
use store_postgres::Task;

use super::Worker;
use super::git::{Git, Network};
use super::policy::Limits;
use super::repository::{self, Place};
use super::{large_files, submodules};

/// A larger patch is not stored; its branch stays.
const MAX_PATCH: usize = 8 << 20;
/// Another worker of this machine has the worktrees of a repository for a moment only.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const NAME: &str = "user.name=Dragoman worker";
const ADDRESS: &str = "user.email=worker@dragoman.invalid";

pub(super) struct Checkout {
    pub(super) folder: PathBuf,
    /// The commit that the work began with.
    pub(super) base: String,
    pub(super) origin: Origin,
    /// Says that the folder was made wholly.
    marker: PathBuf,
    /// The repository that the folder is a worktree of.
    repository: Option<PathBuf>,
    branch: String,
}

/// What the folder holds at the beginning of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    New,
    /// A new checkout with the work that the queue had.
    Restored,
    /// Another worker of this machine left it.
    Left,
}

/// What is left of a task.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
    /// The address that the branch was pushed to.
    pub(super) pushed: Option<String>,
    pub(super) patch: Vec<u8>,
    /// The folder that has the work, because nothing else does.
    pub(super) kept: Option<String>,
    pub(super) problem: Option<String>,
}

/// A folder of the user's alone, beside our data and not in it: programs in the sandbox never see our data.
pub(super) fn private_folder(environment: &Environment) -> std::io::Result<PathBuf> {
    let folder = environment.data_dir().with_file_name("dragoman-tasks");
    platform::create_private_folder(&folder)?;
    folder.canonicalize()
}

impl Checkout {
    pub(super) async fn prepare(worker: &Worker, task: &Task) -> Result<Self, String> {
        let place = repository::place(&task.repo)?;
        repository::check_reference(&task.reference).map_err(|failure| failure.message)?;
        // The queue compared the text; a link may lead elsewhere.
        let repository = match &place {
            Place::Folder(folder) => Some(folder.canonicalize().map_err(|error| error.to_string())?),
            Place::Address(_) => None,
        };
        let named =
            repository.as_ref().map_or(task.repo.clone(), |folder| folder.to_string_lossy().into_owned());
        if !repository::is_named(&worker.settings.repositories, &named) {
            return Err(format!("The worker's settings do not name the repository {named}."));
        }
        let asked = Limits::parse(&task.limits);
        check_asked(&worker.settings, &asked)?;
        let mut checkout = Self {
            folder: worker.folder.join(task.id.as_str()),
            base: String::new(),
            origin: Origin::Left,
            marker: worker.folder.join(format!("{}.base", task.id)),
            repository,
            branch: format!("dragoman/{}", task.id),
        };
        if let Ok(base) = std::fs::read_to_string(&checkout.marker)
            && checkout.folder.is_dir()
        {
            checkout.base = base.trim().to_owned();
            checkout.remove_locks().await;
            return Ok(checkout);
        }
        checkout.discard().await;
        checkout.base = match checkout.repository.clone() {
            Some(repository) => checkout.add_worktree(&repository, task).await?,
            None => checkout.clone(&worker.network, task).await?,
        };
        checkout.fetch_parts(worker, task, &asked).await?;
        checkout.origin = checkout.restore(worker, task).await;
        std::fs::write(&checkout.marker, &checkout.base).map_err(|error| error.to_string())?;
        Ok(checkout)
    }

    /// A git that was killed with its worker leaves its locks behind. Those of this task are removed: nobody else works in
    /// its folder. Where they lie is not asked in the folder, because a model has worked there.
    async fn remove_locks(&self) {
        let mut locks = vec![self.marker.with_extension("index.lock")];
        if let Some((common, own)) = self.git_folders().await {
            locks.push(common.join("refs/heads").join(format!("{}.lock", self.branch)));
            locks.extend(["index.lock", "HEAD.lock"].map(|name| own.join(name)));
        }
        for lock in locks {
            let _ = std::fs::remove_file(lock);
        }
    }

    /// What git keeps of the repository, and of this folder alone.
    async fn git_folders(&self) -> Option<(PathBuf, PathBuf)> {
        let Some(repository) = &self.repository else {
            let own = self.folder.join(".git");
            return own.symlink_metadata().ok()?.is_dir().then(|| (own.clone(), own));
        };
        let git = Git::open(repository).await.ok()?;
        let common = git.ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await.ok()?;
        let common = PathBuf::from(common);
        let link = self.folder.join(".git");
        let is_own = |folder: &PathBuf| {
            std::fs::read_to_string(folder.join("gitdir"))
                .is_ok_and(|text| Path::new(text.trim_end()) == link)
        };
        let worktrees = std::fs::read_dir(common.join("worktrees")).ok()?;
        let own = worktrees.flatten().map(|entry| entry.path()).find(is_own)?;
        Some((common, own))
    }

    async fn add_worktree(&self, repository: &Path, task: &Task) -> Result<String, String> {
        let git = Git::open(repository).await?;
        let base = find_commit(&git, task, &[&task.reference]).await?;
        let folder = self.folder.to_str().ok_or("The path of the checkout is not text.")?;
        let _lock = self.lock_worktrees().await?;
        // Forced: a worker that was killed meanwhile leaves the name of the folder behind, locked.
        let add = ["worktree", "add", "--force", "--force", "--detach", "--quiet", folder, &base];
        git.run(&add, Vec::new()).await?;
        Ok(base)
    }

    /// git reads the list of worktrees while another process writes it, and fails: one worker at a time.
    async fn lock_worktrees(&self) -> Result<Option<std::fs::File>, String> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let name = Sha256::digest(repository.as_os_str().as_encoded_bytes());
        let name: String = name.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let path = self.marker.with_file_name(format!("{name}.lock"));
        let file = std::fs::File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| format!("{} cannot be opened: {error}.", path.display()))?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while let Err(error) = file.try_lock() {
            if Instant::now() > deadline || matches!(error, std::fs::TryLockError::Error(_)) {
                return Err(format!("The worktrees of {} are in use.", repository.display()));
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        Ok(Some(file))
    }

    /// Submodules and large files, where the task asks for them.
    async fn fetch_parts(&self, worker: &Worker, task: &Task, asked: &Limits) -> Result<(), String> {
        let address = self.repository.is_none().then_some(task.repo.as_str());
        if asked.lfs {
            let paths = large_files::fetch(&worker.network, &self.folder, address).await?;
            std::fs::write(self.large_files(), paths.join("\0")).map_err(|error| error.to_string())?;
        }
        if asked.submodules {
            submodules::fetch(worker, &self.folder, address, asked.lfs).await?;
        }
        Ok(())
    }

    /// The list of the large files that are there as themselves: the branch keeps what git has in their place.
    fn large_files(&self) -> PathBuf {
        self.marker.with_extension("large")
    }

    async fn leave_large_files(&self, git: &Git) -> Result<(), String> {
        let Ok(listed) = std::fs::read_to_string(self.large_files()) else { return Ok(()) };
        let known = git.run(&["ls-files", "-z"], Vec::new()).await?;
        let known: HashSet<&[u8]> = known.split(|byte| *byte == 0).collect();
        let paths: Vec<&str> = listed.split('\0').filter(|path| known.contains(path.as_bytes())).collect();
        let paths = paths.join("\0").into_bytes();
        git.run(&["update-index", "-z", "--skip-worktree", "--stdin"], paths).await.map(drop)
    }

    async fn clone(&self, network: &Network, task: &Task) -> Result<String, String> {
        network.clone_into(&self.folder, &task.repo).await?;
        let git = Git::open(&self.folder).await?;
        let reference = &task.reference;
        let names =
            [format!("refs/remotes/origin/{reference}"), format!("refs/tags/{reference}"), reference.clone()];
        let base = find_commit(&git, task, &names.each_ref().map(String::as_str)).await?;
        git.run(&["checkout", "--detach", "--quiet", &base], Vec::new()).await?;
        Ok(base)
    }

    /// Applies what the queue has of the work of a worker on another machine.
    async fn restore(&self, worker: &Worker, task: &Task) -> Origin {
        if task.base.as_deref() != Some(&self.base) {
            return Origin::New;
        }
        let Ok(Some(patch)) = worker.queue.patch(&task.id).await else { return Origin::New };
        let Ok(git) = Git::open(&self.folder).await else { return Origin::New };
        match git.run(&["apply", "--binary", "--whitespace=nowarn", "-"], patch).await {
            Ok(_) => Origin::Restored,
            Err(problem) => {
                tracing::warn!(
                    task = task.id.as_str(),
                    problem,
                    "the work of a lost worker cannot be restored"
                );
                Origin::New
            }
        }
    }

    /// Everything that differs from the first commit, as a patch. The index of the folder stays as it is.
    pub(super) async fn changes(&self) -> Result<Vec<u8>, String> {
        let index = self.marker.with_extension("index");
        let git = Git::open(&self.folder).await?.with_index(&index);
        let patch = async {
            git.run(&["read-tree", &self.base], Vec::new()).await?;
            self.leave_large_files(&git).await?;
            git.run(&["add", "--all"], Vec::new()).await?;
            git.run(&diff(&["--cached", &self.base]), Vec::new()).await
        }
        .await;
        let _ = std::fs::remove_file(&index);
        patch.and_then(
            |patch| if patch.len() > MAX_PATCH { Err("it is too large.".to_owned()) } else { Ok(patch) },
        )
    }

    /// The work of a task that was stopped: a patch alone.
    pub(super) async fn collect_patch(&self) -> Result<Work, String> {
        Ok(Work { patch: self.changes().await?, ..Work::default() })
    }

    /// Commits what is not committed, makes the branch and the patch, and pushes where the settings say so.
    pub(super) async fn collect(&self, worker: &Worker, task: &Task) -> Result<Work, String> {
        let git = Git::open(&self.folder).await?;
        self.leave_large_files(&git).await?;
        git.run(&["add", "--all"], Vec::new()).await?;
        if !git.ask(&["status", "--porcelain", "--untracked-files=no"]).await?.is_empty() {
            let first = task.prompt.lines().next().unwrap_or_default();
            let subject: String = first.chars().filter(|char| !char.is_control()).take(72).collect();
            let message = format!("{subject}\n\nTask: {}\n", task.id);
            let options =
                ["-c", NAME, "-c", ADDRESS, "-c", "commit.gpgSign=false", "-c", "maintenance.auto=false"];
            let commit = ["commit", "--quiet", "--no-verify", "--file=-"];
            git.run(&[&options[..], &commit].concat(), message.into_bytes()).await?;
        }
        let commit = git.ask(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        if commit == self.base {
            return Ok(Work::default());
        }
        {
            let _lock = self.lock_worktrees().await?;
            git.run(&["branch", "--force", "--no-track", &self.branch, &commit], Vec::new()).await?;
        }
        let patch = git.run(&diff(&[&self.base, &commit]), Vec::new()).await;
        let patch = patch.ok().filter(|patch| patch.len() <= MAX_PATCH).unwrap_or_default();
        let mut work = Work {
            branch: Some(self.branch.clone()),
            commit: Some(commit.clone()),
            patch,
            ..Work::default()
        };
        if self.repository.is_none() && repository::is_named(&worker.settings.push, &task.repo) {
            match self.push(&worker.network, &git, &task.repo, &commit).await {
                Ok(()) => work.pushed = Some(task.repo.clone()),
                Err(problem) => work.problem = Some(format!("The branch could not be pushed: {problem}")),
            }
        }
        if self.repository.is_none() && work.pushed.is_none() && work.patch.is_empty() {
            work.kept = Some(self.folder.display().to_string());
        }
        Ok(work)
    }

    /// From an empty repository of our own that borrows the objects: the settings of the clone, which a model could have
    /// changed, have no say.
    async fn push(&self, network: &Network, git: &Git, address: &str, commit: &str) -> Result<(), String> {
        let objects = git.ask(&["rev-parse", "--path-format=absolute", "--git-path", "objects"]).await?;
        let empty = tempfile::tempdir().map_err(|error| error.to_string())?;
        network.run(empty.path(), &["init", "--quiet", "--bare", "--template="]).await?;
        let alternates = empty.path().join("objects/info");
        std::fs::create_dir_all(&alternates).map_err(|error| error.to_string())?;
        std::fs::write(alternates.join("alternates"), format!("{objects}\n"))
            .map_err(|error| error.to_string())?;
        let target = format!("+{commit}:refs/heads/{}", self.branch);
        network.run(empty.path(), &["push", "--quiet", "--", address, &target]).await.map(drop)
    }

    /// The folder of a task that has ended.
    pub(super) async fn remove(&self, work: &Work) {
        if work.kept.is_none() {
            self.discard().await;
        }
    }

    async fn discard(&self) {
        let _ = std::fs::remove_file(&self.marker);
        let _ = std::fs::remove_file(self.large_files());
        if let Some(repository) = &self.repository
            && let (Ok(git), Some(folder)) = (Git::open(repository).await, self.folder.to_str())
            && self.folder.exists()
        {
            let _lock = self.lock_worktrees().await;
            let _ = git.run(&["worktree", "remove", "--force", "--force", folder], Vec::new()).await;
        }
        let folder = self.folder.clone();
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    }
}

/// Parts of a repository that the worker's settings do not allow are not left out silently.
fn check_asked(settings: &WorkerSettings, asked: &Limits) -> Result<(), String> {
    let refused = |what: &str, setting: &str| {
        Err(format!("The task asks for {what}, and `worker.{setting}` of this worker does not allow it."))
    };
    match (asked.submodules && !settings.submodules, asked.lfs && !settings.large_files) {
        (true, _) => refused("submodules", "submodules"),
        (_, true) => refused("large files", "lfs"),
        (false, false) => Ok(()),
    }
}

/// The commit that an earlier worker began with, else the one that the reference names.
async fn find_commit(git: &Git, task: &Task, names: &[&str]) -> Result<String, String> {
    let is_hash = |base: &&str| base.len() >= 40 && base.chars().all(|char| char.is_ascii_hexdigit());
    for name in task.base.as_deref().filter(is_hash).iter().chain(names) {
        let name = format!("{name}^{{commit}}");
        if let Ok(commit) = git.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).await {
            return Ok(commit.lines().last().unwrap_or_default().to_owned());
        }
    }
    Err(format!("{} is no branch, tag or commit of {}.", task.reference, task.repo))
}

fn diff<'a>(what: &[&'a str]) -> Vec<&'a str> {
    [
        &["diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"],
        what,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn locks_of_a_killed_git_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().canonicalize().expect("a path");
        let repository = place.join("shop");
        std::fs::create_dir(&repository).expect("a folder");
        let main = Git::open(&repository).await.expect("git");
        let commit = ["-c", NAME, "-c", ADDRESS, "commit", "--quiet", "--allow-empty", "--message=first"];
        main.run(&["init", "--quiet"], Vec::new()).await.expect("a repository");
        main.run(&commit, Vec::new()).await.expect("a commit");
        for name in ["task", "other"] {
            let worktree = place.join(name);
            let add = ["worktree", "add", "--quiet", "--detach", worktree.to_str().expect("text")];
            main.run(&add, Vec::new()).await.expect("a worktree");
        }
        let data = repository.join(".git");
        std::fs::create_dir_all(data.join("refs/heads/dragoman")).expect("a folder");
        let own = ["worktrees/task/index.lock", "worktrees/task/HEAD.lock", "refs/heads/dragoman/task.lock"];
        let others = ["worktrees/other/index.lock", "index.lock", "refs/heads/dragoman/other.lock"];
        for lock in own.iter().chain(&others) {
            std::fs::write(data.join(lock), "").expect("a lock");
        }
        std::fs::write(place.join("task.index.lock"), "").expect("a lock");
        let checkout = Checkout {
            folder: place.join("task"),
            base: String::new(),
            origin: Origin::Left,
            marker: place.join("task.base"),
            repository: Some(repository),
            branch: "dragoman/task".to_owned(),
        };
        let git = Git::open(&checkout.folder).await.expect("git");
        std::fs::write(checkout.folder.join("work.txt"), "line").expect("a file");
        assert!(git.run(&["add", "--all"], Vec::new()).await.is_err());
        checkout.remove_locks().await;
        git.run(&["add", "--all"], Vec::new()).await.expect("the index is free");
        git.run(&["branch", "--force", &checkout.branch, "HEAD"], Vec::new())
            .await
            .expect("the branch is free");
        assert!(!place.join("task.index.lock").exists());
        for lock in others {
            assert!(data.join(lock).exists(), "{lock} belongs to others");
        }
    }
}
