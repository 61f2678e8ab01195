//! Which files of the workspace a command's sandbox keeps closed, and what the model reads about it: files that rules
//! forbid to read, and in a tainted chat files that hold secrets.
//!
//! Must not know how a file is closed. Invariants: what cannot be closed counts as read; a rule has no grant.

use std::path::{Path, PathBuf};

use domain::taint::Taint;
use domain::tool::Scope;
use platform::project_files;
use process::sandbox::Grant;

use crate::paths::{ForbiddenPaths, rule_text};

/// More files are not closed one by one.
const MOST: usize = 200;
/// So many are named to the model.
const MOST_NAMED: usize = 6;

/// What is closed for one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub paths: Vec<PathBuf>,
    /// Secrets among them, relative to the workspace.
    secrets: Vec<String>,
    /// Files that rules forbid, relative to the workspace.
    forbidden: Vec<String>,
    /// Secrets that could not be closed, for people.
    pub open: Option<String>,
    /// Everything that rules forbid is closed.
    pub closes_forbidden: bool,
}

/// Words of programs that could not open a file.
const DENIED: &[&str] =
    &["ermission denied", "EACCES", "PermissionError", "os error 13", "Errno 13", "Access is denied"];
/// Words of programs that lack what such a file usually gives them.
const LACKS: &[&str] = &[
    "nvironment variable",
    "is not set",
    "not defined",
    "undefined",
    "dotenv",
    "KeyError",
    "is required",
    "must be set",
];

/// Everything in the workspace that must be closed for a command. `granted`: secrets that a person opened.
pub(crate) fn find(scope: &Scope, granted: &[Grant]) -> Sealed {
    let mut sealed = find_secrets(scope, granted);
    let Ok(rules) = ForbiddenPaths::new(scope) else { return sealed };
    if scope.forbidden_paths.is_empty() {
        sealed.closes_forbidden = true;
        return sealed;
    }
    // A rule wins over a grant.
    sealed.secrets.retain(|shown| !scope.roots.iter().any(|root| rules.contains(&root.join(shown))));
    let wanted = |path: &Path, _: bool| rules.contains(path);
    let found = project_files::find_files(&scope.roots, true, &wanted);
    let fits = found.paths.len() + sealed.paths.len() <= MOST;
    // What the repository keeps can be read without the file.
    let is_tracked = |root: &PathBuf| match project_files::tracked_paths(root) {
        Some(paths) => paths.iter().any(|path| rules.contains(&root.join(path))),
        None => true,
    };
    sealed.closes_forbidden = found.is_complete && fits && !scope.roots.iter().any(is_tracked);
    for path in found.paths.into_iter().take(MOST) {
        sealed.forbidden.push(shown(&path, scope));
        if !sealed.paths.contains(&path) {
            sealed.paths.push(path);
        }
    }
    sealed
}

/// What a program that is no tool must not open in the workspace, and whether that is everything that rules forbid.
pub fn sealed_paths(scope: &Scope) -> (Vec<PathBuf>, bool) {
    let sealed = find(scope, &[]);
    (sealed.paths, sealed.closes_forbidden)
}

/// The secrets of the workspace in a tainted chat.
fn find_secrets(scope: &Scope, granted: &[Grant]) -> Sealed {
    let mut sealed = Sealed::default();
    if !scope.tainted {
        return sealed;
    }
    let is_secret = |path: &Path, is_folder: bool| {
        if is_folder { project_files::is_secret_folder(path) } else { project_files::holds_secrets(path) }
    };
    let mut found = project_files::find_files(&scope.roots, false, &is_secret);
    // The nearest first, where there are too many.
    found.paths.sort_by_key(|path| path.components().count());
    let closed = found.paths.iter().filter(|path| !is_granted(path, scope, granted));
    for path in closed.take(MOST) {
        sealed.secrets.push(shown(path, scope));
        sealed.paths.push(path.clone());
    }
    let tracked = scope.roots.iter().find_map(|root| tracked_secret(root));
    sealed.open = if found.is_complete && found.paths.len() <= MOST {
        tracked.map(|path| format!("{path}, which the repository keeps"))
    } else {
        Some("files that hold secrets".to_owned())
    };
    sealed
}

/// A secret that can be read from the repository without its file.
fn tracked_secret(root: &Path) -> Option<String> {
    let Some(paths) = project_files::tracked_paths(root) else {
        return Some("whatever".to_owned());
    };
    paths.into_iter().find(|path| {
        project_files::is_secret(Path::new(path)) && project_files::holds_secrets(&root.join(path))
    })
}

/// Only the secrets that a line names: it reads nothing else.
pub(crate) fn find_named(scope: &Scope, named: &[PathBuf], granted: &[Grant]) -> Sealed {
    let mut sealed = Sealed { closes_forbidden: true, ..Sealed::default() };
    if scope.tainted {
        for path in named.iter().filter(|path| is_closed(path, scope, granted)) {
            sealed.secrets.push(shown(path, scope));
            sealed.paths.push(path.clone());
        }
    }
    sealed
}

/// The workspace has a secret, for people; for commands that nothing closes it for.
pub(crate) fn any_secret(scope: &Scope) -> Option<String> {
    let found = find_secrets(scope, &[]);
    found.secrets.first().cloned().or(found.open)
}

/// What a kept output of a command counts as: what the command may have read.
pub(crate) fn taint_of_output(is_output: bool, scope: &Scope) -> Taint {
    let mut taint = Taint::default();
    if let Some(secret) = is_output.then(|| any_secret(scope)).flatten() {
        taint.add_possible_secret(format!("{secret}, by a command whose output was kept"));
    }
    taint
}

/// Whether the sandbox of a tainted chat keeps this path closed.
pub(crate) fn is_closed(path: &Path, scope: &Scope, granted: &[Grant]) -> bool {
    let is_inside = scope.roots.iter().any(|root| path.starts_with(root));
    is_inside && project_files::holds_secrets(path) && !is_granted(path, scope, granted)
}

/// Whether a person opened this secret, by itself or with its folder.
pub(crate) fn is_granted(path: &Path, scope: &Scope, granted: &[Grant]) -> bool {
    granted.iter().any(|grant| {
        let Grant::Secret(opened) = grant else { return false };
        scope.roots.iter().any(|root| path.starts_with(root.join(opened)))
    })
}

fn shown(path: &Path, scope: &Scope) -> String {
    let inside = scope.roots.iter().find_map(|root| path.strip_prefix(root).ok());
    rule_text(inside.unwrap_or(path))
}

impl Sealed {
    /// Nothing could be closed.
    pub(crate) fn unknown() -> Self {
        Self { open: Some("files that hold secrets".to_owned()), ..Self::default() }
    }

    /// What the model reads when a command met a closed file.
    pub(crate) fn describe(&self, command: &str, output: &str, succeeded: bool) -> Option<String> {
        let is_denied = DENIED.iter().any(|words| output.contains(words));
        let lacks = !succeeded && LACKS.iter().any(|words| output.contains(words));
        let met = |names: &[String]| -> Vec<String> {
            let name_of = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
            let is_named =
                |path: &&String| output.contains(&name_of(path)) || command.contains(&name_of(path));
            let named: Vec<String> = names.iter().filter(is_named).take(MOST_NAMED).cloned().collect();
            match (is_denied, named.is_empty()) {
                (true, false) => named,
                (true, true) => names.iter().take(MOST_NAMED).cloned().collect(),
                (false, _) if lacks => names.iter().take(MOST_NAMED).cloned().collect(),
                (false, _) => Vec::new(),
            }
        };
        let mut text = Vec::new();
        let forbidden = if is_denied { met(&self.forbidden) } else { Vec::new() };
        if !forbidden.is_empty() {
            text.push(format!(
                "A rule of the user forbids reading {}, so the sandbox keeps it closed. No grant opens it.",
                forbidden.join(", ")
            ));
        }
        let secrets = met(&self.secrets);
        if !secrets.is_empty() {
            let grants: Vec<String> = secrets.iter().map(|path| format!("secret:{path}")).collect();
            text.push(format!(
                "{} could not be opened: it holds secrets, and this chat has read text of strangers. If the command needs \
                 it, ask the user: repeat the call with grants: {}.",
                secrets.join(", "),
                grants.join(", ")
            ));
        }
        (!text.is_empty()).then(|| format!("[{}]", text.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(root: &Path, tainted: bool, forbidden: &[&str]) -> Scope {
        Scope {
            roots: vec![root.to_owned()].into(),
            tainted,
            forbidden_paths: forbidden.iter().map(|pattern| (*pattern).to_owned()).collect(),
            ..crate::contexts::workspace_scope(&[])
        }
    }

    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in [
            (".env", "A=1"),
            ("config/prod.env", "A=1"),
            ("src/secrets.rs", "fn main() {}"),
            ("certs/ca.pem", "-----BEGIN CERTIFICATE-----"),
            ("keys/a.txt", "x"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, root)
    }

    #[test]
    fn secrets_are_closed_in_a_tainted_chat_unless_a_person_opened_them() {
        let (_folder, root) = workspace();
        assert_eq!(find(&scope(&root, false, &[]), &[]).paths, Vec::<PathBuf>::new());
        let tainted = scope(&root, true, &[]);
        assert_eq!(find(&tainted, &[]).paths, [root.join(".env"), root.join("config/prod.env")]);
        let grant = [Grant::parse("secret:.env").unwrap()];
        assert_eq!(find(&tainted, &grant).paths, [root.join("config/prod.env")]);
        let folder = [Grant::parse("secret:config").unwrap()];
        assert_eq!(find(&tainted, &folder).paths, [root.join(".env")]);
        // A secret elsewhere is not closed, so it counts as read where a line names it.
        assert!(
            is_closed(&root.join(".env"), &tainted, &[]) && !is_closed(&root.join(".env"), &tainted, &grant)
        );
        assert!(!is_closed(Path::new("/srv/other/.env"), &tainted, &[]));
    }

    #[test]
    fn forbidden_paths_are_closed_in_every_chat() {
        let (_folder, root) = workspace();
        let sealed = find(&scope(&root, false, &["keys/.*"]), &[]);
        assert_eq!(sealed.paths, [root.join("keys/a.txt")]);
        assert!(sealed.closes_forbidden);
        // In a tainted chat too, a rule has no grant.
        let both = find(&scope(&root, true, &[r"\.env"]), &[]);
        let told = both.describe("make", "cat: .env: Permission denied", false).unwrap();
        assert!(told.contains("forbids reading .env") && !told.contains("secret:.env"), "{told}");
        let told = sealed.describe("make", "cat: keys/a.txt: Permission denied", false).unwrap();
        assert!(told.contains("forbids reading keys/a.txt") && !told.contains("grants:"), "{told}");
        assert_eq!(sealed.describe("make", "1 test failed", false), None);
    }

    #[test]
    fn a_command_that_met_a_closed_file_is_told_the_grant() {
        let (_folder, root) = workspace();
        let sealed = find(&scope(&root, true, &[]), &[]);
        for (output, succeeded) in [
            ("cat: .env: Permission denied", false),
            ("PermissionError: [Errno 13] Permission denied: '.env'", false),
            ("Error: EACCES: permission denied, open '/w/.env'", false),
            ("DATABASE_URL is not set", false),
            ("tar: .env: Cannot open: Permission denied", true),
        ] {
            let told = sealed.describe("npm test", output, succeeded).unwrap_or_default();
            assert!(told.contains("grants: secret:.env"), "{output}: {told}");
        }
        assert_eq!(sealed.describe("npm test", "1 test failed", false), None);
        assert_eq!(sealed.describe("npm test", "ok", true), None);
    }
}
