//! No command leaves anything behind that makes git run a program, and git's own work goes on.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use process::sandbox::{Allowance, GitAccess};
use process::{End, Finished, Spawn};
use tokio::io::AsyncBufReadExt;
use tokio_util::sync::CancellationToken;

use crate::kit::World;

/// A repository with one commit, and a program that says that it ran.
struct Shop {
    world: World,
    evil: PathBuf,
    ran: PathBuf,
}

impl Shop {
    /// `None`: the whole wall cannot be built here.
    async fn new() -> Option<Self> {
        let world = World::new();
        if !world.is_whole().await {
            return None;
        }
        let (evil, ran) = (world.outside.join("evil"), world.outside.join("ran"));
        fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
        fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
        let shop = Self { world, evil, ran };
        shop.outside("git init -q -b main . && echo one > file && git add file && git commit -qm one").await;
        Some(shop)
    }

    /// As the user runs it: outside of any sandbox.
    async fn outside(&self, line: &str) -> String {
        let finished = self.spawn(line).run(&CancellationToken::new()).await.unwrap();
        finished.stdout.text()
    }

    fn spawn(&self, line: &str) -> Spawn {
        Spawn::shell(line)
            .directory(&self.world.workspace)
            .env("HOME", &self.world.home)
            .env("EVIL", &self.evil)
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .merge_stderr()
    }

    async fn run_as(&self, line: &str, allowance: Allowance) -> (Finished, String) {
        let spawn = self.spawn(line).confine(self.world.sandbox.clone(), allowance);
        let finished = spawn.run(&CancellationToken::new()).await.unwrap();
        let text = finished.stdout.text();
        (finished, text)
    }

    async fn run(&self, line: &str) -> (Finished, String) {
        self.run_as(line, Allowance { git: GitAccess::Copy, ..Allowance::default() }).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.workspace.join(name)
    }
}

/// What people and editors run in a folder, without being asked.
const LOOK: &str = "git status; git diff; git log -1; git add -A -n .; git stash list; git ls-files -m; git branch; \
                    git commit -q --allow-empty -m look";

/// Everything that git could be made to obey, each by a command that git's work needs the copy for.
const ATTACKS: &[(&str, &str)] = &[
    (
        "commondir",
        "cp -r .git other && git -C other config core.fsmonitor $EVIL; echo ../other > .git/commondir",
    ),
    ("a hook", "cp $EVIL .git/hooks/pre-commit"),
    ("the settings", "git config core.fsmonitor $EVIL || echo \"[core] fsmonitor = $EVIL\" >> .git/config"),
    ("settings by renaming", "echo \"[core] fsmonitor = $EVIL\" > c; mv -f c .git/config"),
    ("settings of a worktree", "echo \"[core] fsmonitor = $EVIL\" > .git/config.worktree"),
    ("another repository in place of it", "mv .git g && git init -q . && git config core.fsmonitor $EVIL"),
    (
        "a bare layout",
        "git init -q --bare src && git -C src config core.fsmonitor $EVIL && git -C src config core.bare false && git -C src config core.worktree .",
    ),
    (
        "a repository in node_modules",
        "echo '{}' > package.json; git init -q node_modules/x; git -C node_modules/x config core.fsmonitor $EVIL",
    ),
    ("a repository in target", "git init -q target/x; cp $EVIL target/x/.git/hooks/pre-commit"),
    (
        "a repository in .venv",
        "mkdir -p .venv; touch .venv/pyvenv.cfg; git init -q .venv/x; git -C .venv/x config core.fsmonitor $EVIL",
    ),
    (
        "a file .git",
        "git init -q src; git -C src config core.fsmonitor $EVIL; mv src/.git store; echo 'gitdir: ../store' > src/.git",
    ),
    (
        "a link .git",
        "git init -q src; git -C src config core.fsmonitor $EVIL; mv src/.git store; ln -s ../store src/.git",
    ),
    (
        "a file .git to a cache",
        "git init -q $TMPDIR/s; git -C $TMPDIR/s config core.fsmonitor $EVIL; mkdir -p src; echo \"gitdir: $TMPDIR/s/.git\" > src/.git",
    ),
    ("a submodule's settings", "echo \"[core] fsmonitor = $EVIL\" >> .git/modules/lib/config"),
    (
        "a submodule's commondir",
        "cp -r .git other; git -C other config core.fsmonitor $EVIL; echo ../../../other > .git/modules/lib/commondir",
    ),
    (
        "a new submodule",
        "mkdir -p .git/modules/new/objects .git/modules/new/refs src; echo 'ref: refs/heads/x' > .git/modules/new/HEAD; echo \"[core] fsmonitor = $EVIL\" > .git/modules/new/config; echo 'gitdir: ../.git/modules/new' > src/.git",
    ),
    (
        "a worktree's commondir",
        "cp -r .git other; git -C other config core.fsmonitor $EVIL; mkdir -p .git/worktrees/src src; echo 'ref: refs/heads/main' > .git/worktrees/src/HEAD; echo $PWD/other > .git/worktrees/src/commondir; echo $PWD/src/.git > .git/worktrees/src/gitdir; echo 'gitdir: ../.git/worktrees/src' > src/.git",
    ),
    (
        "steps of a rebase",
        "mkdir .git/rebase-merge; echo \"exec $EVIL\" > .git/rebase-merge/git-rebase-todo; echo refs/heads/main > .git/rebase-merge/head-name; git rev-parse HEAD | tee .git/rebase-merge/onto > .git/rebase-merge/orig-head; touch .git/rebase-merge/interactive",
    ),
    ("attributes", "echo '* filter=evil' > .git/info/attributes"),
];

/// A submodule's repository, and settings of worktrees.
const SETUP: &str = "git init -q --bare .git/modules/lib; git config extensions.worktreeConfig true";

#[tokio::test]
async fn nothing_that_a_command_leaves_makes_git_run_it() {
    for (name, line) in ATTACKS {
        let Some(shop) = Shop::new().await else { return };
        shop.outside(SETUP).await;
        let (_, text) = shop.run(&format!("{line}; make -s test; git commit -q --allow-empty -m fix")).await;
        for folder in [".", "src", "node_modules/x", "target/x", ".venv/x", ".git/modules/lib"] {
            shop.outside(&format!("cd {folder} && {{ {LOOK}; }}")).await;
        }
        shop.outside("git rebase --continue").await;
        assert!(!shop.ran.exists(), "{name}: {text}");
    }
}

/// The attacks are real: without the wall each of them runs the program.
#[tokio::test]
async fn without_the_wall_the_program_runs() {
    let mut tame = Vec::new();
    for (name, line) in ATTACKS {
        let Some(shop) = Shop::new().await else { return };
        shop.outside(SETUP).await;
        shop.outside(line).await;
        for folder in [".", "src", "node_modules/x", "target/x", ".venv/x", ".git/modules/lib"] {
            shop.outside(&format!("cd {folder} && {{ {LOOK}; }}")).await;
        }
        shop.outside("git rebase --continue").await;
        if !shop.ran.exists() {
            tame.push(*name);
        }
    }
    // A hook of a bare repository is not run by looking, and a filter needs settings too.
    assert_eq!(tame, ["a submodule's settings", "a submodule's commondir", "attributes"], "{tame:?}");
}

#[tokio::test]
async fn git_works_in_the_copy_and_its_state_is_taken_over() {
    let Some(shop) = Shop::new().await else { return };
    let lines = [
        "echo two >> file && git commit -qam two && git tag v2 && git branch topic",
        "git switch -q topic && echo three > new && git add new && git commit -qm three",
        "echo dirty >> file && git stash -q && git stash pop -q && git checkout -q -- file",
        "git switch -q main && git merge -q --no-edit topic && git gc -q && git pack-refs --all",
        "git branch -D topic && git worktree add -q tree v2 && cd tree && echo t > t && git add t && git commit -qm t",
        "git worktree remove --force tree",
        "echo x > conflict && git add conflict && git commit -qm a && git switch -qc other HEAD~1",
        "echo y > conflict && git add conflict && git commit -qm b && ! git rebase -q main",
        "echo z > conflict && git add conflict && GIT_EDITOR=true git rebase --continue",
    ];
    for line in lines {
        let (finished, text) = shop.run(line).await;
        assert_eq!(finished.end, End::Exited(0), "{line}: {text}");
        assert!(!text.contains("Dragoman:") && finished.leftovers.taken.is_empty(), "{line}: {text}");
        let checked = shop
            .outside("git fsck --strict 2>&1 | grep -v dangling; git status --porcelain | grep -v '?? tree/'")
            .await;
        let is_open = line.contains("! git rebase");
        assert!(is_open || checked.is_empty(), "{line}: {checked}");
    }
    assert_eq!(shop.outside("git log --format=%s").await, "b\na\nthree\ntwo\none\n");
    assert_eq!(
        shop.outside("git branch --format='%(refname:short)'; git tag; git worktree list | wc -l").await,
        "main\nother\nv2\n1\n"
    );
    assert!(!shop.path(".git/rebase-merge").exists());
}

#[tokio::test]
async fn hooks_run_contained_at_a_commit() {
    let Some(shop) = Shop::new().await else { return };
    let hook = shop.path(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\necho ran > hook-ran\ngit add hook-ran\ncp $EVIL .git/hooks/post-commit\necho ../x > .git/commondir\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (finished, text) = shop.run("echo two >> file && git commit -qam two").await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    assert!(text.contains(".git/commondir"), "{text}");
    assert_eq!(shop.outside("git show --name-only --format=%s").await, "two\n\nfile\nhook-ran\n");
    assert!(!shop.path(".git/hooks/post-commit").exists() && !shop.path(".git/commondir").exists());
}

#[tokio::test]
async fn a_grant_takes_over_settings_that_name_no_program() {
    let Some(shop) = Shop::new().await else { return };
    let granted = || Allowance {
        grants: vec![process::sandbox::Grant::GitConfig],
        git: GitAccess::Copy,
        ..Allowance::default()
    };
    let (finished, text) = shop.run_as("git remote add origin https://example.com/x", granted()).await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    assert_eq!(shop.outside("git remote -v | wc -l").await, "2\n");
    let (_, text) = shop.run_as("git config core.fsmonitor $EVIL", granted()).await;
    assert!(text.contains(".git/config"), "{text}");
    assert_eq!(shop.outside("git config core.fsmonitor").await, "");
}

/// A server or a job sees the repository, and cannot write it.
#[tokio::test]
async fn without_a_copy_the_repository_is_read_only() {
    let Some(shop) = Shop::new().await else { return };
    let (finished, _) = shop.run_as("git status && git log -1", Allowance::default()).await;
    assert_eq!(finished.end, End::Exited(0));
    for line in ["git commit -q --allow-empty -m x", "echo x > .git/commondir", "mkdir .git/new"] {
        assert_ne!(shop.run_as(line, Allowance::default()).await.0.end, End::Exited(0), "{line}");
    }
    let granted = Allowance::new(vec![process::sandbox::Grant::GitWrite]);
    assert_eq!(shop.run_as("git commit -q --allow-empty -m x", granted).await.0.end, End::Exited(0));
    assert_eq!(shop.outside("git log --format=%s -1").await, "x\n");
}

#[tokio::test]
async fn folders_of_hooks_and_included_files_are_protected() {
    let Some(shop) = Shop::new().await else { return };
    shop.outside("git config core.hooksPath tools/hooks; git config include.path ../shared.inc").await;
    let attack = "mkdir -p tools/hooks; cp $EVIL tools/hooks/pre-commit; echo \"[core] fsmonitor = $EVIL\" > shared.inc";
    let (finished, text) = shop.run(attack).await;
    assert_eq!(finished.leftovers.taken.len(), 2, "{:?} {text}", finished.leftovers.taken);
    shop.outside(LOOK).await;
    assert!(!shop.ran.exists());
    // Those that exist are read-only.
    fs::create_dir_all(shop.path("tools/hooks")).unwrap();
    fs::write(shop.path("shared.inc"), "").unwrap();
    for line in ["cp $EVIL tools/hooks/pre-commit", "echo x > shared.inc", "mv tools t", "rm shared.inc"] {
        assert_ne!(shop.run(line).await.0.end, End::Exited(0), "{line}");
    }
}

#[tokio::test]
async fn a_protected_link_is_put_back() {
    let Some(shop) = Shop::new().await else { return };
    fs::create_dir(shop.path("settings")).unwrap();
    symlink("settings", shop.path(".vscode")).unwrap();
    fs::rename(shop.path(".git"), shop.path("store")).unwrap();
    symlink("store", shop.path(".git")).unwrap();
    let strict = || Allowance { strict: true, git: GitAccess::Copy, ..Allowance::default() };
    let attack = "rm .vscode; mkdir .vscode; echo evil > .vscode/tasks.json; rm .git; git init -q .; git config core.fsmonitor $EVIL";
    let (finished, _) = shop.run_as(attack, strict()).await;
    assert!(finished.leftovers.taken.len() >= 2, "{:?}", finished.leftovers.taken);
    for (name, target) in [(".vscode", "settings"), (".git", "store")] {
        assert_eq!(fs::read_link(shop.path(name)).ok().as_deref(), Some(Path::new(target)), "{name}");
    }
    shop.outside(LOOK).await;
    assert!(!shop.ran.exists());
    // The target is protected as well, and a commit goes through the link.
    for line in ["echo x > settings/tasks.json", "echo x > store/hooks/pre-commit"] {
        assert_ne!(shop.run_as(line, strict()).await.0.end, End::Exited(0), "{line}");
    }
    let (finished, text) = shop.run_as("git commit -q --allow-empty -m through", strict()).await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    assert_eq!(shop.outside("git log --format=%s -1").await, "through\n");
}

/// Tests make repositories below their build folder, and remove them.
#[tokio::test]
async fn repositories_of_tests_come_and_go() {
    let Some(shop) = Shop::new().await else { return };
    let line = "rm -rf target/tmp && for i in 1 2 3; do git init -q target/tmp/$i && cd target/tmp/$i && \
                git config user.name t && git commit -q --allow-empty -m t && cd ../../.. || exit 1; done";
    for _ in 0..2 {
        let (finished, text) = shop.run(line).await;
        assert_eq!(finished.end, End::Exited(0), "{text}");
        assert!(finished.leftovers.taken.is_empty(), "{:?}", finished.leftovers.taken);
        assert_eq!(shop.outside("git -C target/tmp/2 log --format=%s").await, "t\n");
    }
}

/// What somebody else committed while the command ran is not lost.
#[tokio::test]
async fn a_branch_that_changed_meanwhile_stays() {
    let Some(shop) = Shop::new().await else { return };
    fs::write(shop.path("go"), "").unwrap();
    let line = "git commit -q --allow-empty -m inside; echo ready; while test -e go; do sleep 0.02; done";
    let run = shop.run(line);
    let meanwhile = async {
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        shop.outside("git commit -q --allow-empty -m outside; rm go").await;
    };
    let ((_, text), ()) = tokio::join!(run, meanwhile);
    assert_eq!(shop.outside("git log --format=%s -1").await, "outside\n", "{text}");
    assert!(text.contains("refs/heads/main"), "{text}");
}

/// What a person does to the repository while a command works in its copy.
async fn meanwhile(shop: &Shop, line: &str, own: &str) -> String {
    let wait = "touch ready; while ! test -e go; do sleep 0.02; done";
    let line = format!("{line}; {wait}");
    let person = async {
        while !shop.path("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let said = shop.outside(own).await;
        fs::write(shop.path("go"), "").unwrap();
        said
    };
    let (said, (_, text)) = tokio::join!(person, shop.run(&line));
    format!("{said}{text}")
}

#[tokio::test]
async fn what_a_person_staged_or_stashed_meanwhile_stays() {
    let Some(shop) = Shop::new().await else { return };
    shop.outside("echo first > file; git stash -q; echo a > a; echo b > b; echo c > c").await;
    let text = meanwhile(
        &shop,
        "git add a; echo x > file; git stash -q -- file",
        "git add b; echo mine > file; git stash -q -- file",
    )
    .await;
    let staged = shop.outside("git diff --cached --name-only; git stash list | wc -l").await;
    assert_eq!(staged, "b\n2\n", "{text}");
    assert!(text.contains("index"), "what was left is named: {text}");
    // A look at the files changes their times in the index alone.
    fs::remove_file(shop.path("ready")).unwrap();
    fs::remove_file(shop.path("go")).unwrap();
    let text = meanwhile(&shop, "git add c", "touch -d '3 seconds ago' file a b; git status -s").await;
    assert_eq!(shop.outside("git diff --cached --name-only").await, "b\nc\n", "{text}");
}

#[tokio::test]
async fn a_branch_names_only_objects_that_are_there() {
    let Some(shop) = Shop::new().await else { return };
    let full = "for i in $(seq 0 255); do n=.git/objects/$(printf %02x $i); test -e $n || touch $n; done";
    let text = meanwhile(&shop, "echo two > file; git commit -qam two", full).await;
    assert!(text.contains("nothing was taken over"), "{text}");
    assert_eq!(
        shop.outside("git log --format=%s; git rev-parse --verify -q 'main^{tree}' >/dev/null && echo whole")
            .await,
        "one\nwhole\n"
    );
}

#[tokio::test]
async fn a_command_that_is_killed_loses_no_commit_and_no_stash() {
    let Some(shop) = Shop::new().await else { return };
    let line = "echo two > file; git commit -qam two; echo precious > file; git stash -q; trap '' TERM; touch ready; \
                while :; do sleep 1; done";
    let allowance = Allowance { git: GitAccess::Copy, ..Allowance::default() };
    let stop = CancellationToken::new();
    let spawn = shop
        .spawn(line)
        .grace(std::time::Duration::from_millis(200))
        .confine(shop.world.sandbox.clone(), allowance);
    let killer = async {
        while !shop.path("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let (finished, ()) = tokio::join!(spawn.run(&stop), killer);
    assert_eq!(finished.unwrap().end, End::Stopped);
    assert_eq!(shop.outside("git log --format=%s -1; git stash pop -q; cat file").await, "two\nprecious\n");
}

/// The copy of a Dragoman that was killed itself is in its temporary folder, which the next one removes.
#[tokio::test]
async fn a_later_process_takes_over_what_a_killed_one_left() {
    let Some(shop) = Shop::new().await else { return };
    let kept = shop.world.outside.join("kept");
    let line = "echo two > file; git commit -qam two; trap '' TERM; touch ready; while :; do sleep 1; done";
    let allowance = Allowance { git: GitAccess::Copy, ..Allowance::default() };
    let child = shop.spawn(line).confine(shop.world.sandbox.clone(), allowance).start().await.unwrap();
    while !shop.path("ready").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // As a killed process leaves it: its folder with the copy, and its helper gone.
    let own = shop.world.sandbox.temporary().unwrap();
    let status = std::process::Command::new("cp").arg("-a").arg(&own).arg(&kept).status().unwrap();
    assert!(status.success());
    let dead = std::path::Path::new("/tmp").join(format!("dragoman-tmp-4194305-0-{}", std::process::id()));
    for entry in fs::read_dir(&own)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("git-"))
    {
        fs::write(entry.path().join("taken"), "").unwrap();
    }
    child.stop().await;
    drop(child);
    assert_eq!(shop.outside("git log --format=%s -1").await, "one\n");
    assert!(std::process::Command::new("mv").arg(&kept).arg(&dead).status().unwrap().success());
    let other = World::with(|facts| facts.temporary = "/tmp".into());
    other.sandbox.temporary().unwrap();
    assert_eq!(shop.outside("git log --format=%s -1").await, "two\n");
    assert!(!dead.exists());
}

/// A server that plants something between two calls, or shortly before it ends.
#[tokio::test]
async fn what_a_server_plants_is_found_by_the_next_look() {
    let Some(shop) = Shop::new().await else { return };
    let start = async |name: &str| {
        let plant = format!(
            "git init -q {name}; git -C {name} config core.fsmonitor $EVIL; cp $EVIL {name}/.git/hooks/pre-commit; \
             echo planted; sleep 60"
        );
        let spawn = shop.spawn(&plant).confine(shop.world.sandbox.clone(), Allowance::default());
        let mut server = spawn.start().await.unwrap();
        let mut lines = tokio::io::BufReader::new(server.take_stdout().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("planted"));
        server
    };
    let is_tame = async |name: &str| {
        shop.outside(&format!("cd {name} && {{ {LOOK}; }}")).await;
        !shop.ran.exists()
    };
    let first = start("one").await;
    let looked = shop.world.sandbox.look();
    assert!(looked.taken.iter().any(|path| path.ends_with("one/.git/config")), "{looked:?}");
    assert!(is_tame("one").await);
    // The next command does not take it for something that was there before.
    let second = start("two").await;
    let (finished, _) = shop.run("true").await;
    assert!(finished.leftovers.taken.iter().any(|path| path.ends_with("two/.git/config")), "{finished:?}");
    assert!(is_tame("two").await);
    // Nor is it left where the server ends.
    let third = start("three").await;
    third.stop().await;
    drop(third);
    let settings = shop.path("three/.git/config");
    for _ in 0..200 {
        if !fs::read_to_string(&settings).unwrap().contains("fsmonitor") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(is_tame("three").await);
    drop((first, second));
}

/// A process that was killed while something ran leaves the look to the next one.
#[tokio::test]
async fn a_look_that_is_due_is_done_by_the_next_process() {
    let Some(shop) = Shop::new().await else { return };
    let sandbox = &shop.world.sandbox;
    let planned = sandbox.guarded_policy(
        process::sandbox::Mode::Namespaces,
        &Allowance::default(),
        &shop.world.workspace,
    );
    std::mem::forget(planned.unwrap());
    let due = shop.world.home.join(".cache/dragoman/sandbox/due");
    let file = fs::read_dir(&due).unwrap().flatten().next().expect("a note").path();
    // No process has such a number.
    fs::rename(file, due.join("99999999-0")).unwrap();
    shop.outside("git init -q src && git -C src config core.fsmonitor $EVIL").await;
    let next = std::sync::Arc::new(sandbox.rooted_at(shop.world.workspace.clone()));
    let spawn = shop.spawn("true").confine(next, Allowance::default());
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    assert_eq!(finished.leftovers.taken, [shop.path("src/.git/config")]);
    assert_eq!(fs::read_dir(&due).unwrap().count(), 0, "the note is gone");
}

/// The analysis of a line could be wrong: what is taken for reading cannot write.
#[tokio::test]
async fn what_only_reads_cannot_write_the_workspace() {
    let Some(shop) = Shop::new().await else { return };
    let reads = || Allowance { only_reads: true, ..Allowance::default() };
    assert_eq!(shop.run_as("git status && git log -1 && cat file", reads()).await.0.end, End::Exited(0));
    for line in ["echo x > new", "git init -q src", "echo x > .git/commondir", "rm file"] {
        assert_ne!(shop.run_as(line, reads()).await.0.end, End::Exited(0), "{line}");
    }
}
