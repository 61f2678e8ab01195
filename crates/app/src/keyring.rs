//! The keyring of the operating system, reached by the program that comes with it: `secret-tool` (libsecret) on Linux,
//! `security` on macOS. Decision 0010 says why no library.
//!
//! Invariants: a call ends after two seconds; the secret is never among a program's arguments.

use std::ffi::OsString;
use std::time::Duration;

use domain::{CancellationToken, Failure};
use mcp::Keyring;
use process::{End, Finished, Spawn};

const TIMEOUT: Duration = Duration::from_secs(2);
const SERVICE: &str = "dragoman";
const ACCOUNT: &str = "mcp-logins";
/// What `security` says of a secret that is not there.
const NOT_FOUND_ON_MACOS: i32 = 44;

pub(crate) struct SystemKeyring {
    /// The environment of the user: the way to the session's bus.
    environment: Vec<(OsString, OsString)>,
    is_macos: bool,
}

impl SystemKeyring {
    pub(crate) fn new(environment: &config::Environment) -> Self {
        let of = |name: &str| Some((name.into(), environment.var(name)?.into()));
        let names = ["PATH", "HOME", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"];
        Self {
            environment: names.iter().filter_map(|name| of(name)).collect(),
            is_macos: platform::System::CURRENT == platform::System::MacOs,
        }
    }

    fn program(&self) -> &'static str {
        if self.is_macos { "security" } else { "secret-tool" }
    }

    /// Runs the program on a thread of its own, because the caller may be a task of any runtime.
    fn run(&self, arguments: &[&str], input: Option<String>) -> Result<Finished, Failure> {
        let spawn = Spawn::new(self.program())
            .args(arguments)
            .clear_environment()
            .envs(self.environment.clone())
            .input(input.unwrap_or_default())
            .deadline(TIMEOUT);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            Some(runtime.block_on(spawn.run(&CancellationToken::new())))
        };
        let done = std::thread::spawn(work).join().ok().flatten();
        let finished = match done {
            Some(Ok(finished)) => finished,
            Some(Err(error)) => return Err(self.failure(&error.to_string())),
            None => return Err(self.failure("it could not be started")),
        };
        match finished.end {
            End::DeadlinePassed => Err(self.failure("it did not answer within 2 s; it may be locked")),
            End::Exited(_) | End::Signalled(_) | End::Stopped => Ok(finished),
        }
    }

    fn failure(&self, why: &str) -> Failure {
        let why = why.trim().trim_end_matches('.');
        Failure::config(format!("The keyring cannot be used ({}): {why}.", self.program()))
            .hint("Unlock it, or set `mcpLogins` to \"file\".")
    }
}

impl Keyring for SystemKeyring {
    fn read(&self) -> Result<Option<String>, Failure> {
        let finished = match self.is_macos {
            true => self.run(&["find-generic-password", "-s", SERVICE, "-a", ACCOUNT, "-w"], None)?,
            false => self.run(&["lookup", "service", SERVICE, "account", ACCOUNT], None)?,
        };
        let said = finished.stderr.text();
        let is_missing = match finished.end {
            End::Exited(NOT_FOUND_ON_MACOS) => self.is_macos,
            // `secret-tool` says nothing of a secret that is not there, and why of everything else.
            End::Exited(1) => !self.is_macos && said.trim().is_empty(),
            End::Exited(_) | End::Signalled(_) | End::DeadlinePassed | End::Stopped => false,
        };
        match finished.success() {
            true => Ok(Some(finished.stdout.text().trim().to_owned()).filter(|secret| !secret.is_empty())),
            false if is_missing => Ok(None),
            false => Err(self.failure(&said)),
        }
    }

    fn write(&self, secret: &str) -> Result<(), Failure> {
        let finished = match self.is_macos {
            true => {
                let line = format!("add-generic-password -U -s {SERVICE} -a {ACCOUNT} -w {secret}\n");
                self.run(&["-i"], Some(line))?
            }
            false => {
                let label = "--label=Dragoman: logins of MCP servers";
                let arguments = ["store", label, "service", SERVICE, "account", ACCOUNT];
                self.run(&arguments, Some(secret.to_owned()))?
            }
        };
        match finished.success() {
            true => Ok(()),
            false => Err(self.failure(&finished.stderr.text())),
        }
    }
}
