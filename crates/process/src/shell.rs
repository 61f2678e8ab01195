//! Which shell runs a line: bash, or sh where there is no bash; on Windows the bash of Git, or PowerShell.

use std::ffi::{OsStr, OsString};

/// The language of the lines that [`crate::Spawn::shell`] runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellLanguage {
    Posix,
    /// No line of it is understood: each one is asked.
    PowerShell,
}

pub(crate) struct Shell {
    pub(crate) program: OsString,
    /// Taken where `program` is not installed.
    pub(crate) fallback: Option<OsString>,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) language: ShellLanguage,
}

/// The language of shell lines on this machine.
pub fn shell_language() -> ShellLanguage {
    shell().language
}

/// The program and its arguments before a line.
pub fn shell_command() -> (String, Vec<String>) {
    let shell = shell();
    let arguments = shell.arguments.iter().map(|argument| (*argument).to_owned());
    (shell.program.to_string_lossy().into_owned(), arguments.collect())
}

#[cfg(not(windows))]
pub(crate) fn shell() -> &'static Shell {
    static SHELL: std::sync::LazyLock<Shell> = std::sync::LazyLock::new(|| Shell {
        program: "bash".into(),
        fallback: Some("sh".into()),
        arguments: &["-c"],
        language: ShellLanguage::Posix,
    });
    &SHELL
}

#[cfg(windows)]
pub(crate) fn shell() -> &'static Shell {
    static SHELL: std::sync::LazyLock<Shell> = std::sync::LazyLock::new(|| match git_bash() {
        Some(program) => Shell {
            program: program.into(),
            fallback: None,
            arguments: &["-c"],
            language: ShellLanguage::Posix,
        },
        None => Shell {
            program: "pwsh".into(),
            fallback: Some("powershell".into()),
            arguments: &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"],
            language: ShellLanguage::PowerShell,
        },
    });
    &SHELL
}

/// The bash of Git for Windows: beside the git of the PATH, or where its installer puts it. Not the `bash.exe` of Windows
/// itself, which starts another system.
#[cfg(windows)]
fn git_bash() -> Option<std::path::PathBuf> {
    use std::path::{Path, PathBuf};

    use platform::programs::{Found, find};
    #[expect(clippy::disallowed_methods, reason = "the folders of programs are told by variables")]
    let variable = |name: &str| std::env::var_os(name);
    let git = match find(OsStr::new("git"), variable("PATH").as_deref(), None, Path::new("")) {
        Found::Program(git) => Some(git),
        Found::NotExecutable | Found::Nothing => None,
    };
    // `Git\cmd\git.exe` or `Git\mingw64\bin\git.exe`.
    let above = git.iter().flat_map(|git| git.ancestors().skip(2).take(2).map(Path::to_owned));
    let installed =
        ["ProgramFiles", "LocalAppData"].iter().filter_map(|name| variable(name).map(PathBuf::from));
    let installed = installed.flat_map(|folder| [folder.join("Git"), folder.join("Programs").join("Git")]);
    let roots: Vec<PathBuf> = above.chain(installed).collect();
    let candidates = roots.iter().flat_map(|root| [root.join("bin"), root.join("usr").join("bin")]);
    candidates.map(|folder| folder.join("bash.exe")).find(|bash| bash.is_file())
}

/// The variable in which Windows names the endings of programs.
pub(crate) fn program_endings() -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the shell looks for programs by this variable")]
    let endings = std::env::var_os(OsStr::new("PATHEXT"));
    endings.filter(|_| cfg!(windows))
}
