//! A terminal for tests: the real program in tmux, keys sent, the screen read. Waits poll, with a deadline.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Home;

/// No test waits longer than this for the screen to show something.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct Screen {
    socket: PathBuf,
}

/// How the program is started.
pub(crate) struct Start<'a> {
    /// `chat`, or nothing.
    pub command: &'a str,
    pub arguments: &'a [&'a str],
    pub environment: &'a [(&'a str, &'a str)],
    pub columns: u16,
    pub rows: u16,
    /// The background that the terminal tells when it is asked.
    pub background: Option<&'a str>,
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self { command: "chat", arguments: &[], environment: &[], columns: 80, rows: 24, background: None }
    }
}

impl Screen {
    /// `dragoman chat`; when it has left, the terminal says how and what state it is in.
    pub(crate) fn start(home: &Home, config: &Value, start: &Start<'_>) -> Self {
        // A server that is still ending must not be met again.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let socket = home.path().join(format!("tmux-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let screen = Self { socket };
        let config = home.write("config-of-the-test.json", &config.to_string());
        let extra: Vec<String> =
            start.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let arguments: Vec<String> = start.arguments.iter().map(|argument| quoted(argument)).collect();
        let line = format!(
            "cd {}; env -i PATH={} HOME={} TERM=\"$TERM\" DRAGOMAN_CONFIG=\"$(cat {})\" {} {} {} {}; \
             echo \"left with $?\"; stty -a; exec sleep 600",
            quoted(&home.workspace().display().to_string()),
            quoted(&std::env::var("PATH").unwrap_or_default()),
            quoted(&home.path().display().to_string()),
            quoted(&config.display().to_string()),
            extra.join(" "),
            quoted(env!("CARGO_BIN_EXE_dragoman")),
            start.command,
            arguments.join(" "),
        );
        let size = [start.columns.to_string(), start.rows.to_string()];
        let style = format!("bg={}", start.background.unwrap_or("default"));
        let server =
            ["-f", "/dev/null", "start-server", ";", "set-option", "-g", "window-style", &style, ";"];
        let session = ["new-session", "-d", "-x", &size[0], "-y", &size[1], &line];
        let started = screen.tmux(&[&server[..], &session[..]].concat());
        assert!(started.status.success(), "tmux: {}", String::from_utf8_lossy(&started.stderr));
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).env_remove("TMUX");
        command.output().expect("tmux is installed (scripts/setup does it)")
    }

    /// Named keys: `Enter`, `Escape`, `C-c`, `y`.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let sent = self.tmux(&[&["send-keys"], keys].concat());
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    }

    /// Text as if it were typed.
    pub(crate) fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Bytes as a terminal would send them: codes of the mouse, and of keys that tmux has no name for.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let codes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        self.keys(&[&["-H"], &codes[..]].concat());
    }

    /// A prompt: typed, seen, sent.
    pub(crate) fn say(&self, text: &str) {
        self.text(text);
        let end: String = text.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
        self.until(&end);
        self.keys(&["Enter"]);
    }

    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let sizes = [columns.to_string(), rows.to_string()];
        self.tmux(&["resize-window", "-x", &sizes[0], "-y", &sizes[1]]);
    }

    /// What is on the screen.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// The same with all that was scrolled away.
    pub(crate) fn scrollback(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]).stdout).into_owned()
    }

    /// Everything that the program writes from now on goes to this file, too.
    pub(crate) fn record(&self, file: &std::path::Path) {
        let line = format!("cat > {}", quoted(&file.display().to_string()));
        assert!(self.tmux(&["pipe-pane", &line]).status.success());
    }

    /// A program has replaced the terminal's own text for a while.
    pub(crate) fn is_alternate(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).stdout.starts_with(b"1")
    }

    /// Whether the program lets the terminal report buttons and drags of the mouse.
    pub(crate) fn mouse_flags(&self) -> String {
        let flags = self.tmux(&["display-message", "-p", "#{mouse_any_flag} #{mouse_button_flag}"]);
        String::from_utf8_lossy(&flags.stdout).trim().to_owned()
    }

    /// The same with colors.
    pub(crate) fn colored(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p", "-e"]).stdout).into_owned()
    }

    /// Waits until this is on the screen.
    pub(crate) fn until(&self, text: &str) -> String {
        self.until_it(&format!("“{text}” on the screen"), |shown| shown.contains(text))
    }

    pub(crate) fn until_gone(&self, text: &str) -> String {
        self.until_it(&format!("“{text}” off the screen"), |shown| !shown.contains(text))
    }

    pub(crate) fn until_it(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let shown = self.shown();
            if fits(&shown) {
                return shown;
            }
            assert!(Instant::now() < deadline, "waited for {what}; there was:\n{shown}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The process of the chat.
    pub(crate) fn pid(&self) -> u32 {
        let pane = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = String::from_utf8_lossy(&pane.stdout).trim().to_owned();
        let children = Command::new("ps").args(["-o", "pid=,comm=", "--ppid", &shell]).output().expect("ps");
        let text = String::from_utf8_lossy(&children.stdout).into_owned();
        let line = text.lines().find(|line| line.contains("dragoman")).expect("the chat runs");
        line.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a pid")
    }

    pub(crate) fn kill(&self, signal: &str) {
        Command::new("kill").args([signal, &self.pid().to_string()]).status().expect("kill");
    }

    /// The program has left with this code and the terminal is as it was: lines are edited and echoed again.
    pub(crate) fn until_left(&self, code: i32) -> String {
        let shown = self
            .until_it("the end of the chat", |shown| shown.contains("left with") && shown.contains("echok"));
        assert!(shown.contains(&format!("left with {code}")), "{shown}");
        for mode in [" icanon", " echo ", " isig", " opost"] {
            assert!(
                shown.replace('\n', " ").contains(mode),
                "the terminal is not restored ({mode}):\n{shown}"
            );
        }
        let screen =
            self.tmux(&["display-message", "-p", "#{alternate_on} #{bracket_paste_flag} #{cursor_flag}"]);
        let screen = String::from_utf8_lossy(&screen.stdout).trim().to_owned();
        assert!(screen.starts_with('0') && screen.ends_with('1'), "alternate screen or cursor: {screen}");
        shown
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
