//! The table of languages: endings of files, files that mark a project, programs that serve them.
//!
//! Knows no process. Invariant: looking for programs and marks starts nothing and lists at most the folders themselves.

use std::path::{Path, PathBuf};

use platform::programs::Found;

use crate::{ConfiguredServer, Options};

/// A language, or several that one program serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// Endings of files, each with the name of its language in the protocol.
    pub extensions: Vec<(String, String)>,
    /// Files that a project of this language has in its folder. Empty: any folder may be one.
    pub marks: Vec<String>,
    /// Command lines in their order; the first that is installed is used.
    pub programs: Vec<Vec<String>>,
}

struct Known {
    extensions: &'static str,
    marks: &'static str,
    /// One command line each.
    programs: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known { extensions: "rs=rust", marks: "Cargo.toml rust-project.json", programs: &["rust-analyzer"] },
    Known { extensions: "go=go", marks: "go.mod go.work", programs: &["gopls"] },
    Known {
        extensions: "py=python pyi=python",
        marks: "pyproject.toml setup.py setup.cfg requirements.txt Pipfile pyrightconfig.json",
        programs: &[
            "pyright-langserver --stdio",
            "basedpyright-langserver --stdio",
            "pylsp",
            "jedi-language-server",
        ],
    },
    Known {
        extensions: "ts=typescript mts=typescript cts=typescript tsx=typescriptreact js=javascript mjs=javascript \
                     cjs=javascript jsx=javascriptreact",
        marks: "package.json tsconfig.json jsconfig.json",
        programs: &["typescript-language-server --stdio", "vtsls --stdio"],
    },
    Known {
        extensions: "c=c h=c cc=cpp cpp=cpp cxx=cpp hh=cpp hpp=cpp",
        marks: "compile_commands.json compile_flags.txt CMakeLists.txt .clangd",
        programs: &["clangd"],
    },
    Known { extensions: "zig=zig", marks: "build.zig", programs: &["zls"] },
    Known { extensions: "lua=lua", marks: ".luarc.json .luarc.jsonc", programs: &["lua-language-server"] },
    Known { extensions: "rb=ruby", marks: "Gemfile", programs: &["ruby-lsp", "solargraph stdio"] },
    Known { extensions: "java=java", marks: "pom.xml build.gradle build.gradle.kts", programs: &["jdtls"] },
    Known {
        extensions: "php=php",
        marks: "composer.json",
        programs: &["intelephense --stdio", "phpactor language-server"],
    },
    Known { extensions: "cs=csharp", marks: "global.json Directory.Build.props", programs: &["csharp-ls"] },
    Known {
        extensions: "hs=haskell",
        marks: "stack.yaml cabal.project package.yaml",
        programs: &["haskell-language-server-wrapper --lsp"],
    },
    Known { extensions: "ml=ocaml mli=ocaml", marks: "dune-project", programs: &["ocamllsp"] },
    Known {
        extensions: "clj=clojure cljs=clojurescript cljc=clojure",
        marks: "deps.edn project.clj",
        programs: &["clojure-lsp"],
    },
    Known {
        extensions: "kt=kotlin kts=kotlin",
        marks: "build.gradle.kts",
        programs: &["kotlin-language-server"],
    },
    Known {
        extensions: "ex=elixir exs=elixir",
        marks: "mix.exs",
        programs: &["elixir-ls", "language_server.sh"],
    },
    Known { extensions: "dart=dart", marks: "pubspec.yaml", programs: &["dart language-server"] },
    Known { extensions: "swift=swift", marks: "Package.swift", programs: &["sourcekit-lsp"] },
];

/// The known languages with the changes of the settings, those of the settings first.
pub(crate) fn languages(configured: &[ConfiguredServer]) -> Vec<Language> {
    let own = configured.iter().filter(|server| !server.disabled && !server.extensions.is_empty());
    let own = own.filter_map(|server| {
        let program = server.command.iter().chain(server.args.iter().flatten()).cloned().collect();
        let with_id = |ending: &String| (ending.clone(), language_id(ending));
        Some(Language {
            extensions: server.extensions.iter().map(with_id).collect(),
            marks: Vec::new(),
            programs: vec![server.command.is_some().then_some(program)?],
        })
    });
    own.chain(KNOWN.iter().map(|known| known_language(known, configured))).collect()
}

fn known_language(known: &Known, configured: &[ConfiguredServer]) -> Language {
    let program = |line: &&str| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let changed = configured.iter().find(|server| server.name == words[0]);
        if changed.is_some_and(|server| server.disabled) {
            return None;
        }
        if let Some(args) = changed.and_then(|server| server.args.clone()) {
            words.truncate(1);
            words.extend(args);
        }
        if let Some(command) = changed.and_then(|server| server.command.clone()) {
            words[0] = command;
        }
        Some(words)
    };
    Language {
        extensions: known
            .extensions
            .split_ascii_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(ending, id)| (ending.to_owned(), id.to_owned()))
            .collect(),
        marks: known.marks.split(' ').map(str::to_owned).collect(),
        programs: known.programs.iter().filter_map(program).collect(),
    }
}

/// The protocol's name of the language of files with this ending.
fn language_id(ending: &str) -> String {
    let pairs = KNOWN.iter().flat_map(|known| known.extensions.split_ascii_whitespace());
    let known = pairs.filter_map(|pair| pair.split_once('=')).find(|(known, _)| *known == ending);
    known.map_or(ending, |(_, id)| id).to_owned()
}

impl Language {
    /// The protocol's name of the language of a file; `None`: it is not one of these.
    pub(crate) fn id_of(&self, path: &Path) -> Option<&str> {
        let ending = path.extension()?.to_str()?;
        self.extensions.iter().find(|(known, _)| known == ending).map(|(_, id)| id.as_str())
    }

    /// The first of its programs that is installed, with its arguments.
    pub(crate) fn installed(&self, options: &Options) -> Option<(PathBuf, &[String])> {
        self.programs.iter().find_map(|words| {
            let (program, arguments) = words.split_first()?;
            Some((find_program(program, &options.search_path)?, arguments))
        })
    }

    /// Whether a folder, or one directly below it, looks like a project of this language.
    pub(crate) fn is_at_home_in(&self, folder: &Path) -> bool {
        /// More entries of a folder are not looked at.
        const MOST_ENTRIES: usize = 500;
        if self.has_mark(folder) {
            return true;
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).any(|folder| self.has_mark(&folder))
    }

    fn has_mark(&self, folder: &Path) -> bool {
        self.marks.is_empty() || self.marks.iter().any(|mark| folder.join(mark).is_file())
    }

    /// The folder that a server for this file is started in: the workspace folder where that is a project, else the
    /// nearest one above the file that is.
    pub(crate) fn project_of(&self, path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
        let root = roots.iter().find(|root| path.starts_with(root)).or(roots.first())?;
        if self.has_mark(root) || !path.starts_with(root) {
            return Some(root.clone());
        }
        let above = path.ancestors().skip(1).take_while(|folder| *folder != root);
        Some(above.into_iter().find(|folder| self.has_mark(folder)).unwrap_or(root).to_owned())
    }
}

fn find_program(program: &str, search_path: &[PathBuf]) -> Option<PathBuf> {
    let folders = search_path.iter().filter(|folder| folder.is_absolute());
    let path = std::env::join_paths(folders).ok()?;
    match platform::programs::find(program.as_ref(), Some(&path), None, Path::new("")) {
        Found::Program(path) => Some(path),
        Found::NotExecutable | Found::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_known_programs_and_add_others() {
        let server = |name: &str| ConfiguredServer { name: name.to_owned(), ..ConfiguredServer::default() };
        let configured = [
            ConfiguredServer { disabled: true, ..server("gopls") },
            ConfiguredServer { args: Some(vec!["--lsp".to_owned()]), ..server("clangd") },
            ConfiguredServer {
                command: Some("tyls".to_owned()),
                extensions: vec!["py".to_owned(), "typ".to_owned()],
                ..server("mine")
            },
        ];
        let all = languages(&configured);
        let of = |name: &str| all.iter().find(|language| language.id_of(Path::new(name)).is_some()).unwrap();
        assert_eq!(of("a.go").programs, Vec::<Vec<String>>::new());
        assert_eq!(of("a.c").programs, [["clangd", "--lsp"]]);
        assert_eq!(of("a.py").programs, [["tyls"]]);
        assert_eq!(of("a.py").id_of(Path::new("a.py")), Some("python"));
        assert_eq!(of("a.rs").programs, [["rust-analyzer"]]);
    }

    #[test]
    fn the_project_of_a_file_is_the_workspace_or_the_nearest_mark() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        std::fs::create_dir_all(root.join("web/src/deep")).unwrap();
        std::fs::write(root.join("web/package.json"), "{}").unwrap();
        let all = languages(&[]);
        let script = all.iter().find(|language| language.id_of(Path::new("a.ts")).is_some()).unwrap();
        let roots = [root.clone()];
        let project = |file: &str| script.project_of(&root.join(file), &roots).unwrap();
        assert_eq!(project("web/src/deep/a.ts"), root.join("web"));
        assert_eq!(project("other/a.ts"), root);
        assert!(script.is_at_home_in(&root));
        std::fs::write(root.join("package.json"), "{}").unwrap();
        assert_eq!(project("web/src/deep/a.ts"), root);
    }
}
