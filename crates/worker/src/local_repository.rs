//! A checkout of a repository of this machine: a repository of its own that borrows the objects. What a model does to
//! branches, tags and settings stays in it; the source gets one branch at the end.
//!
//! Invariant: objects come into the source only through `index-pack`, which names each by its contents.

use std::path::{Path, PathBuf};

use super::git::Git;

/// A larger pack is not handed over; the folder stays.
const MAX_PACK: u64 = 1 << 30;

/// What git keeps of a repository, shared by its worktrees.
pub(super) async fn git_directory(repository: &Path) -> Result<PathBuf, String> {
    let git = Git::open(repository).await?;
    git.ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await.map(PathBuf::from)
}

/// Makes the folder a checkout of the commit.
pub(super) async fn borrow_into(folder: &Path, repository: &Path, base: &str) -> Result<(), String> {
    let source = Git::open(repository).await?;
    let shared = git_directory(repository).await?;
    let format = source.ask(&["rev-parse", "--show-object-format"]).await?;
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let folder_text = folder.to_str().ok_or("The path of the checkout is not text.")?;
    let format = format!("--object-format={format}");
    let init = ["init", "--quiet", "--template=", "--initial-branch=task", &format, folder_text];
    source.run(&init, Vec::new()).await?;
    let own = folder.join(".git");
    let borrow = || {
        std::fs::create_dir_all(own.join("objects/info"))?;
        let objects = shared.join("objects");
        std::fs::write(own.join("objects/info/alternates"), format!("{}\n", objects.display()))?;
        match std::fs::copy(shared.join("shallow"), own.join("shallow")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    };
    borrow().map_err(|error: std::io::Error| error.to_string())?;
    let git = Git::open(folder).await?;
    // The branches of the source, as those of a remote.
    let listed =
        source.ask(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"]).await?;
    let create = listed.lines().filter_map(|line| {
        let (commit, name) = line.split_once(' ')?;
        let name = match name.strip_prefix("refs/heads/") {
            Some(branch) => format!("refs/remotes/origin/{branch}"),
            None => name.to_owned(),
        };
        Some(format!("create {name} {commit}\n"))
    });
    git.run(&["update-ref", "--stdin"], create.collect::<String>().into_bytes()).await?;
    git.run(&["checkout", "--detach", "--quiet", base], Vec::new()).await.map(drop)
}

/// Brings the commits since `base` into the source, as a branch. `marker`: a private file beside which the pack is written.
pub(super) async fn hand_over(
    git: &Git,
    repository: &Path,
    marker: &Path,
    base: &str,
    commit: &str,
    branch: &str,
) -> Result<(), String> {
    let place = marker.with_extension("packs");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).map_err(|error| error.to_string())?;
    let handed = async {
        let prefix = place.join("pack");
        let prefix = prefix.to_str().ok_or("The path of the checkout is not text.")?;
        let wanted = format!("{commit}\n^{base}\n").into_bytes();
        let name = git.run(&["pack-objects", "--revs", "--quiet", prefix], wanted).await?;
        let name = String::from_utf8_lossy(&name).trim_end().to_owned();
        let pack = place.join(format!("pack-{name}.pack"));
        let size = std::fs::metadata(&pack).map_err(|error| error.to_string())?.len();
        if size > MAX_PACK {
            return Err("The commits of the task are too large to be handed over.".to_owned());
        }
        let pack = std::fs::read(&pack).map_err(|error| error.to_string())?;
        let source = Git::open(repository).await?;
        source.run(&["index-pack", "--stdin", "--strict"], pack).await?;
        let name = format!("refs/heads/{branch}");
        source.run(&["update-ref", "--no-deref", "-m", "task", &name, commit], Vec::new()).await.map(drop)
    }
    .await;
    let _ = std::fs::remove_dir_all(&place);
    handed
}
