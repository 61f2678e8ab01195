//! `dragoman mcp`: servers in the configuration and what the commands say about them; problems in `run` and `doctor`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");

fn run(home: &Home, arguments: &[&str]) -> Output {
    home.command(arguments).output().expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn file(home: &Home) -> PathBuf {
    home.path().join(".config/dragoman/config.json")
}

#[test]
fn a_server_is_added_tried_switched_off_and_removed() {
    let home = Home::new();
    home.write(".config/dragoman/config.json", "{\n  // of the user\n  \"mcpServers\": {},\n}\n");
    let log = home.path().join("log").display().to_string();
    let arguments = [
        "mcp",
        "add",
        "good",
        "--env",
        "API_KEY=very-secret-value",
        "--",
        "python3",
        SCRIPT,
        "good",
        "--log",
        &log,
    ];
    let added = run(&home, &arguments);
    assert!(added.status.success() && said(&added).contains("good is added"), "{}", said(&added));
    assert!(!run(&home, &arguments).status.success(), "it is there already");
    let shown = said(&run(&home, &["mcp", "get", "good"]));
    assert!(shown.contains("python3") && !shown.contains("very-secret-value"), "{shown}");

    let tried = run(&home, &["mcp", "test", "good"]);
    assert!(tried.status.success() && said(&tried).contains("echo"), "{}", said(&tried));
    let listed = run(&home, &["mcp", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(
        (&listed["servers"][0]["status"], &listed["servers"][0]["revision"]),
        (&json!("running"), &json!("2025-11-25"))
    );

    assert!(run(&home, &["mcp", "disable", "good"]).status.success());
    let listed = run(&home, &["mcp", "list"]);
    assert!(listed.status.success() && said(&listed).contains("off"), "{}", said(&listed));
    assert!(run(&home, &["mcp", "enable", "good"]).status.success());
    assert!(run(&home, &["mcp", "remove", "good"]).status.success());
    let text = std::fs::read_to_string(file(&home)).expect("the file");
    assert!(text.contains("// of the user") && !text.contains("good"), "{text}");
    assert!(home.path().join(".config/dragoman/config.json.bak").exists());
}

#[test]
fn servers_of_other_programs_are_imported_and_broken_files_refused() {
    let home = Home::new();
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a": {"command": "npx", "env": {"K": "${KEY}"}}, "bad": {"type": "x"},
            "few": {"command": "few", "includeTools": ["one"]}}}"#,
    );
    let imported = run(&home, &["mcp", "import", "--project"]);
    assert!(
        ["a is added", "bad is left out", "few is left out"]
            .iter()
            .all(|words| said(&imported).contains(words)),
        "{}",
        said(&imported)
    );
    let text = std::fs::read_to_string(home.workspace().join(".dragoman/config.json")).expect("the file");
    assert!(text.contains("${env:KEY}") && !text.contains("few"), "{text}");
    let added = run(&home, &["mcp", "add-json", "b", r#"{"url": "https://mcp.example.com"}"#]);
    assert!(added.status.success(), "{}", said(&added));

    home.write(".config/dragoman/config.json", "{ broken");
    let refused = run(&home, &["mcp", "add", "c", "--", "x"]);
    assert!(!refused.status.success() && said(&refused).contains("cannot be changed"), "{}", said(&refused));
    assert_eq!(std::fs::read_to_string(file(&home)).expect("the file"), "{ broken");
}

#[test]
fn nothing_is_changed_inside_a_tool_call() {
    let home = Home::new();
    for arguments in [["mcp", "add", "x", "--url", "https://x"], ["mcp", "login", "x", "", ""]] {
        let arguments: Vec<&str> = arguments.into_iter().filter(|word| !word.is_empty()).collect();
        let refused = home.command(&arguments).env("DRAGOMAN_CHILD", "1").output().expect("it runs");
        assert!(
            !refused.status.success() && said(&refused).contains("inside a tool call"),
            "{}",
            said(&refused)
        );
    }
    assert!(!file(&home).exists());
}

/// Two servers that cannot work: a program that is not there and an address where nothing listens.
fn broken_servers(url: &str) -> Value {
    let mut config = fake_provider(url, "openai-chat");
    config["mcpServers"] = json!({
        "missing": {"command": "no-such-program-of-this-test"},
        "nobody": {"url": "http://127.0.0.1:9/mcp"},
    });
    config
}

#[tokio::test]
async fn a_run_and_the_doctor_name_servers_that_do_not_work() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = broken_servers(fake.url()).to_string();
    for arguments in [["run", "--json", "hello"].as_slice(), ["run", "hello"].as_slice()] {
        fake.answer(Answer::text("ok"));
        let mut command: tokio::process::Command = home.command(arguments).into();
        let ran = command.env("DRAGOMAN_CONFIG", &config).output().await.expect("it runs");
        for name in ["missing", "nobody"] {
            let problem = format!("The MCP server {name} failed.");
            let text = if arguments.contains(&"--json") {
                let events = String::from_utf8_lossy(&ran.stdout).into_owned();
                events.lines().filter(|line| line.contains(r#""type":"notice""#)).collect()
            } else {
                String::from_utf8_lossy(&ran.stderr).into_owned()
            };
            assert!(text.contains(&problem) && text.contains(&format!("mcp test {name}")), "{name}: {text}");
        }
    }
    fake.answer(Answer::text("ok"));
    let mut command: tokio::process::Command = home.command(&["doctor", "--json"]).into();
    let report = command.env("DRAGOMAN_CONFIG", &config).output().await.expect("it runs");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    for name in ["missing", "nobody"] {
        let checks = report["checks"].as_array().expect("checks");
        let check = checks.iter().find(|it| it["name"] == format!("MCP server {name}")).expect("a check");
        assert_eq!(check["state"], "broken", "{check}");
    }
}

const LOGIN_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/oauth.py");

/// A server that requires a login; it ends with the test.
struct LoginServer(Child, u16);

impl LoginServer {
    fn start() -> Self {
        let mut command = std::process::Command::new("python3");
        let mut child = command.arg(LOGIN_SERVER).stdout(Stdio::piped()).spawn().expect("python");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a port");
        Self(child, line.trim().parse().expect("a port"))
    }
}

impl Drop for LoginServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_login_is_made_by_a_browser_or_by_pasting_and_deleted() {
    use std::os::unix::fs::PermissionsExt;
    let (home, server) = (Home::new(), LoginServer::start());
    let url = format!("http://127.0.0.1:{}/mcp", server.1);
    assert!(run(&home, &["mcp", "add", "web", "--url", &url]).status.success());
    let before = run(&home, &["mcp", "test", "web"]);
    assert!(
        !before.status.success() && said(&before).contains("dragoman mcp login web"),
        "{}",
        said(&before)
    );

    home.write("browser", &format!("#!/bin/sh\nexec python3 {LOGIN_SERVER} --browse \"$1\"\n"));
    let browser = home.path().join("browser");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let logged_in =
        home.command(&["mcp", "login", "web"]).env("BROWSER", &browser).output().expect("it runs");
    assert!(logged_in.status.success(), "{}", said(&logged_in));
    assert!(
        said(&logged_in).contains("/authorize?"),
        "the address is printed in any case: {}",
        said(&logged_in)
    );
    assert!(!said(&logged_in).contains("token-of-the-login"), "{}", said(&logged_in));
    let logins: Vec<PathBuf> = find(home.path(), "mcp-logins.json");
    let [logins] = logins.as_slice() else { panic!("one file: {logins:?}") };
    let mode = std::fs::metadata(logins).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(run(&home, &["mcp", "test", "web"]).status.success());
    assert!(run(&home, &["mcp", "logout", "web"]).status.success());
    assert!(!std::fs::read_to_string(logins).unwrap_or_default().contains("token-of-the-login"));
    assert!(!run(&home, &["mcp", "test", "web"]).status.success());

    // Without a browser: the address that the login ended at is pasted.
    let mut login = home
        .command(&["mcp", "login", "web"])
        .env_remove("BROWSER")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let (mut shown, mut stderr) = (String::new(), BufReader::new(login.stderr.take().expect("stderr")));
    while !shown.contains("/authorize?") {
        assert!(stderr.read_line(&mut shown).expect("stderr") > 0, "no address is printed: {shown}");
    }
    let address = shown.split_whitespace().find(|word| word.contains("/authorize?")).expect("the address");
    let query = |name: &str| {
        let url = address.split_once('?').expect("a query").1;
        let found = url.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.expect("a parameter").replace("%3A", ":").replace("%2F", "/")
    };
    let pasted = format!("{}?code=c&state={}\n", query("redirect_uri"), query("state"));
    login.stdin.take().expect("stdin").write_all(pasted.as_bytes()).expect("stdin");
    assert!(login.wait().expect("it ends").success());
    assert!(run(&home, &["mcp", "test", "web"]).status.success());
}

/// Stands for the keyring's own program: keeps one secret in a file, and hangs or refuses where it is told to.
const SECRET_TOOL: &str = r#"#!/bin/sh
[ ! -e "$HOME/hangs" ] || sleep 60
[ ! -e "$HOME/refuses" ] || { echo "Cannot create an item in a locked collection" >&2; exit 1; }
case $1 in
  store) cat > "$HOME/secret" ;;
  lookup) cat "$HOME/secret" 2>/dev/null ;;
esac
"#;

#[test]
fn logins_are_kept_encrypted_where_the_user_chose_the_keyring() {
    use std::os::unix::fs::PermissionsExt;
    let (home, server) = (Home::new(), LoginServer::start());
    let url = format!("http://127.0.0.1:{}/mcp", server.1);
    let config = json!({"mcpLogins": "keyring", "mcpServers": {"web": {"url": url}}});
    home.write(".config/dragoman/config.json", &config.to_string());
    home.write("bin/secret-tool", SECRET_TOOL);
    home.write("browser", &format!("#!/bin/sh\nexec python3 {LOGIN_SERVER} --browse \"$1\"\n"));
    for program in ["bin/secret-tool", "browser"] {
        let program = home.path().join(program);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").expect("PATH"));
    let dragoman = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("BROWSER", home.path().join("browser")).env("PATH", &path);
        command.output().expect("it runs")
    };
    let kept = || {
        let files = find(home.path(), "mcp-logins.json");
        files.iter().map(|file| std::fs::read_to_string(file).expect("the file")).collect::<String>()
    };

    // A locked keyring: the login is kept in the file, and the user reads so.
    home.write("refuses", "");
    let logged_in = dragoman(&["mcp", "login", "web"]);
    assert!(
        logged_in.status.success() && said(&logged_in).contains("The keyring could not be used"),
        "{}",
        said(&logged_in)
    );
    assert!(kept().contains("token-of-the-login"), "{}", kept());
    std::fs::remove_file(home.path().join("refuses")).expect("the file");

    let logged_in = dragoman(&["mcp", "login", "web"]);
    assert!(logged_in.status.success() && !said(&logged_in).contains("keyring"), "{}", said(&logged_in));
    assert!(!kept().is_empty() && !kept().contains("token-of-the-login"), "{}", kept());
    assert!(dragoman(&["mcp", "test", "web"]).status.success(), "the login is read again");

    // A keyring that does not answer is waited for no longer than two seconds, and what it protects stays closed.
    home.write("hangs", "");
    let tried = dragoman(&["mcp", "test", "web"]);
    assert!(
        !tried.status.success() && said(&tried).contains("did not answer within 2 s"),
        "{}",
        said(&tried)
    );
    assert!(!kept().contains("token-of-the-login"), "{}", kept());
}

/// What runs inside a session of its own with an unlocked keyring: `$1` is the program.
const KEYRING_SESSION: &str = r#"set -e
printf password | gnome-keyring-daemon --unlock --components=secrets > /dev/null
"$1" mcp login web
"$1" mcp test web
secret-tool lookup service dragoman account mcp-logins > "$HOME/key"
"#;

/// The keyring of the distribution, in a session of its own.
#[test]
fn logins_are_encrypted_with_the_key_of_a_real_keyring() {
    use std::os::unix::fs::PermissionsExt;
    for program in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] {
        let is_there =
            std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !is_there.is_ok_and(|it| it.status.success()) {
            testkit::skip(format!("there is no {program} (Debian: gnome-keyring, libsecret-tools, dbus)"));
            return;
        }
    }
    let (home, server) = (Home::new(), LoginServer::start());
    let url = format!("http://127.0.0.1:{}/mcp", server.1);
    let config = json!({"mcpLogins": "keyring", "mcpServers": {"web": {"url": url}}});
    home.write(".config/dragoman/config.json", &config.to_string());
    home.write("browser", &format!("#!/bin/sh\nexec python3 {LOGIN_SERVER} --browse \"$1\"\n"));
    home.write("run/.keep", "");
    for (path, mode) in [("browser", 0o755), ("run", 0o700)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path().join(path), mode).expect("a mode");
    }
    let session = |script: &str| {
        let mut command = std::process::Command::new("dbus-run-session");
        command
            .args(["--", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_dragoman")])
            .env_clear()
            .env("PATH", std::env::var("PATH").expect("PATH"))
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", home.path().join("run"))
            .env("BROWSER", home.path().join("browser"))
            .current_dir(home.workspace());
        command.output().expect("it runs")
    };
    let unlocked = session(KEYRING_SESSION);
    assert!(
        unlocked.status.success() && !said(&unlocked).contains("keyring could not"),
        "{}",
        said(&unlocked)
    );
    let key = std::fs::read_to_string(home.path().join("key")).expect("a key");
    assert!(key.trim().len() > 40, "the keyring holds a key");
    let files = find(home.path(), "mcp-logins.json");
    let kept = std::fs::read_to_string(files.first().expect("a file")).expect("the file");
    assert!(!kept.contains("token-of-the-login") && !kept.contains(key.trim()), "{kept}");

    // In a session whose keyring nobody unlocked the login stays closed, and the reason is said.
    let locked = session("\"$1\" mcp test web");
    assert!(!locked.status.success() && said(&locked).contains("keyring"), "{}", said(&locked));
}

fn find(folder: &std::path::Path, name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => find(&path, name),
            false => {
                if path.ends_with(name) {
                    vec![path]
                } else {
                    Vec::new()
                }
            }
        })
        .collect()
}

#[test]
fn the_document_of_this_client_is_printed() {
    let home = Home::new();
    let url = "https://me.example.com/dragoman.json";
    let printed = run(&home, &["mcp", "client-metadata", url, "--port", "8123"]);
    let document: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    assert_eq!(document["client_id"], url);
    assert!(document["redirect_uris"].to_string().contains("http://127.0.0.1:8123/callback"), "{document}");
    let nothing = run(&home, &["mcp", "client-metadata"]);
    assert!(!nothing.status.success(), "there is no default: {}", said(&nothing));
}
