//! Whether the history of a repository holds a file with secrets, though no file of the workspace does: every program can read
//! what git keeps.
//!
//! Invariant: what cannot be found out in time counts as yes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use domain::CancellationToken;
use git::hardened;
use process::{End, ProcessError, Spawn};

/// How long the look for secrets in a history may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Names of files that hold secrets, as git matches them. Keys and certificates for tests are in many histories, so only
/// names that say more are here.
const SECRET_PATHS: &[&str] = &[
    ":(icase,glob)**/.env",
    ":(icase,glob)**/.env.*",
    ":(icase,glob)**/*.env",
    ":(icase,glob)**/*.p12",
    ":(icase,glob)**/*.pfx",
    ":(icase,glob)**/*.jks",
    ":(icase,glob)**/*.keystore",
    ":(icase,glob)**/*.kdbx",
    ":(icase,glob)**/*.ppk",
    ":(icase,glob)**/*.tfvars",
    ":(icase,glob)**/id_rsa",
    ":(icase,glob)**/id_ed25519",
    ":(icase,glob)**/id_ecdsa",
    ":(icase,glob)**/id_dsa",
    ":(icase,glob)**/credentials",
    ":(icase,glob)**/credentials.json",
    ":(icase,glob)**/credentials.y*ml",
    ":(icase,glob)**/credentials.toml",
    ":(icase,glob)**/secret.y*ml",
    ":(icase,glob)**/secrets.y*ml",
    ":(icase,glob)**/secrets.json",
    ":(icase,glob)**/secrets.toml",
    ":(icase,glob)**/service-account*.json",
    ":(icase,glob)**/.netrc",
    ":(icase,glob)**/.pypirc",
    ":(icase,glob)**/.pgpass",
    ":(icase,glob)**/.git-credentials",
    ":(icase,glob)**/.htpasswd",
    ":(icase,glob)**/*.tfstate",
    ":(icase,glob)**/kubeconfig",
    ":(icase,glob)**/master.key",
    ":(exclude,icase,glob)**/*.example",
    ":(exclude,icase,glob)**/*.sample",
    ":(exclude,icase,glob)**/*.template",
    ":(exclude,icase,glob)**/*.dist",
    ":(exclude,icase,glob)**/*.defaults",
    ":(exclude,icase,glob)**/*.schema",
];

/// Files of git that change with every commit and fetch.
const STAMPS: &[&str] =
    &["HEAD", "logs/HEAD", "packed-refs", "FETCH_HEAD", "refs/heads", "refs/remotes", "refs/stash"];

type Stamp = Vec<Option<SystemTime>>;

/// The last answer for each folder, and what it depends on.
static ANSWERS: Mutex<Option<HashMap<PathBuf, (Stamp, bool)>>> = Mutex::new(None);
const MOST_ANSWERS: usize = 100;

/// Whether any commit of the repository touched a file that usually holds secrets.
pub(crate) async fn has_secrets(folder: &Path, cancel: &CancellationToken) -> bool {
    if !folder.ancestors().any(|above| above.join(".git").symlink_metadata().is_ok()) {
        return false;
    }
    let changed =
        |name: &&str| folder.join(".git").join(name).metadata().and_then(|file| file.modified()).ok();
    let stamp: Stamp = STAMPS.iter().map(changed).collect();
    {
        let answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.as_ref().and_then(|answers| answers.get(folder));
        if let Some((_, answer)) = known.filter(|(known, _)| *known == stamp) {
            return *answer;
        }
    }
    let answer = ask(folder, cancel).await;
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = answers.get_or_insert_default();
    if answers.len() >= MOST_ANSWERS {
        answers.clear();
    }
    answers.insert(folder.to_owned(), (stamp, answer));
    answer
}

async fn ask(folder: &Path, cancel: &CancellationToken) -> bool {
    let finished = Spawn::new("git")
        .args(["log", "--all", "--max-count=1", "--format=%H", "--no-ext-diff", "--no-textconv", "--"])
        .args(SECRET_PATHS)
        .directory(folder)
        .envs(hardened::variables(&[]))
        .deadline(TIMEOUT)
        .run(cancel)
        .await;
    match finished {
        Ok(finished) if finished.success() => !finished.stdout.text().trim().is_empty(),
        // No repository or no commit: git ends with 128.
        Ok(finished) => !matches!(finished.end, End::Exited(_)),
        Err(ProcessError::NotFound { .. }) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_that_was_removed_is_still_in_the_history() {
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let git = async |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
            let git = Spawn::new("git").args(identity).args(arguments).directory(folder.path());
            git.run(&CancellationToken::new()).await.is_ok_and(|finished| finished.success())
        };
        if !git(&["init", "-q"]).await {
            return;
        }
        assert!(!has_secrets(folder.path(), &stop).await);
        for (name, text) in [(".env", "TOKEN=x"), ("main.rs", "fn main() {}"), (".env.example", "TOKEN=")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert!(git(&["add", "main.rs", ".env.example"]).await && git(&["commit", "-qm", "one"]).await);
        assert!(!has_secrets(folder.path(), &stop).await);
        assert!(git(&["add", "-f", ".env"]).await && git(&["commit", "-qm", "two"]).await);
        assert!(git(&["rm", "-q", "--cached", ".env"]).await && git(&["commit", "-qm", "three"]).await);
        assert!(has_secrets(folder.path(), &stop).await);
    }
}
