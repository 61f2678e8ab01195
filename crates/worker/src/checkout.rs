//! The folder in which a task is worked on: a repository of its own that borrows the objects of a local one, or a clone;
//! and what is left of it.
//!
//! Invariants: a folder that was not made wholly is made again; a folder that a lost worker left on this machine is used
//! as it is; nothing is pushed unless the worker's settings name the address; changes that are saved nowhere else stay;
//! git enters no repository that a model made in the folder; a local repository gets the branch of a task and nothing else.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use config::{Environment, WorkerSettings};
use store_postgres::Task;

use super::git::{Git, Network};
use super::outcome::Work;
use super::policy::Limits;
use super::repository::{self, Place};
use super::worker::Worker;
use super::{large_files, local_repository, submodules};

/// A larger patch is not stored; its branch stays.
const MAX_PATCH: usize = 8 << 20;
const NAME: &str = "user.name=Dragoman worker";
const ADDRESS: &str = "user.email=worker@dragoman.invalid";

pub(super) struct Checkout {
    pub(super) folder: PathBuf,
    /// The commit that the work began with.
    pub(super) base: String,
    pub(super) origin: Origin,
    /// Says that the folder was made wholly.
    marker: PathBuf,
    /// The repository of this machine whose objects the folder borrows.
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
            Some(repository) => checkout.borrow_from(&repository, task).await?,
            None => checkout.clone(&worker.network, task).await?,
        };
        checkout.fetch_parts(worker, task, &asked).await?;
        checkout.origin = checkout.restore(worker, task).await;
        std::fs::write(&checkout.marker, &checkout.base).map_err(|error| error.to_string())?;
        Ok(checkout)
    }

    /// A git that was killed with its worker leaves its locks behind. Those of this task are removed: nobody else works in
    /// its folder.
    async fn remove_locks(&self) {
        let own = self.folder.join(".git");
        let mut locks = vec![self.marker.with_extension("index.lock")];
        locks.extend(["index.lock", "HEAD.lock"].map(|name| own.join(name)));
        if let Some(repository) = &self.repository
            && let Ok(common) = local_repository::git_directory(repository).await
        {
            locks.push(common.join("refs/heads").join(format!("{}.lock", self.branch)));
        }
        for lock in locks {
            let _ = std::fs::remove_file(lock);
        }
    }

    async fn borrow_from(&self, repository: &Path, task: &Task) -> Result<String, String> {
        let git = Git::open(repository).await?;
        let base = find_commit(&git, task, &[&task.reference]).await?;
        local_repository::borrow_into(&self.folder, repository, &base).await?;
        Ok(base)
    }

    /// Submodules and large files, where the task asks for them.
    async fn fetch_parts(&self, worker: &Worker, task: &Task, asked: &Limits) -> Result<(), String> {
        let address = self.repository.is_none().then_some(task.repo.as_str());
        if asked.lfs {
            let source = match &self.repository {
                Some(repository) => local_repository::git_directory(repository).await?,
                None => self.folder.join(".git"),
            };
            let paths = large_files::fetch(&worker.network, &self.folder, address, &source).await?;
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
            add_all(&git, &self.folder).await?;
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
        add_all(&git, &self.folder).await?;
        let commit = self.commit(&git, task).await?;
        if commit == self.base {
            return Ok(Work::default());
        }
        match &self.repository {
            Some(repository) => {
                let (marker, branch) = (&self.marker, &self.branch);
                let handed =
                    local_repository::hand_over(&git, repository, marker, &self.base, &commit, branch).await;
                if let Err(problem) = handed {
                    let kept = Some(self.folder.display().to_string());
                    return Ok(Work { kept, problem: Some(problem), ..Work::default() });
                }
            }
            None => {
                let name = format!("refs/heads/{}", self.branch);
                git.run(&["update-ref", "--no-deref", &name, &commit], Vec::new()).await?;
            }
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

    /// The last commit, with what the index has beyond it. git does not look into the folder for it.
    async fn commit(&self, git: &Git, task: &Task) -> Result<String, String> {
        let head = git.ask(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        let tree = git.ask(&["write-tree"]).await?;
        if tree == git.ask(&["rev-parse", "--verify", &format!("{head}^{{tree}}")]).await? {
            return Ok(head);
        }
        let first = task.prompt.lines().next().unwrap_or_default();
        let subject: String = first.chars().filter(|char| !char.is_control()).take(72).collect();
        let message = format!("{subject}\n\nTask: {}\n", task.id);
        let arguments =
            ["-c", NAME, "-c", ADDRESS, "commit-tree", "--no-gpg-sign", "-p", &head, "-F", "-", &tree];
        let commit = git.run(&arguments, message.into_bytes()).await?;
        let commit = String::from_utf8_lossy(&commit).trim_end().to_owned();
        git.run(&["update-ref", "-m", "task", "HEAD", &commit], Vec::new()).await?;
        Ok(commit)
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

/// Puts every file of the folder into the index that is not ignored. A repository inside of it is left out: git would run
/// what that one names.
async fn add_all(git: &Git, folder: &Path) -> Result<(), String> {
    let known = git.run(&["ls-files", "-z", "--stage"], Vec::new()).await?;
    let new = git.run(&["ls-files", "-z", "--others", "--exclude-standard"], Vec::new()).await?;
    let is_link = |entry: &&[u8]| entry.starts_with(b"160000 ");
    let path_of =
        |entry: &[u8]| entry.iter().position(|byte| *byte == b'\t').map(|at| entry[at + 1..].to_vec());
    let known = known.split(|byte| *byte == 0).filter(|entry| !is_link(entry)).filter_map(path_of);
    let new = new.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !path.ends_with(b"/"));
    let (mut present, mut gone) = (Vec::new(), Vec::new());
    for path in known.chain(new.map(<[u8]>::to_vec)) {
        let name = platform::name_from_bytes(path.clone());
        let list = match entry(folder, Path::new(&name)) {
            Entry::File => &mut present,
            Entry::Missing => &mut gone,
            Entry::OfAnother => continue,
        };
        list.extend(path);
        list.push(0);
    }
    git.run(&["update-index", "-z", "--force-remove", "--stdin"], gone).await?;
    git.run(&["update-index", "-z", "--add", "--replace", "--stdin"], present).await.map(drop)
}

/// What is at a path of the folder.
enum Entry {
    /// A file or a link.
    File,
    Missing,
    /// A folder on the way has a repository of its own.
    OfAnother,
}

fn entry(folder: &Path, path: &Path) -> Entry {
    let mut above = folder.to_owned();
    for name in path.parent().into_iter().flat_map(Path::iter) {
        above.push(name);
        if !above.symlink_metadata().is_ok_and(|kind| kind.is_dir()) {
            return Entry::Missing;
        }
        if above.join(".git").symlink_metadata().is_ok() {
            return Entry::OfAnother;
        }
    }
    match folder.join(path).symlink_metadata() {
        Ok(kind) if !kind.is_dir() => Entry::File,
        Ok(_) | Err(_) => Entry::Missing,
    }
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

    async fn repository(place: &Path) -> (PathBuf, Git) {
        let repository = place.join("shop");
        std::fs::create_dir(&repository).expect("a folder");
        let main = Git::open(&repository).await.expect("git");
        main.run(&["init", "--quiet", "--initial-branch=main"], Vec::new()).await.expect("a repository");
        std::fs::write(repository.join("file"), "one\n").expect("a file");
        main.run(&["add", "file"], Vec::new()).await.expect("an index");
        let commit = ["-c", NAME, "-c", ADDRESS, "commit", "--quiet", "--message=first"];
        main.run(&commit, Vec::new()).await.expect("a commit");
        (repository, main)
    }

    async fn checkout_of(place: &Path, repository: &Path, main: &Git) -> Checkout {
        let base = main.ask(&["rev-parse", "HEAD"]).await.expect("a commit");
        let checkout = Checkout {
            folder: place.join("task"),
            base: base.clone(),
            origin: Origin::Left,
            marker: place.join("task.base"),
            repository: Some(repository.to_owned()),
            branch: "dragoman/task".to_owned(),
        };
        local_repository::borrow_into(&checkout.folder, repository, &base).await.expect("a checkout");
        checkout
    }

    #[tokio::test]
    async fn locks_of_a_killed_git_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().canonicalize().expect("a path");
        let (repository, main) = repository(&place).await;
        let checkout = checkout_of(&place, &repository, &main).await;
        let data = repository.join(".git");
        std::fs::create_dir_all(data.join("refs/heads/dragoman")).expect("a folder");
        let others = ["index.lock", "refs/heads/dragoman/other.lock"];
        let own = checkout.folder.join(".git/index.lock");
        for lock in
            [&own, &data.join("refs/heads/dragoman/task.lock"), &data.join(others[0]), &data.join(others[1])]
        {
            std::fs::write(lock, "").expect("a lock");
        }
        std::fs::write(place.join("task.index.lock"), "").expect("a lock");
        checkout.remove_locks().await;
        assert!(!own.exists() && !data.join("refs/heads/dragoman/task.lock").exists());
        assert!(!place.join("task.index.lock").exists());
        for lock in others {
            assert!(data.join(lock).exists(), "{lock} belongs to others");
        }
    }

    /// A model made a repository inside of the checkout whose settings name a program. One is in the place of a submodule,
    /// at the commit that the project names: `git add --all` looks into it.
    #[tokio::test]
    async fn git_enters_no_repository_that_a_model_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().canonicalize().expect("a path");
        let (repository, main) = repository(&place).await;
        let first = main.ask(&["rev-parse", "HEAD"]).await.expect("a commit");
        let link = format!("160000,{first},lib");
        main.run(&["update-index", "--add", "--cacheinfo", &link], Vec::new()).await.expect("a submodule");
        main.run(&["-c", NAME, "-c", ADDRESS, "commit", "--quiet", "--message=lib"], Vec::new())
            .await
            .expect("a commit");
        let checkout = checkout_of(&place, &repository, &main).await;
        let ran = place.join("ran");
        for name in ["lib", "nested"] {
            let nested = checkout.folder.join(name);
            local_repository::borrow_into(&nested, &repository, &first).await.expect("a repository");
            std::fs::write(nested.join(".gitattributes"), "* filter=evil\n").expect("a file");
            std::fs::write(nested.join("file"), "two\n").expect("a file");
            let known = std::fs::read_to_string(nested.join(".git/config")).expect("settings");
            let evil = format!(
                "{known}[filter \"evil\"]\n\tclean = touch {0}; cat\n[core]\n\tfsmonitor = touch {0}; true\n",
                ran.display()
            );
            std::fs::write(nested.join(".git/config"), evil).expect("settings");
        }
        let settings = "[submodule \"lib\"]\n\tpath = lib\n\turl = x\n\tignore = none\n";
        std::fs::write(checkout.folder.join(".gitmodules"), settings).expect("a file");
        std::fs::write(checkout.folder.join("work.txt"), "line\n").expect("a file");
        std::fs::remove_file(checkout.folder.join("file")).expect("a file");
        let patch = checkout.changes().await.expect("a patch");
        let patch = String::from_utf8_lossy(&patch);
        assert!(
            patch.contains("+line") && patch.contains("deleted file") && !patch.contains("nested"),
            "{patch}"
        );
        let git = Git::open(&checkout.folder).await.expect("git");
        add_all(&git, &checkout.folder).await.expect("an index");
        git.run(&["tag", "of-the-model"], Vec::new()).await.expect("a tag");
        let tree = git.ask(&["write-tree"]).await.expect("a tree");
        let arguments = ["-c", NAME, "-c", ADDRESS, "commit-tree", "-p", &checkout.base, "-m", "work", &tree];
        let commit = git.ask(&arguments).await.expect("a commit");
        local_repository::hand_over(
            &git,
            &repository,
            &checkout.marker,
            &checkout.base,
            &commit,
            &checkout.branch,
        )
        .await
        .expect("a branch");
        assert!(!ran.exists(), "a program of the nested repository ran");
        assert_eq!(main.ask(&["show", "dragoman/task:work.txt"]).await.as_deref(), Ok("line"));
        // Nothing but the branch is left in the source.
        assert_eq!(
            main.ask(&["for-each-ref", "--format=%(refname)"]).await.expect("refs"),
            "refs/heads/dragoman/task\nrefs/heads/main"
        );
        let left: Vec<_> =
            std::fs::read_dir(&place).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| name == "shop" || name == "task"), "{left:?}");
        assert!(!repository.join(".git/worktrees").exists());
    }
}
