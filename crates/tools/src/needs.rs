//! What the commands of a line need beyond the workspace, as far as their words say: other machines, credentials, the
//! repository's configuration. A line that needs nothing can be contained by its sandbox.
//!
//! Knows names and options of well-known programs, and reads the address of a git remote; runs nothing. Invariant: what
//! is wrong here is refused by the sandbox or asked about needlessly; it never opens anything by itself.

use std::path::{Path, PathBuf};

use process::sandbox::Grant;
use process::sandbox::places::SSH_HOSTS;

use crate::publishing::publishes;
use crate::shell::{Command, ShellLine, Word};

/// What a line needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// More than the workspace: a person is asked.
    pub more: bool,
    /// Grants without which it would certainly fail.
    pub grants: Vec<Grant>,
    /// It writes to the repository.
    pub writes_git: bool,
    /// It downloads from package registries.
    pub registries: bool,
    /// It publishes packages.
    pub publishes: bool,
    /// Why a person is asked: `It needs the network: npm install`. Without its full stop.
    pub cause: Option<String>,
}

impl Needs {
    /// More than the workspace, and why. The first reason stays.
    fn need(&mut self, reason: &str, command: &Command) {
        self.more = true;
        self.cause.get_or_insert_with(|| format!("{reason}: {}", command.name));
    }
}

const NETWORK: &str = "It needs the network";
const SERVICES: &str = "It uses programs outside of its sandbox";
const RIGHTS: &str = "It needs rights of another user";
const REWRITES: &str = "It changes branches, the history or files of the repository";

/// Those of the list below that need no other machine.
const LOCAL_PROGRAMS: &[&str] = &[
    "at",
    "buildah",
    "crontab",
    "docker",
    "docker-compose",
    "dpkg",
    "kill",
    "killall",
    "nerdctl",
    "open",
    "pkill",
    "podman",
    "service",
    "snap",
    "ssh-keygen",
    "systemctl",
    "xdg-open",
];

/// Programs that are of no use without other machines, other users' rights or services of this machine.
const PROGRAMS: &[&str] = &[
    "ansible",
    "ansible-playbook",
    "apk",
    "apt",
    "apt-get",
    "aptitude",
    "at",
    "aws",
    "az",
    "brew",
    "bunx",
    "buildah",
    "crontab",
    "curl",
    "dnf",
    "doas",
    "docker",
    "docker-compose",
    "doctl",
    "dpkg",
    "eas",
    "fly",
    "flyctl",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "gsutil",
    "helm",
    "heroku",
    "http",
    "https",
    "kill",
    "killall",
    "kubectl",
    "mail",
    "nc",
    "ncat",
    "nerdctl",
    "netcat",
    "netlify",
    "npx",
    "nmap",
    "open",
    "pacman",
    "ping",
    "pipx",
    "pkill",
    "pnpx",
    "podman",
    "pulumi",
    "rclone",
    "rsync",
    "scp",
    "sendmail",
    "service",
    "sftp",
    "skopeo",
    "snap",
    "socat",
    "ssh",
    "ssh-keygen",
    "su",
    "sudo",
    "systemctl",
    "telnet",
    "terraform",
    "tofu",
    "uvx",
    "vercel",
    "wget",
    "wrangler",
    "xdg-open",
    "yum",
    "zypper",
];

/// Subcommands of package managers that ask a registry. An empty one is the program without a subcommand.
const DOWNLOADS: &[(&[&str], &[&str])] = &[
    (
        &["npm", "pnpm", "yarn", "bun"],
        &[
            "",
            "access",
            "add",
            "adduser",
            "audit",
            "ci",
            "create",
            "deprecate",
            "dist-tag",
            "dlx",
            "exec",
            "i",
            "info",
            "init",
            "install",
            "login",
            "logout",
            "outdated",
            "owner",
            "pack",
            "ping",
            "publish",
            "rebuild",
            "search",
            "star",
            "team",
            "token",
            "unpublish",
            "up",
            "update",
            "upgrade",
            "view",
            "whoami",
            "x",
        ],
    ),
    (
        &["cargo"],
        &[
            "add",
            "binstall",
            "fetch",
            "generate-lockfile",
            "info",
            "install",
            "login",
            "logout",
            "owner",
            "publish",
            "search",
            "update",
            "yank",
        ],
    ),
    (&["pip", "pip3"], &["download", "index", "install", "search", "wheel"]),
    (&["uv"], &["add", "build", "lock", "pip", "publish", "python", "sync", "tool"]),
    (&["poetry", "pdm", "pipenv"], &["add", "install", "lock", "publish", "sync", "update"]),
    (&["conda", "mamba"], &["create", "env", "install", "search", "update"]),
    (&["go"], &["get", "install", "mod"]),
    (&["gem", "bundle"], &["", "add", "install", "outdated", "push", "update"]),
    (&["composer"], &["create-project", "install", "require", "update"]),
    (&["mix"], &["deps.get", "deps.update", "hex.publish", "archive.install"]),
    (&["dotnet"], &["add", "nuget", "restore", "tool", "workload"]),
    (&["flutter", "dart"], &["pub", "upgrade"]),
    (&["rustup"], &["component", "default", "install", "self", "target", "toolchain", "update"]),
    (&["playwright"], &["install", "install-deps"]),
    (&["pre-commit"], &["", "autoupdate", "install", "install-hooks", "run", "try-repo"]),
];

/// Uses of git that stay in the repository and lose nothing.
const GIT_STAYS: &[&str] = &["add", "branch", "commit", "stage", "tag"];

/// Other programs that write the repository: they get a copy of it, as git does.
const WRITES_GIT: &[&str] =
    &["git-branchless", "git-lfs", "gitui", "gt", "jj", "lazygit", "lint-staged", "stg", "tig"];

/// Uses of git that talk to a remote.
const GIT_REMOTE: &[&str] = &["clone", "fetch", "ls-remote", "pull", "push"];

pub(crate) fn needs_of(line: &ShellLine, folder: &Path) -> Needs {
    let mut needs = Needs::default();
    for command in &line.commands {
        add_needs(command, folder, &mut needs);
    }
    let mut known = Vec::new();
    needs.grants.retain(|grant| {
        !known.contains(grant) && {
            known.push(grant.clone());
            true
        }
    });
    needs.more |= !needs.grants.is_empty();
    needs
}

fn add_needs(command: &Command, folder: &Path, needs: &mut Needs) {
    let Some((program, arguments)) = command.words.split_first() else { return };
    let program = program.as_str().rsplit('/').next().unwrap_or_default();
    let arguments: Vec<&str> = arguments.iter().map(Word::as_str).collect();
    if command.read_only {
        return;
    }
    if program == "git" {
        return git_needs(command, &arguments, folder, needs);
    }
    let words: Vec<&str> = command.words.iter().map(Word::as_str).collect();
    if publishes(&words) {
        needs.publishes = true;
        needs.grants.push(Grant::RegistryCredentials);
        needs.need("It publishes to other machines", command);
    }
    if downloads(program, &arguments) {
        needs.registries = true;
        needs.need(NETWORK, command);
    }
    match program {
        "doas" | "su" | "sudo" => needs.need(RIGHTS, command),
        program if LOCAL_PROGRAMS.contains(&program) => needs.need(SERVICES, command),
        program if PROGRAMS.contains(&program) => needs.need(NETWORK, command),
        _ => {}
    }
    needs.writes_git |= WRITES_GIT.contains(&program);
    match program {
        "docker" | "docker-compose" | "podman" | "nerdctl" => needs.grants.push(Grant::Containers),
        "aws" | "az" | "gcloud" | "gsutil" | "kubectl" | "helm" | "terraform" | "tofu" | "pulumi" => {
            needs.grants.extend([Grant::Cloud, Grant::Network]);
        }
        "gh" => {
            // The branch of a pull request follows one of a remote.
            let follows =
                arguments.starts_with(&["pr", "checkout"]) || arguments.starts_with(&["pr", "create"]);
            needs.grants.extend(follows.then_some(Grant::GitConfig));
            needs.grants.extend([
                Grant::GitCredentials,
                host("github.com", None),
                host("api.github.com", None),
            ]);
        }
        "glab" => needs.grants.extend([Grant::GitCredentials, host("gitlab.com", None)]),
        "curl" | "wget" | "http" | "https" => {
            needs.grants.extend(arguments.iter().filter_map(|word| web_host(word)))
        }
        _ => {}
    }
}

fn downloads(program: &str, arguments: &[&str]) -> bool {
    let (program, arguments) = match (program, arguments) {
        (program, ["-m", module, rest @ ..]) if program.starts_with("python") => (*module, rest),
        _ => (program, arguments),
    };
    let subcommand = arguments.iter().find(|word| !word.starts_with(['-', '+'])).copied().unwrap_or_default();
    DOWNLOADS
        .iter()
        .any(|(programs, subcommands)| programs.contains(&program) && subcommands.contains(&subcommand))
}

fn git_needs(command: &Command, arguments: &[&str], folder: &Path, needs: &mut Needs) {
    let at = arguments.iter().position(|word| !word.starts_with('-')).unwrap_or(arguments.len());
    // An option of git itself can move everything.
    if at > 0 {
        needs.need("It has an option of git itself", command);
    }
    let Some((sub, rest)) = arguments[at.min(arguments.len())..].split_first() else { return };
    let has = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    let named: Vec<&str> = rest.iter().filter(|word| !word.starts_with('-')).copied().collect();
    needs.writes_git = true;
    match *sub {
        "branch"
            if has(&[
                "-d", "-D", "-m", "-M", "-c", "-C", "-f", "--delete", "--move", "--copy", "--force",
            ]) =>
        {
            needs.need(REWRITES, command);
        }
        "tag" if has(&["-d", "-f", "--delete", "--force"]) => needs.need(REWRITES, command),
        sub if GIT_STAYS.contains(&sub) => {}
        sub if GIT_REMOTE.contains(&sub) => needs.need(NETWORK, command),
        _ => needs.need(REWRITES, command),
    }
    let writes_config = match *sub {
        "push" | "branch" => has(&["-u", "--set-upstream", "--set-upstream-to", "--unset-upstream"]),
        "remote" => {
            matches!(named.first(), Some(&("add" | "remove" | "rm" | "rename" | "set-url" | "set-branches")))
        }
        "submodule" => !matches!(named.first(), None | Some(&("status" | "summary" | "foreach"))),
        "config" => {
            !has(&["--global", "--system", "--get", "--list", "-l", "--get-all", "--get-regexp"])
                && named.len() > 1
        }
        // A branch that follows one of a remote.
        "switch" | "checkout" => {
            has(&["-c", "-b", "-t", "--track"]) && named.get(1).is_some_and(|start| start.contains('/'))
        }
        _ => false,
    };
    needs.grants.extend(writes_config.then_some(Grant::GitConfig));
    if GIT_REMOTE.contains(sub) {
        remote_needs(sub, named.first().copied(), folder, needs);
    }
}

fn remote_needs(sub: &str, remote: Option<&str>, folder: &Path, needs: &mut Needs) {
    let repository = folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok());
    let is_address = |text: &&str| text.contains(['/', ':', '.']);
    let address = match remote.filter(is_address) {
        Some(address) => Some(address.to_owned()),
        None => repository.and_then(|repository| remote_address(repository, remote.unwrap_or("origin"))),
    };
    let Some(address) = address else { return };
    if let Some(rest) = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")) {
        needs.grants.extend(web_host(&address));
        needs.grants.push(Grant::GitCredentials);
        let _ = rest;
    } else if let Some((name, port)) = ssh_host(&address) {
        needs.grants.push(Grant::Ssh);
        if !(SSH_HOSTS.contains(&name.as_str()) && port == 22) {
            needs.grants.push(host(&name, Some(port)));
        }
    } else if sub == "push" {
        let path = address.strip_prefix("file://").unwrap_or(&address);
        let path = repository.unwrap_or(folder).join(path);
        let outside = path.canonicalize().ok().filter(|path| !path.starts_with(folder));
        needs.grants.extend(outside.map(Grant::Write));
    }
}

/// `ssh://user@host:port/path` or `user@host:path`.
fn ssh_host(address: &str) -> Option<(String, u16)> {
    if let Some(rest) = address.strip_prefix("ssh://") {
        let authority = rest.split('/').next().unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (name, port) = authority.split_once(':').unwrap_or((authority, "22"));
        return Some((name.to_ascii_lowercase(), port.parse().ok()?));
    }
    let (before, _) = address.split_once(':').filter(|_| !address.contains("://"))?;
    let name = before.rsplit('@').next().unwrap_or_default();
    (!name.is_empty() && !name.contains('/')).then(|| (name.to_ascii_lowercase(), 22))
}

/// The host of a web address, if it can be granted.
fn web_host(word: &str) -> Option<Grant> {
    let (scheme, rest) = word.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse::<u16>().ok()?)),
        None => (authority, None),
    };
    if matches!(name, "localhost" | "127.0.0.1") {
        // A server that this line starts is reached without a grant; another one is named by the refusal.
        return None;
    }
    let port = port.filter(|port| !matches!(port, 80 | 443));
    Grant::parse(&host(name, port).to_string()).ok()
}

fn host(name: &str, port: Option<u16>) -> Grant {
    Grant::Host { name: name.to_owned(), port }
}

/// The address of a remote, from the repository's own file. It decides only which grants a person sees.
fn remote_address(repository: &Path, remote: &str) -> Option<String> {
    let text = read_small(&repository.join(".git/config"))?;
    let mut inside = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == format!("[remote \"{remote}\"]");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            match key.trim() {
                "pushurl" => return Some(value.trim().to_owned()),
                "url" => found = Some(value.trim().to_owned()),
                _ => {}
            }
        }
    }
    found
}

fn read_small(path: &PathBuf) -> Option<String> {
    let kind = path.symlink_metadata().ok()?;
    (kind.is_file() && kind.len() < 64 * 1024).then(|| std::fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(line: &str, folder: &Path) -> (bool, Vec<String>) {
        let needs = needs_of(&crate::shell::analyze(line), folder);
        (needs.more, needs.grants.iter().map(Grant::to_string).collect())
    }

    #[test]
    fn a_question_names_its_cause() {
        for (line, cause) in [
            ("npm install date-fns", "It needs the network: npm install"),
            ("make && curl https://example.com", "It needs the network: curl"),
            ("git fetch origin", "It needs the network: git fetch"),
            (
                "git checkout main",
                "It changes branches, the history or files of the repository: git checkout",
            ),
            ("sudo make install", "It needs rights of another user: sudo"),
            ("cargo publish", "It publishes to other machines: cargo publish"),
        ] {
            let needs = needs_of(&crate::shell::analyze(line), Path::new("/nowhere"));
            assert!(
                needs.cause.as_deref().is_some_and(|found| found.starts_with(cause)),
                "{line}: {needs:?}"
            );
        }
        let publish = needs_of(&crate::shell::analyze("npm publish"), Path::new("/nowhere"));
        assert!(publish.publishes && publish.grants == [Grant::RegistryCredentials], "{publish:?}");
    }

    #[test]
    fn commands_that_stay_in_the_workspace_need_nothing() {
        for line in [
            "cargo test --workspace",
            "npm test",
            "npm run build",
            "pytest -q",
            "go build ./...",
            "make",
            "mkdir -p src/a && touch src/a/b.rs",
            "rm -rf dist",
            "git add -A && git commit -m done",
            "jj commit -m done",
            "python3 scripts/generate.py > out.txt",
        ] {
            assert_eq!(needs(line, Path::new("/nowhere")), (false, Vec::new()), "{line}");
        }
    }

    #[test]
    fn commands_that_need_more_are_known() {
        for (line, grants) in [
            ("npm ci", &[][..]),
            ("pre-commit run --all-files", &[]),
            (
                "gh pr checkout 12",
                &["git-config", "git-credentials", "network:github.com", "network:api.github.com"],
            ),
            ("yarn", &[]),
            ("python3 -m pip install x", &[]),
            ("cargo add serde", &[]),
            ("git checkout main", &[]),
            ("git init", &[]),
            ("git branch -D old", &[]),
            ("git -C sub commit -m x", &[]),
            ("git remote add origin x", &["git-config"]),
            ("git switch -c topic origin/topic", &["git-config"]),
            ("docker ps", &["containers"]),
            ("kubectl get pods", &["cloud", "network"]),
            ("curl -s https://Example.com:8443/a", &["network:example.com:8443"]),
            ("curl http://localhost:3000", &[]),
            ("git clone https://example.com/a.git", &["network:example.com", "git-credentials"]),
            ("git clone git@github.com:a/b.git", &["ssh"]),
            ("git clone ssh://git@git.example.com:2222/a.git", &["ssh", "network:git.example.com:2222"]),
        ] {
            let expected: Vec<String> = grants.iter().map(|grant| (*grant).to_owned()).collect();
            assert_eq!(needs(line, Path::new("/nowhere")), (true, expected), "{line}");
        }
    }

    #[test]
    fn a_push_needs_what_its_remote_needs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (work, bare) = (root.join("work"), root.join("bare.git"));
        std::fs::create_dir_all(work.join(".git")).unwrap();
        std::fs::create_dir(&bare).unwrap();
        let config = "[remote \"origin\"]\n\turl = git@github.com:me/shop.git\n[remote \"near\"]\n\turl = ../bare.git\n";
        std::fs::write(work.join(".git/config"), config).unwrap();
        let grants = |line: &str| needs(line, &work).1;
        assert_eq!(grants("git push"), ["ssh"]);
        assert_eq!(grants("git push -u origin main"), ["git-config", "ssh"]);
        assert_eq!(grants("git push near main"), [format!("write:{}", bare.display())]);
        assert_eq!(grants("git push gone main"), [""; 0]);
    }
}
