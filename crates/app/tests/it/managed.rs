//! Managed settings at their real place: `/etc` is a folder of the test in a mount namespace of its own. No variable or
//! argument leads to another file, so there is no other way to test them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};
use crate::run::{Ran, finish};

const FILE: &str = "/etc/dragoman/managed.json";
const WITH_OWN_ETC: &str = "mount --bind \"$0\" /etc || exit 99; exec \"$@\"";

struct Machine {
    home: Home,
    etc: tempfile::TempDir,
}

impl Machine {
    /// `None`: this system lets no user mount a folder.
    fn new(managed: &str) -> Option<Self> {
        let etc = tempfile::tempdir().expect("a folder of the test");
        fs::set_permissions(etc.path(), fs::Permissions::from_mode(0o755)).expect("a folder of the test");
        for name in ["passwd", "group", "nsswitch.conf", "hosts"] {
            let _ = fs::copy(format!("/etc/{name}"), etc.path().join(name));
        }
        let machine = Self { home: Home::new(), etc };
        machine.write(managed);
        let mut command = machine.command(&["--version"], &json!({}));
        let works = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if works.is_ok_and(|status| status.success()) {
            return Some(machine);
        }
        testkit::skip("this system lets no user mount a folder in a namespace");
        None
    }

    fn write(&self, managed: &str) {
        let folder = self.etc.path().join("dragoman");
        fs::create_dir_all(&folder).expect("a folder of the test");
        fs::write(folder.join("managed.json"), managed).expect("a folder of the test");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a folder of the test");
        self.set_mode(0o644);
    }

    fn set_mode(&self, mode: u32) {
        let file = self.etc.path().join("dragoman/managed.json");
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("a folder of the test");
    }

    fn command(&self, arguments: &[&str], config: &Value) -> Command {
        let plain = self.home.command(arguments);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", WITH_OWN_ETC]);
        command.arg(self.etc.path()).arg(plain.get_program()).args(plain.get_args());
        command.env_clear().env("HOME", self.home.path()).current_dir(self.home.workspace());
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("DRAGOMAN_CONFIG", config.to_string());
        command
    }

    async fn run(&self, arguments: &[&str], config: &Value) -> Ran {
        let mut command: tokio::process::Command = self.command(arguments, config).into();
        command.stdin(Stdio::null()).kill_on_drop(true);
        finish(command).await
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_stops_the_start() {
    let Some(machine) = Machine::new("{ nonsense") else { return };
    for (managed, mode, why) in [
        ("{ nonsense", 0o644, "line 1"),
        (r#"{"allowedProvider": []}"#, 0o644, "`allowedProviders` is one"),
        ("{}", 0o666, "users other than root can write to"),
    ] {
        machine.write(managed);
        machine.set_mode(mode);
        for arguments in [&["run", "hello"][..], &["config", "check"], &["config", "show"], &["models"]] {
            let ran = machine.run(arguments, &json!({})).await;
            assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.out);
            assert!(ran.err.contains(FILE) && ran.err.contains(why), "{arguments:?}: {}", ran.err);
        }
    }
    assert_eq!(machine.run(&["--version"], &json!({})).await.code, Some(0));
}

#[tokio::test]
async fn what_is_in_force_is_shown_with_its_file() {
    let Some(machine) = Machine::new(r#"{"budgets": {"day": 5}, "allowedProviders": ["fake"]}"#) else {
        return;
    };
    let config = json!({"budget": {"day": 50}});
    let shown = machine.run(&["config", "show"], &config).await;
    assert!(shown.out.contains(&format!("budget.day = 5    ({FILE})")), "{}{}", shown.out, shown.err);
    assert!(
        shown.out.contains(&format!("managed.allowedProviders = [\"fake\"]    ({FILE})")),
        "{}",
        shown.out
    );
}

#[tokio::test]
async fn only_permitted_models_answer() {
    let Some(machine) = Machine::new(r#"{"allowedModels": ["fake/m1"]}"#) else { return };
    let fake = FakeModel::start().await;
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"] = json!({
        "m1": {"extraPayload": {"model": "m2"}}, "m2": {}, "m3": {"modelName": "m2"}
    });
    fake.answer(Answer::text("Hello."));
    let ran = machine.run(&["run", "hello"], &config).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{}", ran.err);
    assert_eq!(fake.last_request().body["model"], "m1", "a body names no other model");
    for model in ["fake/m2", "fake/m3", "anthropic/claude-sonnet-4-5", "local/smollm2-135m"] {
        let ran = machine.run(&["run", "--model", model, "hello"], &config).await;
        assert_ne!(ran.code, Some(0), "{model}: {}", ran.out);
        assert!(ran.err.contains("administrator"), "{model}: {}", ran.err);
    }
    let listed = machine.run(&["models"], &config).await;
    assert!(listed.out.contains("fake/m1") && !listed.out.contains("fake/m2"), "{}", listed.out);
    // A name alone does not lead prompts to another host.
    machine.write(r#"{"allowedProviders": ["fake"]}"#);
    config["providers"]["fake"]["url"] = "http://192.0.2.1/v1".into();
    let ran = machine.run(&["run", "hello"], &config).await;
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    assert!(ran.err.contains("administrator"), "{}", ran.err);
}

#[tokio::test]
async fn only_permitted_hosts_are_reached() {
    let Some(machine) = Machine::new(r#"{"allowedHosts": ["*.corp.example"]}"#) else { return };
    let fake = FakeModel::start().await;
    let config = fake_provider(fake.url(), "openai-chat");
    fake.answer(Answer::tool_call("c1", "fetch_url", json!({"url": "http://192.0.2.1/page"})));
    fake.answer(Answer::text("done"));
    let ran = machine.run(&["run", "--approve", "all", "read it"], &config).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let last = fake.last_request().body.to_string();
    assert!(last.contains("192.0.2.1 cannot be reached: the administrator"), "{last}");
}
