//! One test for each row of the table in docs/instructions.md, and for what all rows have in common.

use super::*;

struct Project(tempfile::TempDir);

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self) -> InstructionSet {
        read_all(&Folders {
            global: None,
            roots: &[self.root()],
            with_parents: false,
            is_forbidden: &|path| path.ends_with("forbidden.md"),
        })
    }

    /// The names of the files that count from the start.
    fn names(&self) -> Vec<String> {
        let set = self.read();
        let now = set.files.iter().filter(|file| file.globs.is_empty());
        now.map(|file| file.path.strip_prefix(self.root()).unwrap().display().to_string()).collect()
    }

    /// Why a file does not count.
    fn why_not(&self, name: &str) -> String {
        let set = self.read();
        let found = set.left_out.iter().find(|file| file.path.ends_with(name));
        found.map(|file| file.why.clone()).unwrap_or_default()
    }
}

#[test]
fn row_of_the_file_for_all_chats() {
    let project = Project::new(&[
        ("AGENTS.md", "Project."),
        ("home/AGENTS.md", "All chats.\n@more.md"),
        ("home/more.md", "More."),
    ]);
    let global = project.root().join("home/AGENTS.md");
    let (roots, is_forbidden) = ([project.root()], |_: &Path| false);
    let set = read_all(&Folders {
        global: Some(&global),
        roots: &roots,
        with_parents: false,
        is_forbidden: &is_forbidden,
    });
    let texts: Vec<&str> = set.files.iter().map(|file| file.text.lines().next().unwrap()).collect();
    assert_eq!(texts, ["All chats.", "More.", "Project."], "the nearest is last");
}

#[test]
fn row_of_the_folders_above() {
    let project = Project::new(&[("AGENTS.md", "Outer."), ("inner/CLAUDE.md", "Inner.")]);
    let roots = [project.root().join("inner")];
    let texts = |with_parents| {
        let set = read_all(&Folders { global: None, roots: &roots, with_parents, is_forbidden: &|_| false });
        set.files.into_iter().map(|file| file.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(false), ["Inner."]);
    assert_eq!(texts(true), ["Outer.", "Inner."]);
}

#[test]
fn rows_of_agents_and_claude_which_both_count() {
    let project = Project::new(&[("AGENTS.md", "A."), ("CLAUDE.md", "C.")]);
    assert_eq!(project.names(), ["AGENTS.md", "CLAUDE.md"]);
    project.write("CLAUDE.md", "A.\n");
    assert_eq!(project.names(), ["AGENTS.md"]);
    assert!(project.why_not("CLAUDE.md").contains("equal"));
    project.write("CLAUDE.md", "@AGENTS.md\n");
    assert_eq!(project.names(), ["AGENTS.md"]);
    project.write("CLAUDE.md", "Also @AGENTS.md\n");
    assert_eq!(project.names(), ["AGENTS.md", "CLAUDE.md"], "it has words of its own");
    project.write("AGENTS.md", "See @CLAUDE.md");
    project.write("CLAUDE.md", "C.");
    assert_eq!(project.names(), ["AGENTS.md", "CLAUDE.md"]);
    assert!(project.why_not("CLAUDE.md").contains("imports it"));
    std::fs::remove_file(project.root().join("CLAUDE.md")).unwrap();
    platform::symlink(Path::new("AGENTS.md"), &project.root().join("CLAUDE.md")).unwrap();
    assert_eq!(project.names(), ["AGENTS.md"]);
    assert!(project.why_not("CLAUDE.md").contains("link"));
}

#[test]
fn row_of_claude_in_its_hidden_folder() {
    let project = Project::new(&[(".claude/CLAUDE.md", "Hidden.")]);
    assert_eq!(project.names(), [".claude/CLAUDE.md"]);
    project.write("CLAUDE.md", "C.");
    assert_eq!(project.names(), ["CLAUDE.md"]);
}

#[test]
fn row_of_claude_local() {
    let project = Project::new(&[("CLAUDE.local.md", "Mine."), ("GEMINI.md", "G.")]);
    assert_eq!(project.names(), ["CLAUDE.local.md", "GEMINI.md"], "it is neither of the two");
    project.write("AGENTS.md", "A.");
    assert_eq!(project.names(), ["AGENTS.md", "CLAUDE.local.md"]);
}

#[test]
fn rows_of_other_assistants_count_where_neither_of_the_two_exists() {
    let project = Project::new(&[
        ("GEMINI.md", "G."),
        (".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nCursor."),
        (".github/copilot-instructions.md", "Copilot."),
        (".github/instructions/all.instructions.md", "---\napplyTo: \"**\"\n---\nAll."),
    ]);
    let others = [
        "GEMINI.md",
        ".cursor/rules/a.mdc",
        ".github/copilot-instructions.md",
        ".github/instructions/all.instructions.md",
    ];
    assert_eq!(project.names(), others);
    project.write("AGENTS.md", "  \n");
    assert_eq!(project.names(), others, "an empty file says nothing");
    for own in ["AGENTS.md", "CLAUDE.md"] {
        project.write(own, "Own.");
        assert_eq!(project.names(), [own]);
        for other in ["GEMINI.md", ".cursor/rules", ".github/copilot-instructions.md", ".github/instructions"]
        {
            assert!(project.why_not(other).contains("AGENTS.md or CLAUDE.md"), "{other}");
        }
        std::fs::remove_file(project.root().join(own)).unwrap();
    }
}

#[test]
fn row_of_rules_for_some_files() {
    let project = Project::new(&[
        (".cursor/rules/rust.mdc", "---\nglobs: *.rs\n---\nRust."),
        (".cursor/rules/asked.mdc", "---\ndescription: about releases\n---\nReleases."),
        (".github/instructions/ts.instructions.md", "---\napplyTo: \"**/*.ts\"\n---\nTypes."),
    ]);
    assert!(project.names().is_empty(), "the model is given them with the first such file");
    let globs: Vec<Vec<String>> = project.read().files.into_iter().map(|file| file.globs).collect();
    assert_eq!(globs, [["**/*.rs"], ["**/*.ts"]]);
    assert!(project.why_not("asked.mdc").contains("does not say"));
}

#[test]
fn row_of_nested_files() {
    let project = Project::new(&[
        ("AGENTS.md", "Root."),
        ("sub/AGENTS.md", "Sub.\n@../shared.md"),
        ("shared.md", "Shared."),
        ("sub/deep/CLAUDE.md", "Root."),
    ]);
    let root = project.root();
    let folders = [root.join("sub"), root.join("sub/deep")];
    let set = read_nested(&root, &folders, &project.read(), &|_| false);
    let names: Vec<&Path> = set.files.iter().map(|file| file.path.strip_prefix(&root).unwrap()).collect();
    assert_eq!(
        names,
        [Path::new("sub/AGENTS.md"), Path::new("shared.md")],
        "a text that counts is not repeated"
    );
}

#[test]
fn imports_end_at_a_depth_and_at_the_border_of_the_project() {
    let chain: Vec<(String, String)> =
        (0..8).map(|at| (format!("f{at}.md"), format!("Text {at}. @f{}.md", at + 1))).collect();
    let project = Project::new(&[(
        "AGENTS.md",
        "Start @f0.md @AGENTS.md @someone @../out.md @~/x.md @.env @forbidden.md @link.md",
    )]);
    chain.iter().for_each(|(name, text)| project.write(name, text));
    project.write(".env", "KEY=1");
    project.write("forbidden.md", "No.");
    std::fs::write(project.0.path().join("out.md"), "OUT").unwrap();
    platform::symlink(Path::new("../out.md"), &project.root().join("link.md")).unwrap();
    assert_eq!(project.names(), ["AGENTS.md", "f0.md", "f1.md", "f2.md", "f3.md", "f4.md"]);
    for (name, why) in [
        ("f5.md", "5 deep"),
        ("../out.md", "outside"),
        ("~/x.md", "outside"),
        (".env", "secrets"),
        ("forbidden.md", "deny rule"),
        ("link.md", "leads out"),
    ] {
        assert!(project.why_not(name).contains(why), "{name}: {}", project.why_not(name));
    }
}

#[test]
fn all_texts_together_have_a_limit() {
    let project = Project::new(&[
        ("AGENTS.md", &"a".repeat(LIMIT - 10)),
        ("CLAUDE.md", &"é".repeat(40)),
        ("CLAUDE.local.md", "Local."),
    ]);
    let set = project.read();
    assert!(set.is_cut);
    assert_eq!(project.names(), ["AGENTS.md", "CLAUDE.md"]);
    assert!(set.files[1].text.starts_with("éé") && set.files[1].text.ends_with("32 kB in all)"));
    assert!(project.why_not("CLAUDE.local.md").contains("32 kB"));
}

#[test]
fn a_note_goes_to_a_file_that_counts() {
    let project = Project::new(&[("CLAUDE.local.md", "Mine.")]);
    let root = project.root();
    assert_eq!(instruction_file(&root), None);
    project.write(".cursor/rules/a.md", "Cursor.");
    assert_eq!(instruction_file(&root), Some(root.join(".cursor/rules")));
    project.write("GEMINI.md", "G.");
    assert_eq!(instruction_file(&root), Some(root.join("GEMINI.md")));
    project.write("CLAUDE.md", "C.");
    assert_eq!(instruction_file(&root), Some(root.join("CLAUDE.md")));
}

#[test]
fn a_link_gives_no_secret_away() {
    let project =
        Project::new(&[(".env", "KEY=1"), ("forbidden.md", "No."), (".cursor/rules/plain.md", "Plain.")]);
    let root = project.root();
    platform::symlink(Path::new("../../.env"), &root.join(".cursor/rules/env.md")).unwrap();
    platform::symlink(Path::new("../../forbidden.md"), &root.join(".cursor/rules/no.md")).unwrap();
    assert_eq!(project.names(), [".cursor/rules/plain.md"]);
    platform::symlink(Path::new(".env"), &root.join("AGENTS.md")).unwrap();
    assert_eq!(project.names(), [".cursor/rules/plain.md"]);
    assert!(project.why_not("AGENTS.md").contains("secrets"));
}
