//! `dragoman setup`, `update` and `--version --json` from outside, on configuration files in a sealed home.

use serde_json::Value;

use crate::client::Home;

fn run(home: &Home, arguments: &[&str]) -> (Option<i32>, String) {
    let output = home.command(arguments).stdin(std::process::Stdio::null()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
}

fn run_json(home: &Home, arguments: &[&str]) -> Value {
    let (code, text) = run(home, arguments);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const ZED: &str = "// Zed settings\n{\n  \"vim_mode\": true, // yes\n  \"theme\": \"One Dark\",\n}\n";

#[test]
fn an_editor_is_set_up_only_on_yes_and_can_be_taken_back() {
    let home = Home::new();
    let file = home.write(".config/zed/settings.json", ZED);
    let read = || std::fs::read_to_string(&file).expect("read");
    // Without a terminal nobody said yes.
    for arguments in [&["setup", "zed"][..], &["setup", "zed", "--dry-run"], &["setup", "zed", "--json"]] {
        let (code, text) = run(&home, arguments);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("agent_servers"), "{text}");
        assert_eq!(read(), ZED, "{arguments:?}");
    }
    let changed = run_json(&home, &["setup", "zed", "--yes", "--json"]);
    assert_eq!(changed["state"], "changed", "{changed:#}");
    let text = read();
    assert!(text.starts_with("// Zed settings\n{\n  \"vim_mode\": true, // yes\n"), "{text}");
    assert!(text.contains(env!("CARGO_BIN_EXE_dragoman")) && text.contains("\"acp\""), "{text}");
    let copy = changed["copy"].as_str().expect("a copy");
    assert_eq!(std::fs::read_to_string(copy).expect("the copy"), ZED);
    assert_eq!(run_json(&home, &["setup", "zed", "--json"])["state"], "done");
    let (code, text) = run(&home, &["setup", "zed", "--undo", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(read(), ZED);
    let (code, text) = run(&home, &["setup", "zed", "--undo", "--yes"]);
    assert_eq!(code, Some(1), "nothing is left to undo: {text}");
}

#[test]
fn the_list_names_the_editors_of_this_machine() {
    let home = Home::new();
    let (code, text) = run(&home, &["setup"]);
    assert!(code == Some(0) && text.contains("No editor was found"), "{text}");
    home.write(".config/zed/settings.json", "{}");
    home.write(".config/Code/User/settings.json", "{ broken");
    home.write(".emacs.d/init.el", "");
    let list = run_json(&home, &["setup", "--json"]);
    let state = |name: &str| {
        let editors = list["editors"].as_array().expect("editors");
        let editor = editors.iter().find(|editor| editor["name"] == name).expect(name);
        editor["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!(state("zed"), "can be set up");
    assert_eq!(state("vscode"), "has settings that cannot be read");
    assert_eq!(state("emacs"), "has lines to paste");
    assert_eq!(state("helix"), "not found");
    let (code, text) = run(&home, &["setup", "vscode", "--yes"]);
    assert!(code == Some(1) && text.contains("by hand"), "{text}");
    let (code, text) = run(&home, &["setup", "notepad"]);
    assert!(code == Some(2) && text.contains("jetbrains"), "{text}");
}

#[test]
fn a_build_describes_itself_and_the_way_to_a_newer_one() {
    let home = Home::new();
    for arguments in [&["--version", "--json"][..], &["--json", "-V"]] {
        let version = run_json(&home, arguments);
        assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
        assert!(version["features"].as_array().is_some_and(|it| it.contains(&"serve".into())), "{version}");
        assert_eq!((&version["os"], &version["installedBy"]), (&"linux".into(), &"source".into()));
    }
    let update = run_json(&home, &["update", "--json"]);
    assert_eq!(update["command"], "git pull && make build");
    // A copy that a package put somewhere; a link on the same file system, because a fresh copy may still be open.
    let prefix = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = prefix.path().join("bin/dragoman");
    for folder in ["bin", "lib/dragoman"] {
        std::fs::create_dir_all(prefix.path().join(folder)).expect("made");
    }
    std::fs::write(prefix.path().join("lib/dragoman/package"), "deb\n").expect("written");
    std::fs::hard_link(env!("CARGO_BIN_EXE_dragoman"), &program).expect("a link");
    let output = std::process::Command::new(&program)
        .arg("update")
        .env("HOME", home.path())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("installed by dpkg") && text.contains(".deb"), "{text}");
}

/// Nothing is written for an editor that is not there, whatever is asked for.
#[test]
fn an_absent_editor_gets_no_file() {
    let names = ["zed", "vscode", "vscodium", "cursor", "windsurf", "jetbrains", "helix"];
    for name in names {
        let home = Home::new();
        for arguments in [&["setup", name, "--yes"][..], &["setup", name, "--yes", "--json"]] {
            let output = home.command(arguments).env("PATH", "/nowhere").output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(1) && text.contains("was not found"), "{name}: {text}");
        }
        let mut left: Vec<_> = std::fs::read_dir(home.path()).expect("home").flatten().collect();
        left.retain(|entry| entry.file_name() != "work");
        assert!(left.is_empty(), "{name}: {left:?}");
        let output = home.command(&["setup", name, "--dry-run"]).output().expect("it runs");
        assert!(output.status.success(), "{name}: the change can still be looked at");
    }
    // A program that a shell finds is enough: its folder is made when it starts for the first time.
    let home = Home::new();
    let program = home.write("bin/zed", "");
    let folder = program.parent().expect("a folder");
    let output = home.command(&["setup", "zed", "--yes"]).env("PATH", folder).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(home.path().join(".config/zed/settings.json").exists());
}
