//! What a command cannot open or take: closed files, credentials of registries, memory; and what it can start below `/tmp`.

use std::fs;
use std::path::Path;

use process::End;
use process::sandbox::{Allowance, Facts, Grant, Sandbox};
use tokio_util::sync::CancellationToken;

use crate::kit::World;

async fn run(world: &World, line: &str, allowance: Allowance) -> (process::Finished, String) {
    let spawn = world.spawn(line).confine(world.sandbox.clone(), allowance);
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    let text = finished.stdout.text();
    (finished, text)
}

#[tokio::test]
async fn closed_files_are_seen_and_not_opened() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    fs::create_dir(world.workspace.join("config")).unwrap();
    for name in [".env", "config/prod.env", "other.txt"] {
        fs::write(world.workspace.join(name), "CANARY").unwrap();
    }
    std::os::unix::fs::symlink(".env", world.workspace.join("link")).unwrap();
    let unreadable: Vec<_> =
        [".env", "config/prod.env", "link"].map(|name| world.workspace.join(name)).into_iter().collect();
    let allowance = || Allowance { unreadable: unreadable.clone(), ..Allowance::default() };
    let (finished, text) = run(&world, "ls -A . config && test -e .env && cat other.txt", allowance()).await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    assert!(text.contains(".env") && text.contains("prod.env"), "the names are seen: {text}");
    for line in
        ["cat .env", "cat link", "grep -r CANARY config", "mv .env x && cat x", "chmod 600 .env && cat .env"]
    {
        let (finished, text) = run(&world, line, allowance()).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
        assert!(!text.contains("CANARY"), "{line}: {text}");
    }
    let (_, text) = run(&world, "cat .env", allowance()).await;
    assert!(text.contains("Permission denied"), "{text}");
    assert_eq!(fs::read_to_string(world.workspace.join(".env")).unwrap(), "CANARY");
}

#[tokio::test]
async fn credentials_of_registries_are_hidden_until_they_are_granted() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    fs::write(world.home.join(".npmrc"), "//registry.npmjs.org/:_authToken=CANARY\n").unwrap();
    fs::write(world.home.join(".pypirc"), "password = CANARY\n").unwrap();
    fs::write(world.home.join(".yarnrc"), "save-exact true\n").unwrap();
    let line = "cat ~/.npmrc ~/.pypirc ~/.yarnrc";
    let (_, text) = world.run(line).await;
    assert!(!text.contains("CANARY") && text.contains("save-exact"), "{text}");
    let (_, text) = world.run_with(line, &["registry-credentials"]).await;
    assert_eq!(text.matches("CANARY").count(), 2, "{text}");
    // A variable that is set for this child stays; an inherited one would not.
    let spawn = world.spawn("echo token=$NPM_TOKEN").env("NPM_TOKEN", "given");
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    assert!(finished.stdout.text().contains("token=given"));
}

#[tokio::test]
async fn a_command_without_registries_reaches_none() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let ask = "p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; \
               printf 'CONNECT registry.npmjs.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let (finished, text) = run(&world, ask, Allowance { offline: true, ..Allowance::default() }).await;
    assert!(text.contains("403"), "{text}");
    assert_eq!(finished.refused_hosts, ["registry.npmjs.org:443"]);
}

#[tokio::test]
async fn a_command_that_takes_too_much_memory_is_ended() {
    let world = World::with(|facts| facts.memory_megabytes = Some(128));
    if !world.is_whole().await {
        return;
    }
    // Without a line end, `tail` keeps everything.
    let (finished, text) =
        run(&world, "head -c 900000000 /dev/zero | tail | wc -c", Allowance::default()).await;
    assert!(finished.over_memory && !finished.success(), "{:?} {text}", finished.end);
    let (finished, text) = run(&world, "echo small; kill -KILL $$", Allowance::default()).await;
    assert!(!finished.over_memory, "{text}");
}

#[tokio::test]
async fn a_missing_temporary_folder_is_no_reason_to_run_without_a_sandbox() {
    let world = World::with(|facts| facts.temporary = "/nonexistent/tmp".into());
    let (finished, text) = world.run("echo x > $OUTSIDE/new").await;
    assert_ne!(finished.end, End::Exited(0), "{text}");
    assert!(!world.outside.join("new").exists());
}

/// A clone, a workspace and the programs of both may lie below `/tmp`, in a path with blanks and other letters.
#[tokio::test]
async fn programs_below_tmp_are_seen_with_their_folders() {
    let whole = World::new();
    if !whole.is_whole().await {
        return;
    }
    for parent in ["/tmp", "/var/tmp"] {
        let folder = tempfile::Builder::new().prefix("a clone für ").tempdir_in(parent).unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, mode).unwrap();
        };
        write("target/debug/server", "#!/bin/sh\n. \"$(dirname \"$0\")/part.sh\"\n");
        write("target/debug/part.sh", "echo \"part of $(basename \"$0\")\"\n");
        write("tools/bin/tool", "#!/bin/sh\ncat \"$(dirname \"$0\")/../share/text\"\n");
        write("tools/share/text", "shared text\n");
        write("work/main.txt", "main\n");
        write("other/secret.txt", "CANARY\n");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("target/debug/s.sock")).unwrap();
        let path = format!("{}:{}", root.join("tools/bin").display(), std::env::var("PATH").unwrap());
        let facts = Facts {
            helper: crate::kit::helper(),
            home: whole.home.clone(),
            roots: vec![root.join("work")],
            cache: whole.home.join(".cache/dragoman"),
            temporary: std::env::temp_dir(),
            variables: [("PATH".to_owned(), path.clone())].into(),
            ..Facts::default()
        };
        let sandbox = std::sync::Arc::new(Sandbox::new(facts));
        let run = async |spawn: process::Spawn| {
            let spawn = spawn.directory(root.join("work")).env("PATH", &path).merge_stderr();
            let spawn = spawn.confine(sandbox.clone(), Allowance::default());
            spawn.run(&CancellationToken::new()).await.unwrap().stdout.text()
        };
        let text = run(process::Spawn::new(root.join("target/debug/server"))).await;
        assert_eq!(text, "part of server\n");
        let text = run(process::Spawn::new("sh").arg(root.join("target/debug/server"))).await;
        assert_eq!(text, "part of server\n");
        // As a setting may write it: by way of another folder, and of a link.
        std::os::unix::fs::symlink("target", root.join("link")).unwrap();
        for way in ["tools/../target/debug/server", "link/debug/server", "tools/bin/../../link/debug/server"]
        {
            let text = run(process::Spawn::new("sh").arg(root.join(way))).await;
            assert_eq!(text, "part of server\n", "{way}");
        }
        assert_eq!(
            run(process::Spawn::shell("tool && cat main.txt && touch made")).await,
            "shared text\nmain\n"
        );
        assert!(root.join("work/made").exists());
        let text = run(process::Spawn::shell("cat ../other/secret.txt; touch ../tools/bin/evil")).await;
        assert!(!text.contains("CANARY") && !root.join("tools/bin/evil").exists(), "{text}");
        let connect = format!("test -S '{}'", root.join("target/debug/s.sock").display());
        let text = run(process::Spawn::new(root.join("target/debug/server")).arg(connect)).await;
        assert_eq!(text, "part of server\n");
    }
}

/// The script of a hook lies in the folder of the settings, whose other files stay hidden.
#[tokio::test]
async fn a_script_in_the_folder_of_settings_is_seen_alone() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let hooks = world.home.join(".config/dragoman/hooks");
    fs::create_dir(&hooks).unwrap();
    fs::write(hooks.join("guard.sh"), "echo guarded; cat \"$(dirname \"$0\")/../config.json\"\n").unwrap();
    let spawn =
        process::Spawn::new("bash").arg(hooks.join("guard.sh")).directory(&world.workspace).merge_stderr();
    let spawn = spawn.confine(world.sandbox.clone(), Allowance::default());
    let text = spawn.run(&CancellationToken::new()).await.unwrap().stdout.text();
    assert!(text.contains("guarded") && !text.contains("CANARY"), "{text}");
    assert!(Path::new(&world.home.join(".config/dragoman/config.json")).exists());
    assert!(Grant::parse("secret:.env").is_ok());
}

/// A language server: the whole workspace is read-only for it, and lies below `/tmp`.
#[tokio::test]
async fn a_workspace_below_tmp_that_is_read_only_as_a_whole_is_seen() {
    let whole = World::new();
    if !whole.is_whole().await {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let home = folder.path().canonicalize().unwrap();
    let root = home.join("work");
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join("main.txt"), "main").unwrap();
    let facts = Facts {
        helper: crate::kit::helper(),
        home: home.clone(),
        roots: vec![root.clone()],
        own_folders: vec![home.join(".config/dragoman")],
        cache: home.join(".cache/dragoman"),
        temporary: std::env::temp_dir(),
        ..Facts::default()
    };
    let allowance = Allowance {
        strict: true,
        keeps_run_later: true,
        run_later: vec![root.clone()],
        ..Allowance::default()
    };
    let spawn = process::Spawn::shell("cat main.txt; touch made").directory(&root).merge_stderr();
    let spawn = spawn.confine(std::sync::Arc::new(Sandbox::new(facts)), allowance);
    let text = spawn.run(&CancellationToken::new()).await.unwrap().stdout.text();
    assert!(text.starts_with("main") && !root.join("made").exists(), "{text}");
}
