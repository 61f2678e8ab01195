//! The keyring of the operating system, reached by the program that comes with it: `secret-tool` (libsecret) on Linux,
//! `security` on macOS; on Windows by the calls of its Credential Manager. Decision 0004 says why no library is used.
//!
//! Invariants: a call ends after two seconds; the secret is never among a program's arguments.

use std::ffi::OsString;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use domain::{CancellationToken, Failure};
use mcp::Keyring;
use platform::System;
use process::{End, Finished, Spawn};

const TIMEOUT: Duration = Duration::from_secs(2);
const LATE: &str = "it did not answer within 2 s; it may be locked";
const SERVICE: &str = "dragoman";
const ACCOUNT: &str = "mcp-logins";
/// Its name in the Credential Manager of Windows.
const CREDENTIAL: &str = "dragoman/mcp-logins";
/// What `security` says of a secret that is not there.
const NOT_FOUND_ON_MACOS: i32 = 44;

pub(crate) struct SystemKeyring {
    /// The environment of the user: the way to the session's bus.
    environment: Vec<(OsString, OsString)>,
    system: System,
}

impl SystemKeyring {
    pub(crate) fn new(environment: &config::Environment) -> Self {
        let of = |name: &str| Some((name.into(), environment.var(name)?.into()));
        let names = ["PATH", "HOME", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY"];
        Self { environment: names.iter().filter_map(|name| of(name)).collect(), system: System::CURRENT }
    }

    fn program(&self) -> &'static str {
        match self.system {
            System::MacOs => "security",
            System::Linux => "secret-tool",
            System::Windows => "Credential Manager",
        }
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
            End::DeadlinePassed => Err(self.failure(LATE)),
            End::Exited(_) | End::Signalled(_) | End::Stopped => Ok(finished),
        }
    }

    /// Makes a call of the system on a thread of its own, which is left alone when it takes too long.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(call()));
        match receiver.recv_timeout(TIMEOUT) {
            Ok(result) => result.map_err(|error| self.failure(&error.to_string())),
            Err(_) => Err(self.failure(LATE)),
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
        let finished = match self.system {
            System::Windows => return self.call(|| platform::credentials::read(CREDENTIAL)),
            System::MacOs => {
                self.run(&["find-generic-password", "-s", SERVICE, "-a", ACCOUNT, "-w"], None)?
            }
            System::Linux => self.run(&["lookup", "service", SERVICE, "account", ACCOUNT], None)?,
        };
        let said = finished.stderr.text();
        let is_missing = match finished.end {
            End::Exited(NOT_FOUND_ON_MACOS) => self.system == System::MacOs,
            // `secret-tool` says nothing of a secret that is not there, and why of everything else.
            End::Exited(1) => self.system == System::Linux && said.trim().is_empty(),
            End::Exited(_) | End::Signalled(_) | End::DeadlinePassed | End::Stopped => false,
        };
        match finished.success() {
            true => Ok(Some(finished.stdout.text().trim().to_owned()).filter(|secret| !secret.is_empty())),
            false if is_missing => Ok(None),
            false => Err(self.failure(&said)),
        }
    }

    fn write(&self, secret: &str) -> Result<(), Failure> {
        let finished = match self.system {
            System::Windows => {
                let secret = secret.to_owned();
                return self.call(move || platform::credentials::write(CREDENTIAL, &secret));
            }
            System::MacOs => {
                let line = format!("add-generic-password -U -s {SERVICE} -a {ACCOUNT} -w {secret}\n");
                self.run(&["-i"], Some(line))?
            }
            System::Linux => {
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
