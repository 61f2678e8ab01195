//! Import circles: files of one crate that need each other, directly or by way of others.
//!
//! An arrow goes from a file to another file of its crate where the first names something that the second defines: by
//! `crate::…`, `super::…` or `self::…`, by a module declared or imported in the file, in `use` lines and in the code.
//! A name that a file only hands on (`pub use`) counts for the file that defines it, and handing it on draws no arrow.
//! Tests are left out. A circle is a strongly connected component of more than one file. `xtask/circles.txt` has one
//! `crate files largest` a line: the files in circles and the largest circle. Both may only shrink; `all` is the share of
//! all files in percent, rounded up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::paths::{self, Paths};

/// The files of one crate, and the arrows between them.
pub struct Imports {
    /// Paths below `src`, sorted.
    pub files: Vec<String>,
    /// By the places in `files`.
    pub arrows: Vec<BTreeSet<usize>>,
}

/// Circles that have grown, one line each, and lines of `xtask/circles.txt` that are larger than the truth.
pub fn problems(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("xtask/circles.txt")).unwrap_or_default();
    let mut granted: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let mut problems = Vec::new();
    for (name, now) in table(root) {
        match granted.remove(name.as_str()) {
            Some(known) if known == now => {}
            Some(known) => problems.push(format!(
                "import circles of {name}: {now}, and xtask/circles.txt says {known}. The numbers may only shrink: \
                 untangle what grew (`xtask circles` lists the files), or lower the line"
            )),
            None => problems.push(format!(
                "import circles of {name}: {now}, and xtask/circles.txt has no such line. Untangle them: `xtask circles` \
                 lists the files"
            )),
        }
    }
    let gone =
        |name: &&str| format!("xtask/circles.txt names {name}, which has no import circles: remove the line");
    problems.extend(granted.keys().map(gone));
    problems
}

/// The lines of `xtask/circles.txt` as they are true now.
pub fn table(root: &Path) -> Vec<(String, String)> {
    let (mut all, mut in_circles) = (0, 0);
    let mut lines = Vec::new();
    for (name, imports) in crates(root) {
        let circles = imports.circles();
        let files: usize = circles.iter().map(Vec::len).sum();
        all += imports.files.len();
        in_circles += files;
        if let Some(largest) = circles.iter().map(Vec::len).max() {
            lines.push((name, format!("{files} {largest}")));
        }
    }
    lines.push(("all".to_owned(), format!("{}%", (in_circles * 100).div_ceil(all.max(1)))));
    lines
}

/// Every circle with its files, for people.
pub fn describe(root: &Path) -> String {
    let mut text = String::new();
    for (name, imports) in crates(root) {
        for circle in imports.circles() {
            text.push_str(&format!("{name}: {} of {} files\n", circle.len(), imports.files.len()));
            for file in &circle {
                let inside = imports.arrows[*file].iter().filter(|to| circle.contains(to));
                let names: Vec<&str> = inside.map(|to| imports.files[*to].as_str()).collect();
                text.push_str(&format!("  {} -> {}\n", imports.files[*file], names.join(", ")));
            }
        }
    }
    text
}

/// The crates of the repository, by the names of their folders.
fn crates(root: &Path) -> BTreeMap<String, Imports> {
    let mut found = BTreeMap::new();
    for folder in ["crates", "interfaces"] {
        for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let source = entry.path().join("src");
            if source.is_dir() {
                found.insert(entry.file_name().to_string_lossy().into_owned(), Imports::read(&source));
            }
        }
    }
    found
}

impl Imports {
    /// Reads the sources of one crate.
    pub fn read(source: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut folders = vec![source.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(source).unwrap_or(&path).display().to_string();
                if path.is_dir() {
                    folders.push(path);
                } else if name.ends_with(".rs")
                    && let Ok(text) = std::fs::read_to_string(&path)
                {
                    files.insert(name, text);
                }
            }
        }
        Self::of(&files)
    }

    /// The same from texts by their paths below `src`.
    pub fn of(texts: &BTreeMap<String, String>) -> Self {
        let files: Vec<String> = texts.keys().cloned().collect();
        let read: Vec<Paths> = texts.values().map(|text| paths::read(text)).collect();
        let modules: HashMap<Vec<String>, usize> =
            (0..).zip(&files).map(|(at, file)| (module_of(file), at)).collect();
        let tree = Tree { modules, read: &read };
        let arrows = (0..).zip(&files).map(|(at, file)| tree.arrows_of(at, &module_of(file))).collect();
        Self { files, arrows }
    }

    /// The strongly connected components of more than one file, largest first.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let reach: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|from| self.reach(from)).collect();
        let mut circles = Vec::new();
        let mut placed = BTreeSet::new();
        for from in 0..self.files.len() {
            if placed.contains(&from) || !reach[from].contains(&from) {
                continue;
            }
            let circle: Vec<usize> =
                reach[from].iter().copied().filter(|to| reach[*to].contains(&from)).collect();
            placed.extend(circle.iter().copied());
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    /// The files that can be reached by at least one arrow.
    fn reach(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            open.extend(self.arrows[at].iter().copied().filter(|to| seen.insert(*to)));
        }
        seen
    }
}

/// The module that a file holds: `a/mod.rs` and `a.rs` are `a`; the root of a crate is empty.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The modules of a crate, and the paths that each of its files names.
struct Tree<'a> {
    modules: HashMap<Vec<String>, usize>,
    read: &'a [Paths],
}

impl Tree<'_> {
    fn arrows_of(&self, at: usize, module: &[String]) -> BTreeSet<usize> {
        let Paths { imported, used, .. } = &self.read[at];
        let paths = imported.iter().map(|import| &import.path).chain(used);
        let found = paths.filter_map(|path| self.file_of(at, module, path, 0));
        found.filter(|to| *to != at).collect()
    }

    /// The file that defines what a path in the file `at` names; `None` where it is of another crate, or a module.
    fn file_of(&self, at: usize, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        // Names that are handed on in a circle are nowhere.
        if depth > 8 {
            return None;
        }
        let absolute = self.absolute(at, module, path, depth)?;
        let mut here: &[String] = &[];
        for end in 1..=absolute.len() {
            if self.modules.contains_key(&absolute[..end]) {
                here = &absolute[..end];
                continue;
            }
            let file = *self.modules.get(here)?;
            let handed_on = self.read[file].handed_on.iter().find(|import| import.name == absolute[end - 1]);
            return match handed_on {
                Some(import) => {
                    let rest = [&import.path[..], &absolute[end..]].concat();
                    // A name of another crate is defined by nobody here.
                    self.file_of(file, here, &rest, depth + 1)
                }
                None => Some(file),
            };
        }
        None
    }

    /// A path from the root of the crate. `None`: it begins in another crate.
    fn absolute(&self, at: usize, module: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut base = module.to_vec();
        match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => {}
            "super" => {
                base.pop()?;
                if rest.first().is_some_and(|next| next == "super") {
                    return self.absolute(at, &base, rest, depth);
                }
            }
            name => {
                base.push(name.to_owned());
                if !self.modules.contains_key(&base) {
                    let import = self.read[at].imported.iter().find(|import| import.name == name)?;
                    if depth > 8 || import.path.first().is_some_and(|first| first == name) {
                        return None;
                    }
                    let path = [&import.path[..], rest].concat();
                    return self.absolute(at, module, &path, depth + 1);
                }
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let imports = Imports::of(&texts);
        let names = |circle: Vec<usize>| circle.into_iter().map(|at| imports.files[at].clone()).collect();
        imports.circles().into_iter().map(names).collect()
    }

    #[test]
    fn files_that_need_each_other_are_a_circle() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\nuse a::One;\n");
        let a = ("a.rs", "use crate::b::Two;\npub struct One;\n");
        for (b, expected) in [
            ("use super::a::One;", vec![vec!["a.rs", "b.rs"]]),
            ("use crate::{a::{self, One as First}};", vec![vec!["a.rs", "b.rs"]]),
            ("fn f() -> u8 { crate::a::one() }", vec![vec!["a.rs", "b.rs"]]),
            ("use crate::a;\nfn f() -> u8 { a::one() }", vec![vec!["a.rs", "b.rs"]]),
            ("use crate::a;", vec![]),
            ("// crate::a::One\nconst A: &str = \"crate::a::One\";", vec![]),
            ("use other::a::One;", vec![]),
            ("struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}", vec![]),
        ] {
            assert_eq!(circles(&[lib, a, ("b.rs", b)]), expected, "{b}");
        }
    }

    /// `b` needs what `c` defines, whichever file hands it on.
    #[test]
    fn a_name_that_is_handed_on_counts_for_the_file_that_defines_it() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let a = ("a/mod.rs", "mod c;\npub(crate) use c::{Deep, other as renamed};\nuse crate::b::B;\n");
        let c = ("a/c.rs", "pub struct Deep;\n");
        assert!(circles(&[lib, a, c, ("b.rs", "use crate::a::Deep;\npub struct B;\n")]).is_empty());
        assert!(circles(&[lib, a, c, ("b.rs", "fn f() { crate::a::renamed() }\n")]).is_empty());
        let back = ("a/c.rs", "use crate::b::B;\npub struct Deep;\n");
        let expected = [["a/c.rs", "b.rs"]];
        assert_eq!(circles(&[lib, a, back, ("b.rs", "use crate::a::Deep;\npub struct B;\n")]), expected);
    }
}
