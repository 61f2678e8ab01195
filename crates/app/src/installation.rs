//! How this copy of the program was installed. Each package holds the file `lib/dragoman/package` with one word, two
//! folders up from the program; builds from source are known by their folder.
//!
//! Invariant: reads files only. Nothing is run and nothing is fetched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::Environment;
use platform::project_files;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The word in the file is short; more is not ours.
const MAX_WORD_BYTES: u64 = 64;

#[derive(Debug)]
pub(crate) struct Installation {
    /// The file that runs, without links.
    pub program: PathBuf,
    /// One word for scripts: `npm`, `npx`, `pypi`, `pipx`, `uv`, `uvx`, `deb`, `rpm`, `homebrew`, `nix`, `script`,
    /// `archive`, `container`, `cargo`, `source` or `unknown`.
    pub method: &'static str,
    pub update_command: Option<String>,
}

impl Installation {
    pub(crate) fn detect(environment: &Environment) -> Self {
        let program = running(std::env::current_exe(), std::env::args_os().next());
        let cargo_home = environment.var("CARGO_HOME").map(PathBuf::from);
        let cargo_home = cargo_home.unwrap_or_else(|| environment.home().join(".cargo"));
        let word = program.parent().and_then(Path::parent).and_then(package_word);
        Self::of(program, word.as_deref(), &cargo_home)
    }

    fn of(program: PathBuf, word: Option<&str>, cargo_home: &Path) -> Self {
        let method = method(&program, word, cargo_home);
        let update_command = update_command(method, &program);
        Self { program, method, update_command }
    }

    /// The end of a sentence that begins with the program.
    pub(crate) fn description(&self) -> &'static str {
        match self.method {
            "npm" => "was installed by npm",
            "npx" => "was started by npx, which keeps a copy in its cache",
            "pypi" => "was installed by pip",
            "pipx" => "was installed by pipx",
            "uv" => "was installed by uv",
            "uvx" => "was started by uvx, which keeps a copy in its cache",
            "deb" => "was installed by dpkg",
            "rpm" => "was installed by rpm",
            "homebrew" => "was installed by Homebrew",
            "nix" => "was installed by Nix",
            "script" => "was installed by the install script",
            "archive" => "was unpacked from an archive",
            "container" => "is part of a container image",
            "cargo" => "was installed by cargo",
            "source" => "was built from source",
            _ => "was installed in a way that it does not know",
        }
    }
}

/// The path for the settings of an editor: the name in `PATH` that leads to this program, because it stays when a
/// package manager replaces the file behind it; else the file itself.
pub(crate) fn command_path(environment: &Environment) -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("dragoman"));
    let real = program.canonicalize().unwrap_or_else(|_| program.clone());
    let folders = environment.var("PATH").map(std::env::split_paths).into_iter().flatten();
    // `dragoman.exe` on Windows.
    let name = real.file_name().unwrap_or_else(|| "dragoman".as_ref());
    let mut names = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let found = names.find(|name| name.canonicalize().is_ok_and(|it| it == real));
    found.unwrap_or(program).display().to_string()
}

/// The file that runs. Without `/proc`, as in a root that holds nothing else, the system does not tell it: then it is the
/// path by which the program was called.
fn running(told: std::io::Result<PathBuf>, called: Option<OsString>) -> PathBuf {
    let called = called.map(PathBuf::from).filter(|name| name.components().count() > 1);
    let program = told.ok().or(called).unwrap_or_else(|| PathBuf::from("dragoman"));
    program.canonicalize().unwrap_or(program)
}

fn package_word(prefix: &Path) -> Option<String> {
    let path = prefix.join("lib/dragoman/package");
    let bytes = project_files::read_named(&path, MAX_WORD_BYTES).ok()?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned())
}

fn method(program: &Path, word: Option<&str>, cargo_home: &Path) -> &'static str {
    let has = |names: &[&str]| {
        let folders: Vec<&str> = program.iter().filter_map(|part| part.to_str()).collect();
        folders.windows(names.len()).any(|window| window == names)
    };
    if has(&["nix", "store"]) {
        return "nix";
    }
    if has(&["Cellar", "dragoman"]) {
        return "homebrew";
    }
    match word {
        Some("npm") if has(&["_npx"]) => "npx",
        Some("npm") => "npm",
        Some("pypi") if has(&["pipx", "venvs"]) => "pipx",
        Some("pypi") if has(&["uv", "tools"]) => "uv",
        Some("pypi") if has(&["uv", "archive-v0"]) => "uvx",
        Some("pypi") => "pypi",
        Some("deb") => "deb",
        Some("rpm") => "rpm",
        Some("script") => "script",
        Some("archive") => "archive",
        Some("container") => "container",
        _ if program.parent().is_some_and(|bin| bin == cargo_home.join("bin")) => "cargo",
        _ if ["release", "quick", "debug"].iter().any(|profile| has(&["target", profile])) => "source",
        _ => "unknown",
    }
}

fn update_command(method: &str, program: &Path) -> Option<String> {
    // The name says it for every system alike: only Windows has this ending.
    let is_windows = program.extension().is_some_and(|ending| ending == "exe");
    let command = match method {
        "npm" => {
            let package = if is_windows { "dragoman-win32-x64" } else { "dragoman" };
            match node_project(program) {
                Some(project) => format!("npm install --prefix {} {package}@latest", quoted(&project)),
                None => format!("npm install --global {package}@latest"),
            }
        }
        "npx" => "npx dragoman@latest".to_owned(),
        "pypi" => {
            // In an environment on Windows both programs are in `Scripts`.
            let python = program.with_file_name(if is_windows { "python.exe" } else { "python" });
            format!("{} -m pip install --upgrade dragoman", quoted(&python))
        }
        "pipx" => "pipx upgrade dragoman".to_owned(),
        "uv" => "uv tool upgrade dragoman".to_owned(),
        "uvx" => "uvx dragoman@latest".to_owned(),
        "deb" => "sudo apt-get install ./dragoman_VERSION_ARCHITECTURE.deb   (the file of the newer release)"
            .to_owned(),
        "rpm" => "sudo rpm --upgrade dragoman-VERSION.ARCHITECTURE.rpm   (the file of the newer release)"
            .to_owned(),
        "homebrew" => "brew upgrade dragoman".to_owned(),
        "nix" => "nix profile upgrade dragoman".to_owned(),
        "script" => {
            let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
            let start = match is_windows {
                true => "powershell -ExecutionPolicy Bypass -File install.ps1 -Prefix",
                false => "sh install.sh --prefix",
            };
            format!("{start} {}   (the script of the newer release)", quoted(prefix))
        }
        "cargo" => "cargo install --locked dragoman".to_owned(),
        "source" => "git pull && make build".to_owned(),
        _ => return None,
    };
    Some(command)
}

/// The folder of a project that has the package among its own; a global one has none.
fn node_project(program: &Path) -> Option<PathBuf> {
    let modules = program.ancestors().filter(|folder| folder.ends_with("node_modules")).last()?;
    let project = modules.parent()?;
    project.join("package.json").is_file().then(|| project.to_owned())
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_runs_is_known_where_the_system_does_not_tell_it() {
        let none = || Err(std::io::ErrorKind::NotFound.into());
        for (told, called, expected) in [
            (Ok(PathBuf::from("/a/told")), Some("/a/called"), "/a/told"),
            (none(), Some("/a/called"), "/a/called"),
            (none(), Some("called"), "dragoman"),
            (none(), None, "dragoman"),
        ] {
            assert_eq!(running(told, called.map(OsString::from)), PathBuf::from(expected));
        }
    }

    #[test]
    fn each_way_of_installing_is_known_and_has_its_command() {
        for (program, word, method, command) in [
            ("/usr/bin/dragoman", Some("deb"), "deb", Some("apt-get")),
            ("/usr/bin/dragoman", Some("rpm"), "rpm", Some("rpm --upgrade")),
            (
                "/usr/local/lib/node_modules/dragoman-linux-x64/bin/dragoman",
                Some("npm"),
                "npm",
                Some("--global"),
            ),
            (
                "/h/.npm/_npx/1a/node_modules/dragoman-linux-x64/bin/dragoman",
                Some("npm"),
                "npx",
                Some("npx "),
            ),
            ("/h/v/bin/dragoman", Some("pypi"), "pypi", Some("/h/v/bin/python -m pip")),
            ("/h/.local/share/pipx/venvs/dragoman/bin/dragoman", Some("pypi"), "pipx", Some("pipx upgrade")),
            ("/h/.local/share/uv/tools/dragoman/bin/dragoman", Some("pypi"), "uv", Some("uv tool")),
            ("/h/.cache/uv/archive-v0/x/bin/dragoman", Some("pypi"), "uvx", Some("uvx ")),
            ("/opt/homebrew/Cellar/dragoman/1.0.0/bin/dragoman", Some("archive"), "homebrew", Some("brew")),
            ("/nix/store/abc-dragoman-1.0.0/bin/dragoman", None, "nix", Some("nix profile")),
            ("/h/my tools/bin/dragoman", Some("script"), "script", Some("--prefix '/h/my tools'")),
            ("/h/d/bin/dragoman", Some("archive"), "archive", None),
            ("/h/d/bin/dragoman.exe", Some("script"), "script", Some("install.ps1 -Prefix /h/d ")),
            (
                "/n/node_modules/dragoman-win32-x64/bin/dragoman.exe",
                Some("npm"),
                "npm",
                Some(" dragoman-win32-x64@"),
            ),
            ("/v/Scripts/dragoman.exe", Some("pypi"), "pypi", Some("/v/Scripts/python.exe -m pip")),
            ("/c/bin/dragoman", None, "cargo", Some("cargo install")),
            ("/src/dragoman/target/quick/dragoman", None, "source", Some("make build")),
            ("/x/dragoman", Some("surprise"), "unknown", None),
        ] {
            let found = Installation::of(PathBuf::from(program), word, Path::new("/c"));
            assert_eq!(found.method, method, "{program}");
            match command {
                Some(part) => {
                    assert!(found.update_command.as_deref().is_some_and(|it| it.contains(part)), "{found:?}");
                }
                None => assert_eq!(found.update_command, None, "{program}"),
            }
        }
    }
}
