//! Hostile repositories against the real git: what only looks runs nothing of theirs and reads nothing elsewhere.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::kit::{Bench, text};

/// Every kind of command that runs without being asked.
const LOOKS: &[&str] = &[
    "git status",
    "git status --short",
    "git diff",
    "git diff HEAD",
    "git diff --cached",
    "git log -p -3",
    "git show",
    "git show HEAD:file.txt",
    "git blame file.txt",
    "git grep word",
    "git ls-files -m",
    "git ls-files --stage",
    "git stash list",
    "git branch -a",
    "git remote -v",
    "git describe --always",
    "git rev-parse HEAD",
    "git reflog show",
    "git diff-tree -p HEAD",
    "timeout 20 git diff",
    "git status && git diff | head -n 50",
];

struct Hostile {
    bench: Bench,
    mark: PathBuf,
    program: String,
}

impl Hostile {
    /// A repository with a commit and a change that git has to look at.
    fn new() -> Self {
        let bench = Bench::new();
        let base = bench.folder.path().canonicalize().unwrap();
        let mark = base.join("ran");
        let program = base.join("program.sh");
        std::fs::write(
            &program,
            format!("#!/bin/sh\ntouch {}\ncat \"$@\" 2>/dev/null < /dev/null\n", mark.display()),
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let hostile = Self { bench, mark, program: program.display().to_string() };
        hostile.make_repository("");
        hostile
    }

    fn make_repository(&self, folder: &str) {
        let line = "git init -q . && echo word > file.txt && git add file.txt && git commit -qm first && \
                    echo word2 > file.txt && git add file.txt && git commit -qm second && echo word3 > file.txt";
        std::fs::create_dir_all(self.bench.root.join(folder)).unwrap();
        self.sh(folder, line);
    }

    /// Runs a line as a person would, without any of the tools.
    fn sh(&self, folder: &str, line: &str) {
        let line = line.replace("PROGRAM", &self.program);
        let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let output = Command::new("timeout")
            .args(["30", "bash"])
            .args(["-c", &line])
            .stdin(std::process::Stdio::null())
            .current_dir(self.bench.root.join(folder))
            .envs(identity.map(|name| (name, "test")))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        let _ = output;
    }

    /// The repository is hostile to plain git in `folder`, and harmless to the tools.
    async fn check(&self, name: &str, folder: &str, proof: &str) {
        self.sh(folder, proof);
        assert!(self.mark.exists(), "{name}: plain git runs nothing, so this shows nothing");
        for look in LOOKS {
            self.sh(folder, "touch file.txt");
            let _ = std::fs::remove_file(&self.mark);
            let directory = if folder.is_empty() { "." } else { folder };
            let here = json!({"command": look, "working_directory": directory});
            let there = json!({"command": format!("cd {directory} && {look}")});
            // Each command once, and some of them after a change of the folder.
            let again = ["git status", "git diff"].contains(look).then_some(there);
            for input in std::iter::once(here).chain(again) {
                let review = self.bench.review("shell_command", input.clone()).unwrap();
                assert!(review.must_ask.is_none(), "{name}: {look}: {review:?}");
                let result = self.bench.run("shell_command", input).await;
                assert!(!self.mark.exists(), "{name}: {look} ran the program: {}", text(&result));
            }
        }
    }
}

#[tokio::test]
async fn settings_of_a_repository_run_nothing() {
    for (name, setup, proof) in [
        ("fsmonitor", "git config core.fsmonitor PROGRAM", "git status"),
        ("external diff", "git config diff.external PROGRAM", "git diff"),
        ("a continued line", "printf '[diff]\\n\\texternal = \\\\\\n PROGRAM\\n' >> .git/config", "git diff"),
        (
            "an include",
            "printf '[diff]\\n\\texternal = PROGRAM\\n' > .git/more && git config include.path more",
            "git diff",
        ),
        (
            "text conversion",
            "git config diff.x.textconv PROGRAM && echo '* diff=x' > .git/info/attributes",
            "git diff",
        ),
        (
            "a kind of difference",
            "git config diff.x.command PROGRAM && echo '* diff=x' > .gitattributes",
            "git diff",
        ),
        (
            "a clean filter",
            "git config filter.x.clean PROGRAM && echo '* filter=x' > .git/info/attributes",
            "touch file.txt; git status",
        ),
        (
            "a required filter process with an odd name",
            "git config 'filter.a=b c.process' PROGRAM && git config 'filter.a=b c.required' true && \
             git config filter.x.process PROGRAM && echo '* filter=x' > .gitattributes",
            "touch file.txt; git diff",
        ),
        (
            "a hook",
            "printf '#!/bin/sh\\nPROGRAM\\n' > .git/hooks/post-index-change && chmod +x .git/hooks/*",
            // Whether a look alone writes the index depends on the clock.
            "git add file.txt; touch file.txt; git status",
        ),
    ] {
        let hostile = Hostile::new();
        hostile.sh("", setup);
        hostile.check(name, "", proof).await;
    }
}

#[tokio::test]
async fn repositories_inside_of_repositories_run_nothing() {
    let hostile = Hostile::new();
    hostile.make_repository("sub");
    hostile.sh("", "git add sub && git commit -qm sub && printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./x\\n\\tignore = none\\n' > .gitmodules");
    hostile.sh("", "git config submodule.sub.ignore none && git config status.submoduleSummary true && git config diff.submodule diff");
    hostile.sh("sub", "git config core.fsmonitor PROGRAM && git config diff.external PROGRAM && git config filter.x.clean PROGRAM && echo '* filter=x' > .git/info/attributes && touch file.txt");
    hostile.check("an embedded submodule", "", "git status; git diff").await;

    let hostile = Hostile::new();
    hostile.sh("", "mkdir -p inner/.git && cp file.txt inner/ && git config core.fsmonitor PROGRAM && git config diff.external PROGRAM");
    hostile.check("an empty .git", "inner", "git status; git diff").await;

    let hostile = Hostile::new();
    hostile.sh(
        "",
        "git config diff.external PROGRAM && mv .git 'store  ' && printf 'gitdir: store  \\n' > .git",
    );
    hostile.check("a name with blanks", "", "git diff").await;
}

#[tokio::test]
async fn a_missing_object_is_not_fetched() {
    let hostile = Hostile::new();
    hostile.sh(
        "",
        "git config protocol.ext.allow always && git config extensions.partialClone origin && \
         git config core.repositoryFormatVersion 1 && git config remote.origin.promisor true && \
         git config remote.origin.url 'ext::PROGRAM'",
    );
    let missing = "git cat-file -p 1111111111111111111111111111111111111111";
    hostile.sh("", missing);
    assert!(hostile.mark.exists(), "plain git fetches nothing, so this shows nothing");
    std::fs::remove_file(&hostile.mark).unwrap();
    hostile.bench.run("shell_command", json!({"command": missing})).await;
    assert!(!hostile.mark.exists());
}

#[tokio::test]
async fn a_repository_that_leads_elsewhere_is_not_read() {
    for setup in [
        "git config core.worktree ../../outside",
        "git config core.worktree ../..",
        "rm -rf .git && printf 'gitdir: ../outside/.git\\n' > .git",
        "printf '../../outside/.git\\n' > .git/commondir",
    ] {
        let hostile = Hostile::new();
        let outside = hostile.bench.folder.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        hostile.sh("../outside", "git init -q . && echo CANARY > file.txt && git add . && git commit -qm CANARY && echo CANARY2 > file.txt");
        std::fs::write(hostile.bench.folder.path().join("file.txt"), "CANARY\n").unwrap();
        hostile.sh("", setup);
        for look in LOOKS.iter().filter(|look| !look.contains("describe")) {
            let result = hostile.bench.run("shell_command", json!({"command": look})).await;
            assert!(!text(&result).contains("CANARY"), "{setup}: {look}: {}", text(&result));
        }
    }
}

#[tokio::test]
async fn ordinary_repositories_work_as_before() {
    let hostile = Hostile::new();
    for look in LOOKS {
        hostile.bench.good("shell_command", json!({"command": look})).await;
    }
    let diff = hostile.bench.good("shell_command", json!({"command": "git diff"})).await;
    assert!(diff.contains("+word3"), "{diff}");

    // A linked working tree and a submodule whose repositories are outside the workspace.
    let bench = Bench::new();
    let base: &Path = bench.folder.path();
    let line = format!(
        "cd {} && git init -q main && cd main && git -c user.name=a -c user.email=a commit -q --allow-empty -m first && \
         rmdir {root} && git worktree add -q {root} && cd .. && git init -q lib && cd lib && \
         git -c user.name=a -c user.email=a commit -q --allow-empty -m first && cd ../main && \
         git -c protocol.file.allow=always submodule --quiet add ../lib lib",
        base.display(),
        root = bench.root.display()
    );
    assert!(
        Command::new("bash")
            .args(["-c", &line])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap()
            .success()
    );
    bench.good("shell_command", json!({"command": "git status"})).await;
    let mut submodule = bench;
    submodule.scope.roots = vec![submodule.folder.path().canonicalize().unwrap().join("main/lib")].into();
    submodule.good("shell_command", json!({"command": "git log -1"})).await;
}
