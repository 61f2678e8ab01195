//! Folders that a build tool makes anew: they are not copied.
//!
//! Must not know `.gitignore`: people ignore `.env` files and local databases, and miss these most. Invariant: a folder
//! counts as a build folder only by its name together with a manifest that its tool wrote or reads.

use std::fs;
use std::io::Read;
use std::path::Path;

/// Name of the folder, and files beside it of which one must exist.
const BESIDE: &[(&str, &[&str])] = &[
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("node_modules", &["package.json"]),
    (".next", &["package.json"]),
    (".gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (".dart_tool", &["pubspec.yaml"]),
    ("_build", &["mix.exs", "dune-project"]),
    (".stack-work", &["stack.yaml"]),
    ("dist-newstyle", &["cabal.project"]),
    (".tox", &["tox.ini", "pyproject.toml"]),
];

/// Name of the folder, and a file inside it that must exist.
const INSIDE: &[(&str, &str)] = &[
    (".venv", "pyvenv.cfg"),
    ("venv", "pyvenv.cfg"),
    ("env", "pyvenv.cfg"),
    (".mypy_cache", "CACHEDIR.TAG"),
    (".pytest_cache", "CACHEDIR.TAG"),
    (".ruff_cache", "CACHEDIR.TAG"),
];

pub(crate) fn is_build_folder(folder: &Path) -> bool {
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { return false };
    let parent = folder.parent().unwrap_or(folder);
    let beside = BESIDE.iter().filter(|(known, _)| *known == name).flat_map(|(_, files)| *files);
    let mut beside = beside.map(|file| parent.join(file));
    let mut inside = INSIDE.iter().filter(|(known, _)| *known == name).map(|(_, file)| folder.join(file));
    beside.any(|file| file.is_file())
        || inside.any(|file| file.is_file())
        || name == "__pycache__" && only_compiled_python(folder)
}

fn only_compiled_python(folder: &Path) -> bool {
    let compiled = |entry: fs::DirEntry| {
        let path = entry.path();
        let mut magic = [0; 4];
        path.extension().is_some_and(|extension| extension == "pyc")
            // Python ends its magic number with a carriage return and a line feed.
            && fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
            && magic[2..] == *b"\r\n"
    };
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(compiled)))
}
