//! Finding a program by its name, as the system's own shell would.
//!
//! Invariant: a program is looked for in the folders of the PATH alone: on Windows never first in the current folder, where
//! a project may have put one with the same name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::System;

/// What a search found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Program(PathBuf),
    /// A file of that name that may not be executed.
    NotExecutable,
    Nothing,
}

/// Looks for a program as a child in `directory` with this PATH would.
pub fn find(program: &OsStr, path: Option<&OsStr>, extensions: Option<&OsStr>, directory: &Path) -> Found {
    let system = System::CURRENT;
    let names = names(program, extensions, system);
    let candidates: Vec<PathBuf> = if is_path(program, system) {
        names.iter().map(|name| directory.join(name)).collect()
    } else {
        let fallback = OsStr::new(if cfg!(windows) { "" } else { "/usr/local/bin:/usr/bin:/bin" });
        let folders =
            std::env::split_paths(path.unwrap_or(fallback)).filter(|folder| !folder.as_os_str().is_empty());
        folders.flat_map(|folder| names.iter().map(move |name| directory.join(&folder).join(name))).collect()
    };
    let found: Vec<PathBuf> = candidates.into_iter().filter(|path| path.is_file()).collect();
    match found.iter().find(|path| crate::is_executable(path)) {
        Some(path) => Found::Program(path.clone()),
        None if found.is_empty() => Found::Nothing,
        None => Found::NotExecutable,
    }
}

/// The text is a path, not a name that is looked for.
pub fn is_path(program: &OsStr, system: System) -> bool {
    let bytes = program.as_encoded_bytes();
    bytes.contains(&b'/') || system == System::Windows && (bytes.contains(&b'\\') || bytes.contains(&b':'))
}

/// The file names that a program may have: on Windows those of PATHEXT where it has none of them.
pub fn names(program: &OsStr, extensions: Option<&OsStr>, system: System) -> Vec<OsString> {
    if system != System::Windows {
        return vec![program.to_owned()];
    }
    let known = extensions.and_then(OsStr::to_str).filter(|text| !text.is_empty());
    let known: Vec<&str> =
        known.unwrap_or(".COM;.EXE;.BAT;.CMD").split(';').filter(|ending| ending.len() > 1).collect();
    let text = program.to_string_lossy().to_lowercase();
    if known.iter().any(|ending| text.ends_with(&ending.to_lowercase())) {
        return vec![program.to_owned()];
    }
    let with = |ending: &&str| {
        let mut name = program.to_owned();
        name.push(ending.to_lowercase());
        name
    };
    known.iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_adds_the_endings_of_pathext() {
        let names = |program: &str, endings: Option<&str>, system| -> Vec<String> {
            let names = names(program.as_ref(), endings.map(OsStr::new), system);
            names.into_iter().map(|name| name.into_string().unwrap()).collect()
        };
        assert_eq!(names("npx", None, System::Linux), ["npx"]);
        assert_eq!(names("npx", None, System::Windows), ["npx.com", "npx.exe", "npx.bat", "npx.cmd"]);
        assert_eq!(names("npx", Some(".EXE;.CMD;"), System::Windows), ["npx.exe", "npx.cmd"]);
        assert_eq!(names("npx.CMD", Some(".EXE;.CMD"), System::Windows), ["npx.CMD"]);
        assert_eq!(names("python3.11", Some(".EXE"), System::Windows), ["python3.11.exe"]);
        for (program, system, expected) in [
            ("a/b", System::Linux, true),
            (r"a\b", System::Linux, false),
            (r"a\b", System::Windows, true),
            ("C:x", System::Windows, true),
            ("npx", System::Windows, false),
        ] {
            assert_eq!(is_path(program.as_ref(), system), expected, "{program}");
        }
    }

    #[test]
    fn a_program_is_found_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let name = if cfg!(windows) { "tool.cmd" } else { "tool" };
        std::fs::write(folder.path().join(name), "").unwrap();
        let find = || find("tool".as_ref(), Some(folder.path().as_os_str()), None, folder.path());
        if !cfg!(windows) {
            assert_eq!(find(), Found::NotExecutable);
            crate::set_mode(&folder.path().join(name), 0o755).unwrap();
        }
        assert_eq!(find(), Found::Program(folder.path().join(name)));
        let nothing = super::find("missing".as_ref(), Some(folder.path().as_os_str()), None, folder.path());
        assert_eq!(nothing, Found::Nothing);
    }
}
