//! The home folder, or a folder of dotfiles, as the workspace: what is on the way to secrets, to Dragoman's own files and to
//! files that run later is neither replaced nor made.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use process::End;

use crate::kit::World;

/// A home that is the workspace itself, with a project in it.
fn at_home() -> World {
    let world = World::with(|facts| {
        facts.roots = vec![facts.home.clone()];
        facts.own_folders.push(facts.home.join(".local/share/dragoman"));
    });
    for folder in [".local/share/dragoman", ".cache"] {
        fs::create_dir_all(world.home.join(folder)).unwrap();
    }
    fs::write(world.home.join(".local/share/dragoman/grants.json"), "CANARY grants").unwrap();
    fs::write(world.home.join("notes"), "notes\n").unwrap();
    world
}

#[tokio::test]
async fn nothing_on_the_way_to_a_guarded_path_is_replaced_or_made() {
    let world = at_home();
    if !world.is_whole().await {
        return;
    }
    fs::create_dir(world.home.join("links")).unwrap();
    symlink("links/zshrc", world.home.join(".zshrc")).unwrap();
    let before = names(&world);
    for line in [
        "echo evil >> $HOME/.bashrc",
        "cd $HOME && mv .local x",
        "cd $HOME && mv .local/share x",
        "cd $HOME && mv .config x && mkdir -p .config/dragoman && echo '{}' > .config/dragoman/config.json",
        "cd $HOME && mkdir -p .config/fish",
        "echo evil > $HOME/.bash_profile",
        "echo evil > e && mv e $HOME/.profile",
        "echo evil > e && ln e $HOME/.profile",
        "ln -s shop/evil $HOME/.zlogin",
        "rm $HOME/.zshrc && echo evil > $HOME/.zshrc",
        "echo evil > $HOME/links/zshrc",
        "echo evil > $HOME/.ssh/authorized_keys",
        "mv $HOME/.ssh $HOME/s",
        "rm -rf $HOME/.config",
        "mkdir $HOME/bin && echo evil > $HOME/bin/ls",
        "cat $HOME/.ssh/id_ed25519",
    ] {
        let (finished, text) = world.run(line).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
        assert!(!text.contains("CANARY"), "{line}: {text}");
    }
    let (finished, _) = world.run_with("echo evil > $HOME/.ssh/authorized_keys", &["ssh"]).await;
    assert_ne!(finished.end, End::Exited(0), "the grant shows, it does not open");
    fs::remove_file(world.workspace.join("e")).unwrap();
    assert_eq!(names(&world), before);
    let kept = fs::read_to_string(world.home.join(".local/share/dragoman/grants.json")).unwrap();
    assert_eq!(kept, "CANARY grants");
}

/// Names in home and in the folders on the way.
fn names(world: &World) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", ".config", ".local", ".local/share", ".ssh", "links", "shop"] {
        for entry in fs::read_dir(world.home.join(folder)).unwrap().flatten() {
            names.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
        }
    }
    names.sort();
    names
}

#[tokio::test]
async fn work_goes_on_in_the_folders_and_files_that_home_has() {
    let world = at_home();
    if !world.is_whole().await {
        return;
    }
    fs::create_dir(world.home.join("other")).unwrap();
    let line = "echo one > new && mkdir -p a/b && mv new a/b/new && echo two >> $HOME/notes && \
                cd $HOME/other && echo x > y && mv y z && rm z && mkdir .config && cat $HOME/notes";
    let (finished, text) = world.run(line).await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "notes\ntwo\n"));
    assert!(world.workspace.join("a/b/new").exists() && world.home.join("other/.config").exists());
}

#[tokio::test]
async fn links_into_a_folder_of_dotfiles_are_followed() {
    let world = World::with(|facts| facts.roots = vec![facts.home.join("shop")]);
    if !world.is_whole().await {
        return;
    }
    let dotfiles = &world.workspace;
    fs::create_dir_all(dotfiles.join("dragoman/skills")).unwrap();
    fs::create_dir_all(dotfiles.join("shell/later")).unwrap();
    fs::write(dotfiles.join("dragoman/config.json"), "{}").unwrap();
    fs::write(dotfiles.join("shell/bashrc"), "# start").unwrap();
    let own = world.home.join(".config/dragoman");
    fs::remove_file(own.join("config.json")).unwrap();
    symlink("../../shop/dragoman/config.json", own.join("config.json")).unwrap();
    symlink("../../shop/dragoman/skills", own.join("skills")).unwrap();
    fs::remove_file(world.home.join(".bashrc")).unwrap();
    symlink(dotfiles.join("shell/first"), world.home.join(".bashrc")).unwrap();
    symlink("bashrc", dotfiles.join("shell/first")).unwrap();
    symlink("shop/shell/later/profile", world.home.join(".profile")).unwrap();
    for line in [
        "echo '{\"sandbox\":\"off\"}' > dragoman/config.json",
        "echo x > n && mv -f n dragoman/config.json",
        "mv dragoman d && mkdir dragoman",
        "echo x > dragoman/skills/new",
        "mv dragoman/skills s",
        "echo evil >> shell/bashrc",
        "rm shell/first && echo evil > shell/first",
        "echo evil > shell/later/profile",
        "mv shell/later l",
        "rm -rf shell",
    ] {
        let (finished, text) = world.run(line).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
    }
    assert_eq!(fs::read_to_string(dotfiles.join("dragoman/config.json")).unwrap(), "{}");
    assert_eq!(fs::read_to_string(dotfiles.join("shell/bashrc")).unwrap(), "# start");
    let (finished, text) = world.run("cat dragoman/config.json && echo x > vimrc && mkdir more").await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "{}"));
}

#[tokio::test]
async fn our_own_folder_is_not_written_where_it_is_the_workspace() {
    let world =
        World::with(|facts| facts.roots = vec![facts.home.join(".config/dragoman"), facts.home.join("shop")]);
    if !world.is_whole().await {
        return;
    }
    let (finished, text) = world.run("echo '{}' > $HOME/.config/dragoman/config.json").await;
    assert_ne!(finished.end, End::Exited(0), "{text}");
}

#[tokio::test]
async fn no_file_with_the_rights_of_the_user_is_left() {
    let world = World::new();
    for line in [
        "cp /bin/true s && chmod u+s s",
        "cp /bin/true s && chmod 6755 s",
        "cp /bin/true s && chmod g+s s",
        "python3 -c \"import os; os.close(os.open('t', os.O_CREAT | os.O_WRONLY, 0o4755))\"",
        "python3 -c \"import os; os.mknod('u', 0o104755)\"",
        "python3 -c \"import os; f = open('v', 'w'); os.fchmod(f.fileno(), 0o2755)\"",
    ] {
        let (finished, text) = world.run(line).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
    }
    for entry in fs::read_dir(&world.workspace).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().mode() & 0o6000, 0, "{:?}", entry.path());
    }
    let (finished, text) = world.run("touch f && chmod 755 f && chmod u+x,g-w f && test -x f").await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    if !world.is_whole().await {
        return;
    }
    // Folders lend no rights: git uses the bit for shared repositories.
    let line = "mkdir d e && chmod g+s d && chmod 2775 e && cd d && chmod 2770 ../d && stat -c %a . ../e";
    let (finished, text) = world.run(line).await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "2770\n2775\n"));
}

/// Without namespaces: rights add up, so a folder on the way has none.
#[tokio::test]
async fn the_smaller_wall_keeps_the_way_to_a_guarded_path_too() {
    let world = World::with(|facts| {
        facts.roots = vec![facts.home.clone()];
        facts.without_namespaces = true;
    });
    let support = process::sandbox_support(&world.sandbox).await;
    if !matches!(support, process::sandbox::Support::Landlock { .. }) {
        return eprintln!("not tried: {}", support.sentence());
    }
    fs::write(world.home.join("notes"), "notes\n").unwrap();
    fs::create_dir_all(world.home.join(".local/share")).unwrap();
    for (line, works) in [
        ("echo x > new && mkdir a && mv new a && echo more >> $HOME/notes", true),
        ("cat $HOME/.ssh/id_ed25519", false),
        ("cat $HOME/.config/dragoman/config.json", false),
        ("echo evil >> $HOME/.bashrc", false),
        ("echo evil > $HOME/.bash_profile", false),
        ("mv $HOME/.config $HOME/x", false),
        ("mkdir $HOME/.config/fish", false),
        // It does not exist, and nothing else in its folder is guarded.
        ("mkdir $HOME/.local/bin", false),
        ("echo evil > $HOME/.ssh/authorized_keys", false),
    ] {
        let (finished, text) = world.run(line).await;
        assert_eq!(finished.end == End::Exited(0), works, "{line}: {text}");
    }
}
