//! What a sandbox refused a command, as far as its output tells, and the grants that would allow it.
//!
//! Reads texts of well-known programs; opens nothing and decides nothing. Invariant: a grant that is named here can be
//! asked for as it stands.

use std::path::{Path, PathBuf};

use process::sandbox::stopped::{self, Stopped};
use process::sandbox::{Grant, registries};

/// A command that ended, in the words of this module.
pub(crate) struct Refused<'a> {
    pub output: &'a str,
    pub succeeded: bool,
    /// `host:port` that the proxy refused.
    pub hosts: &'a [String],
    /// Nobody approved the command.
    pub strict: bool,
    pub folder: &'a Path,
    pub roots: &'a [PathBuf],
    /// It was ended because it took too much memory.
    pub over_memory: bool,
}

/// Words of a program and the grant that it lacks.
const SIGNS: &[(&[&str], &str)] = &[
    (&["could not write config file", "could not lock config file"], "git-config"),
    (
        &[
            "Permission denied (publickey",
            "authentication agent",
            "Host key verification failed",
            "Could not read from remote repository",
        ],
        "ssh",
    ),
    (&["gpg failed to sign", "No secret key", "gpg: can't connect to the"], "signing"),
    (&["Cannot connect to the Docker daemon", "docker.sock", "podman.sock"], "containers"),
    (&["Unable to locate credentials", "default credentials", "must be logged in to the server"], "cloud"),
    (
        &[
            "ENEEDAUTH",
            "need auth This command requires you to be logged in",
            "no token found, please run `cargo login`",
            "please log in with",
            "403 Invalid or non-existent authentication",
            "E401",
        ],
        "registry-credentials",
    ),
    (&["could not read Username", "could not read Password", "Authentication failed for"], "git-credentials"),
];

/// Words before the name of a host that could not be looked up.
const UNRESOLVED: &[&str] = &[
    "Could not resolve host: ",
    "Could not resolve hostname ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "unable to resolve host address ‘",
    "dial tcp: lookup ",
];

/// At most this many grants are named.
const MOST: usize = 6;

/// The sentence for the model; `None`: nothing points to the sandbox.
pub(crate) fn describe(refused: &Refused<'_>) -> Option<String> {
    let mut grants: Vec<String> = Vec::new();
    let mut forbidden = Vec::new();
    for host in refused.hosts {
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "443"));
        let web = matches!(port, "80" | "443");
        match refused.strict && web && registries::is_public(name) {
            true => grants.push("registries".to_owned()),
            false if web => grants.push(format!("network:{name}")),
            false => grants.push(format!("network:{host}")),
        }
    }
    if !refused.succeeded {
        grants.extend(by_words(refused.output));
        grants.extend(replaced_folders(refused).iter().map(|folder| format!("write:{}", folder.display())));
        for path in read_only_paths(refused) {
            match grant_for(&path, refused) {
                Ok(grant) => grants.push(grant),
                Err(path) => forbidden.push(path),
            }
        }
    }
    let named = known(grants);
    let mut text = Vec::new();
    if refused.over_memory {
        text.push(
            "The sandbox ended it, because its processes took more memory than they may have. The user's setting \
             sandboxMemoryMegabytes raises the limit."
                .to_owned(),
        );
    }
    if !named.is_empty() {
        let grants = named.join(", ");
        text.push(format!(
            "The sandbox refused it. To ask the user for more, repeat the call with grants: {grants}."
        ));
    }
    forbidden.dedup();
    if let Some(path) = forbidden.first() {
        text.push(format!("{} is protected: no grant opens it; ask the user to change it.", path.display()));
    }
    if text.is_empty() && !refused.succeeded {
        text.extend(without_grant(refused.output));
    }
    (!text.is_empty()).then(|| format!("[{}]", text.join(" ")))
}

/// Each grant once, as far as it can be asked for.
fn known(grants: Vec<String>) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for grant in grants {
        if !named.contains(&grant) && named.len() < MOST && Grant::parse(&grant).is_ok() {
            named.push(grant);
        }
    }
    named
}

/// What the sandbox probably stopped, where no grant is known that helps.
fn without_grant(output: &str) -> Option<String> {
    let (stopped, line) = stopped::find(output)?;
    // The files of a project may lack a module or forbid reading without a sandbox, too.
    let is_certain = matches!(stopped, Stopped::ReadOnly | Stopped::Socket);
    (is_certain || stopped == Stopped::Module && stopped::names_replaced(line))
        .then(|| format!("The sandbox may have stopped it: {}.", stopped.sentence()))
}

fn by_words(output: &str) -> Vec<String> {
    let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
    let signs = SIGNS.iter().filter(|(words, _)| says(words)).map(|(_, grant)| (*grant).to_owned());
    let hosts = UNRESOLVED.iter().flat_map(|words| output.split(words).skip(1)).filter_map(|rest| {
        let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || ".-_".contains(char)))?;
        let name = rest[..end].trim_end_matches('.');
        name.contains('.').then(|| format!("network:{}", name.to_ascii_lowercase()))
    });
    let refused = output.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("refused") || line.contains("failed to connect")
    });
    let ports = refused.filter_map(loopback_port).map(|port| format!("port:{port}"));
    signs.chain(hosts).chain(ports).collect()
}

/// `127.0.0.1:5432`, `localhost port 5432`, `("127.0.0.1", 5432)`.
fn loopback_port(line: &str) -> Option<u16> {
    let names = ["127.0.0.1", "localhost", "::1"];
    names.iter().find_map(|name| {
        let rest = &line[line.find(name)? + name.len()..];
        let start = rest.find(|char: char| char.is_ascii_digit()).filter(|start| *start <= 12)?;
        let digits = &rest[start..];
        let end = digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok().filter(|port| *port > 0)
    })
}

/// Paths on lines that say that something is read-only.
fn read_only_paths(refused: &Refused<'_>) -> Vec<PathBuf> {
    let lines = refused.output.lines().filter(|line| {
        line.contains("Read-only file system")
            || line.contains("EROFS")
            || line.contains("Device or resource busy")
    });
    let mut paths = Vec::new();
    for line in lines.take(20) {
        let pieces = line.split(['\'', '"', '‘', '’', '`', ' ', ':', ',', '(', ')']);
        let found = pieces
            .filter(|piece| piece.contains('/') || piece.starts_with('.'))
            .map(|piece| refused.folder.join(piece));
        paths.extend(
            found.filter(|path| {
                path.ancestors().skip(1).any(|above| above.parent().is_some() && above.is_dir())
            }),
        );
    }
    paths
}

/// Below `/tmp` a folder that is there for the user is not there for a command: such folders, outside of the workspace.
fn replaced_folders(refused: &Refused<'_>) -> Vec<PathBuf> {
    let lines =
        refused.output.lines().filter(|line| stopped::is_missing(line) && stopped::names_replaced(line));
    let pieces =
        lines.take(20).flat_map(|line| line.split(['\'', '"', '‘', '’', '`', ' ', ':', ',', '(', ')']));
    let paths = pieces
        .map(Path::new)
        .filter(|path| path.is_absolute() && stopped::names_replaced(&path.to_string_lossy()));
    let folders = paths.filter_map(|path| if path.is_dir() { Some(path) } else { path.parent() });
    let is_outside = |folder: &&Path| {
        let is_whole =
            ["/tmp", "/run", "/var/tmp"].iter().any(|replaced| Path::new(replaced).starts_with(folder));
        folder.is_dir() && !is_whole && !refused.roots.iter().any(|root| folder.starts_with(root))
    };
    folders.filter(is_outside).map(Path::to_owned).collect()
}

/// The grant for a path; `Err` where there is none.
fn grant_for(path: &Path, refused: &Refused<'_>) -> Result<String, PathBuf> {
    let inside = refused.roots.iter().find_map(|root| path.strip_prefix(root).ok());
    match inside {
        Some(inside)
            if inside.starts_with(".git/hooks")
                || inside.starts_with(".dragoman")
                || inside.starts_with(".eca") =>
        {
            Err(path.to_owned())
        }
        Some(inside) if inside.starts_with(".git/config") || inside.starts_with(".git/config.lock") => {
            Ok("git-config".to_owned())
        }
        Some(_) if refused.strict => Ok("run-later".to_owned()),
        Some(_) => Err(path.to_owned()),
        None => {
            let folder = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(path);
            Ok(format!("write:{}", folder.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(output: &str, hosts: &[&str], strict: bool) -> String {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let roots = [PathBuf::from("/usr/shop")];
        let folder = Path::new("/usr/shop");
        let over_memory = output == "Killed";
        let refused =
            Refused { output, succeeded: false, hosts: &hosts, strict, folder, roots: &roots, over_memory };
        describe(&refused).unwrap_or_default()
    }

    #[test]
    fn each_refusal_names_the_grant_that_allows_it() {
        for (output, grant) in [
            ("error: could not lock config file .git/config: Read-only file system", "git-config"),
            ("touch: cannot touch '/usr/share/new': Read-only file system", "write:/usr/share"),
            ("bash: /usr/new: Read-only file system", "write:/usr"),
            ("OSError: [Errno 30] Read-only file system: '/usr/share/x/y'", "write:/usr/share"),
            ("Error: EROFS: read-only file system, open '/usr/lib/a'", "write:/usr/lib"),
            ("git@github.com: Permission denied (publickey).", "ssh"),
            ("error: gpg failed to sign the data", "signing"),
            ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "containers"),
            ("Unable to locate credentials. You can configure credentials", "cloud"),
            ("fatal: could not read Username for 'https://x': terminal prompts disabled", "git-credentials"),
            ("curl: (6) Could not resolve host: Api.Example.com\n", "network:api.example.com"),
            ("Error: getaddrinfo ENOTFOUND db.example.org\n", "network:db.example.org"),
            ("curl: (7) Failed to connect to localhost port 5432 after 0 ms", "port:5432"),
            ("connect ECONNREFUSED 127.0.0.1:6379: connection refused", "port:6379"),
        ] {
            let told = text(output, &[], false);
            assert!(told.contains(&format!("grants: {grant}")), "{output}: {told}");
        }
        assert_eq!(text("error: test failed", &[], false), "");
    }

    #[test]
    fn hosts_are_named_as_they_can_be_granted() {
        assert!(
            text("", &["example.com:443", "example.com:22"], false)
                .contains("network:example.com, network:example.com:22")
        );
        assert!(text("", &["index.crates.io:443", "pypi.org:443"], true).contains("grants: registries."));
        assert!(text("", &["pypi.org:443"], false).contains("network:pypi.org"));
    }

    #[test]
    fn a_folder_below_tmp_that_is_not_seen_is_named() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let shown = folder.path().display();
        let told = text(&format!("touch: cannot touch '{shown}/a': No such file or directory"), &[], false);
        assert!(told.contains(&format!("grants: write:{shown}.")), "{told}");
        let told = text("cat: /tmp/no-such-file: No such file or directory", &[], false);
        assert!(!told.contains("grants:"), "{told}");
    }

    #[test]
    fn what_the_sandbox_stopped_is_named_as_such() {
        for (output, words) in [
            ("Failed to connect to bus: No such file or directory", "sockets of services"),
            ("Error: Cannot find module '/tmp/server/lib.js'", "folders such as /tmp"),
            ("Killed", "sandboxMemoryMegabytes"),
        ] {
            assert!(text(output, &[], false).contains(words), "{output}: {}", text(output, &[], false));
        }
        assert_eq!(text("Error: Cannot find module './lib.js'", &[], false), "");
    }

    #[test]
    fn a_protected_path_cannot_be_granted() {
        let hook = "bash: .git/hooks/pre-commit: Read-only file system";
        assert!(text(hook, &[], false).contains("no grant opens it"), "{}", text(hook, &[], false));
    }
}
