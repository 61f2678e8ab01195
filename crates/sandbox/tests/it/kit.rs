//! A home, a workspace and a sandbox around them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use process::sandbox::{Allowance, Facts, GitAccess, Grant, Sandbox, Support};
use process::{Finished, Spawn};
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    _folder: tempfile::TempDir,
    pub home: PathBuf,
    pub workspace: PathBuf,
    pub outside: PathBuf,
    pub sandbox: Arc<Sandbox>,
}

pub(crate) fn helper() -> PathBuf {
    env!("CARGO_BIN_EXE_sandbox-helper").into()
}

/// Where worlds are made. Below `/tmp`, where a clone may be, a sandbox shows nothing but the workspace.
fn parent() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let is_replaced = |path: &Path| ["/tmp", "/var/tmp"].iter().any(|folder| path.starts_with(folder));
    let cache = std::env::home_dir().map(|home| home.join(".cache")).filter(|cache| !is_replaced(cache));
    match cache.filter(|cache| is_replaced(&target) && fs::create_dir_all(cache).is_ok()) {
        Some(cache) => cache,
        None => target,
    }
}

impl World {
    /// In `/var/tmp`'s neighborhood the folders would be replaced; a home is elsewhere.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut Facts)) -> Self {
        let folder = tempfile::Builder::new().prefix("world-").tempdir_in(parent()).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, outside) = (root.join("home"), root.join("outside"));
        let workspace = home.join("shop");
        for path in [&home, &outside, &workspace, &home.join(".ssh"), &home.join(".config/dragoman")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(home.join(".ssh/id_ed25519"), "CANARY key").unwrap();
        fs::write(home.join(".ssh/known_hosts"), "known host").unwrap();
        fs::write(home.join(".netrc"), "CANARY netrc").unwrap();
        fs::write(home.join(".bashrc"), "# start file").unwrap();
        fs::write(home.join(".config/dragoman/config.json"), "CANARY config").unwrap();
        fs::write(outside.join("file"), "outside").unwrap();
        let mut facts = Facts {
            helper: helper(),
            home: home.clone(),
            roots: vec![workspace.clone()],
            own_folders: vec![home.join(".config/dragoman")],
            cache: home.join(".cache/dragoman"),
            temporary: std::env::temp_dir(),
            variables: std::env::var("PATH")
                .map(|path| [("PATH".to_owned(), path)].into())
                .unwrap_or_default(),
            ..Facts::default()
        };
        change(&mut facts);
        Self { _folder: folder, home, workspace, outside, sandbox: Arc::new(Sandbox::new(facts)) }
    }

    /// The whole wall can be built here. Said once where it cannot, so that a green run is not misread.
    pub(crate) async fn is_whole(&self) -> bool {
        let support = process::sandbox_support(&self.sandbox).await;
        if support != Support::Namespaces {
            testkit::skip(support.sentence());
        }
        support == Support::Namespaces
    }

    pub(crate) fn spawn(&self, line: &str) -> Spawn {
        self.spawn_with(line, &[])
    }

    pub(crate) fn spawn_with(&self, line: &str, grants: &[&str]) -> Spawn {
        let grants = grants.iter().map(|grant| Grant::parse(grant).unwrap()).collect();
        Spawn::shell(line)
            .env("HOME", &self.home)
            .env("OUTSIDE", &self.outside)
            .directory(&self.workspace)
            .merge_stderr()
            .confine(self.sandbox.clone(), Allowance { grants, git: GitAccess::Copy, ..Allowance::default() })
    }

    pub(crate) async fn run(&self, line: &str) -> (Finished, String) {
        self.run_with(line, &[]).await
    }

    pub(crate) async fn run_with(&self, line: &str, grants: &[&str]) -> (Finished, String) {
        let finished = self.spawn_with(line, grants).run(&CancellationToken::new()).await.unwrap();
        let text = finished.stdout.text();
        (finished, text)
    }
}
