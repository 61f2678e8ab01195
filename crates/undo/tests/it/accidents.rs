//! Fifty accidents, each run by a real shell in a workspace with everything that people miss.

use std::fs;
use std::path::Path;

use crate::{Bench, Tree, sh};

const SETUP: &str = r#"
git init -q . && git config user.name Ada && git config user.email ada@example.org
mkdir -p src/deep/er docs empty build && printf 'fn main() {}\n' > src/main.rs && printf 'a\nb\nc\n' > src/deep/er/list.txt
printf '# Notes\n' > docs/notes.md && printf 'build artifacts of mine\n' > build/keep.txt
printf '.env\n*.sqlite\nlogs/\n' > .gitignore
git add -A && git commit -qm one && printf 'fn main() { two() }\n' > src/main.rs && git commit -qam two
git branch feature && git tag v1
printf 'stashed\n' >> docs/notes.md && git stash -q && printf 'stashed too\n' >> src/main.rs && git stash -q
printf 'SECRET=1\n' > .env && printf 'SQLite format 3\000\001\377' > local.sqlite && mkdir logs && printf 'log\n' > logs/a.log
printf 'staged\n' > staged.txt && git add staged.txt && printf 'dirty\n' >> docs/notes.md
printf 'new\n' > 'untracked file.txt' && printf '#!/bin/sh\n' > run.sh && chmod 755 run.sh && printf 'ro\n' > readonly && chmod 444 readonly
ln -s src/main.rs link && ln -s /etc/hostname outside && ln -s nowhere dangling
mkdir -p web/node_modules && printf '{}\n' > web/package.json && printf 'x\n' > web/node_modules/made-by-npm
printf 'one\n' > a.txt && printf 'two\n' > b.txt && tar -cf archive.tar a.txt b.txt && printf 'newer\n' > a.txt
"#;

const ACCIDENTS: [&str; 50] = [
    r#"DIR=; rm -rf "$PWD/$DIR"/*"#,
    r#"DIR=; rm -rf ./$DIR* ./.[!.]*"#,
    "rm -rf .git",
    "rm -rf src docs",
    "rm -f .env local.sqlite",
    r#"rm -rf "$PWD""#,
    "rm -f -- *.txt",
    "rmdir empty; rm -rf build",
    "git clean -fd",
    "git clean -fdx",
    "git clean -ffdX",
    "git reset --hard",
    "git reset --hard HEAD~1",
    "git reset --hard HEAD~1 && git clean -fdx && git gc -q --prune=now",
    "git checkout -f .",
    "git checkout -f feature -- . ; git checkout -qf HEAD~1",
    "git restore --staged --worktree .",
    "git stash drop",
    "git stash clear && git reflog expire --expire=now --all && git gc -q --prune=now",
    "git stash -u && git stash drop",
    "git branch -D feature; git tag -d v1",
    "git commit -qam 'by mistake'",
    "git commit -q --amend -m 'rewritten' --allow-empty",
    "git rm -qrf src",
    "git update-ref -d HEAD",
    "git checkout -q --orphan other && git rm -qrf .",
    "git switch -q feature 2>/dev/null; git merge -q main master 2>/dev/null; git branch -M feature renamed",
    "git config user.name Mallory; git remote add origin https://example.org/x",
    "find . -name '*.txt' -delete",
    "find . -type f -not -path './.git/*' -delete",
    "find . -mindepth 1 -delete",
    "find . -type f -not -path './.git/*' -exec truncate -s 0 {} +",
    "mv a.txt b.txt",
    "mv -f src/main.rs run.sh",
    "mv src docs/ && mv docs old",
    "for f in *.txt; do mv \"$f\" all.md; done",
    "mv .env /tmp/../$PWD/.env.bak; rm .env.bak",
    "cp -f a.txt b.txt; cp /dev/null local.sqlite",
    "truncate -s 0 src/main.rs docs/notes.md local.sqlite",
    ": > .env; > docs/notes.md",
    "echo oops > src/deep/er/list.txt",
    "cat a.txt > a.txt",
    "sed -i 's/.*//' src/main.rs docs/notes.md .env",
    "sed -i d .gitignore && git add -A",
    "tar -xf archive.tar",
    "tar -cf archive.tar --remove-files src docs",
    "gzip -f a.txt b.txt local.sqlite",
    "dd if=/dev/zero of=local.sqlite bs=1 count=4 2>/dev/null",
    "chmod -R a-w src; chmod 000 .env; chmod -x run.sh",
    "rm link outside dangling; ln -sf /etc link; ln -s .. src/up; rm -rf docs && ln -s /tmp docs",
];

/// Git may keep objects that it added; a build tool makes its folders anew.
fn check_same(script: &str, before: &Tree, after: &Tree) {
    let is_made_anew = |path: &Path| path.starts_with("web/node_modules");
    for (path, state) in before {
        if !is_made_anew(path) {
            assert_eq!(after.get(path), Some(state), "{} after {script}", path.display());
        }
    }
    for path in after.keys() {
        let is_object = path.starts_with(".git/objects");
        assert!(before.contains_key(path) || is_object, "{} was left by {script}", path.display());
    }
}

#[test]
fn every_accident_can_be_undone_and_redone() {
    let model = tempfile::tempdir().unwrap();
    sh(model.path(), SETUP);
    assert!(model.path().join("archive.tar").exists() && model.path().join(".git/refs/stash").exists());
    for script in ACCIDENTS {
        let mut bench = Bench::new();
        sh(&bench.root(), &format!("cp -a {}/. .", model.path().display()));
        let before = bench.tree();
        bench.shell(1, script);
        let broken = bench.tree();
        bench.restart();
        if broken
            .iter()
            .filter(|(path, _)| !path.starts_with("web"))
            .eq(before.iter().filter(|(path, _)| !path.starts_with("web")))
        {
            panic!("{script} did no harm: it proves nothing");
        }
        let outcome = bench.undo(None);
        assert!(outcome.left.is_empty(), "{script}: {:?}", outcome.left);
        check_same(script, &before, &bench.tree());
        let outcome = bench.redo();
        assert!(outcome.left.is_empty(), "redo of {script}: {:?}", outcome.left);
        check_same(script, &broken, &bench.tree());
        bench.undo(None);
        check_same(script, &before, &bench.tree());
        make_removable(&bench.root());
    }
    println!("figure: {} scripted accidents, all undone byte for byte", ACCIDENTS.len());
}

/// A test's folder with folders that must not be written could not be deleted.
fn make_removable(root: &Path) {
    sh(root, "chmod -R u+rwX .");
    assert!(fs::metadata(root).is_ok());
}

/// The repository is above the workspace: its refs, index and stash are recorded all the same.
#[test]
fn git_state_outside_of_the_workspace_comes_back() {
    for workspace in ["src", "../linked"] {
        let bench = Bench::new();
        sh(&bench.root(), SETUP);
        sh(&bench.root(), "git worktree add -q ../linked feature");
        let root = bench.root().join(workspace).canonicalize().unwrap();
        let refs = || fs::read(bench.path(".git/refs/stash")).ok();
        let (before, index) = (refs(), fs::read(bench.path(".git/index")).unwrap());
        let snapshot = bench.store.before_command(&crate::key(1), &[root]).unwrap();
        sh(&bench.root(), "git stash drop && git rm -q --cached staged.txt");
        bench.store.after_command(snapshot).unwrap();
        assert_ne!(refs(), before);
        bench.undo(None);
        assert_eq!(refs(), before, "{workspace}");
        if workspace == "src" {
            assert_eq!(fs::read(bench.path(".git/index")).unwrap(), index);
        }
    }
}
