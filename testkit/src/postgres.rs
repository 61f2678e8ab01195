//! A real PostgreSQL server for one test: its own folder, a private socket, another user than root.

#![allow(clippy::disallowed_methods, reason = "it starts a server")]

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A start, a recovery included, may take so long on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Shell lines that make an authority (`ca.pem`) and a server's certificate for `localhost` in the current folder.
pub const CERTIFICATES: [&str; 3] = [
    "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority",
    "openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
    "echo subjectAltName=DNS:localhost > san && openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key \
     -CAcreateserial -out server.crt -days 2 -extfile san",
];

pub struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    server: Option<Child>,
    options: Vec<String>,
    port: u16,
}

impl PostgresServer {
    /// `None` where PostgreSQL is not installed; the test then says so and ends.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// With further settings, as `name=value`.
    pub fn start_with(options: &[&str]) -> Option<Self> {
        let mut server = Self::prepare(options)?;
        server.resume();
        Some(server)
    }

    /// A server that takes connections over TCP with a certificate for `localhost`; the authority is in `ca.pem` of its
    /// folder.
    pub fn start_with_tls() -> Option<Self> {
        let mut server = Self::prepare(&["listen_addresses=localhost", "ssl=on"])?;
        server.port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).ok()?.port();
        for line in CERTIFICATES {
            let mut command = server.command_at("/bin/sh".as_ref());
            let made = command.args(["-c", line]).status();
            if !made.is_ok_and(|status| status.success()) {
                crate::skip("openssl cannot make certificates here");
                return None;
            }
        }
        for (name, file) in [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")] {
            server.options.push(format!("{name}={}", server.folder.join(file).display()));
        }
        server.resume();
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes the files of a server and does not start it.
    fn prepare(options: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skip("PostgreSQL is not installed (scripts/setup test installs it)");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("dragoman-pg-{}-{}", std::process::id(), unique()));
        std::fs::create_dir(&folder).expect("a folder");
        let user = other_user();
        if let Some((user, group)) = user {
            chown(&folder, Some(user), Some(group)).expect("another owner");
        }
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let server = Self { folder, programs, user, server: None, options, port: 5432 };
        let data = server.folder.join("data");
        let made = server
            .command("initdb")
            .args(["--no-sync", "--auth=trust", "--no-locale", "--encoding=UTF8", "--username=me", "-D"])
            .arg(data)
            .status()
            .expect("initdb");
        assert!(made.success(), "initdb failed");
        Some(server)
    }

    /// Makes an empty database and returns its address.
    pub fn database(&self, name: &str) -> String {
        self.query("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.address(name)
    }

    pub fn address(&self, name: &str) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://me@{socket}/{name}")
    }

    /// The path of the server's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a statement with `psql` and returns what it prints.
    pub fn query(&self, database: &str, statement: &str) -> String {
        let output = self
            .command("psql")
            .args(["-X", "-A", "-t", "-q", "-U", "me", "-d", database, "-c", statement, "-h"])
            .arg(&self.folder)
            .stderr(Stdio::inherit())
            .stdout(Stdio::piped())
            .output()
            .expect("psql");
        assert!(output.status.success(), "psql: {statement}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn answers(&self) -> bool {
        let ready = self.command("pg_isready").arg("-q").arg("-h").arg(&self.folder).status();
        ready.is_ok_and(|status| status.success())
    }

    /// Starts another server that follows this one synchronously.
    pub fn replicate(&self) -> Self {
        let folder = self.folder.with_extension(format!("replica-{}", unique()));
        std::fs::create_dir(&folder).expect("a folder");
        if let Some((user, group)) = self.user {
            chown(&folder, Some(user), Some(group)).expect("another owner");
        }
        let copied = self
            .command("pg_basebackup")
            .args(["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "-U", "me", "-h"])
            .arg(&self.folder)
            .arg("-D")
            .arg(folder.join("data"))
            .status()
            .expect("pg_basebackup");
        assert!(copied.success(), "pg_basebackup failed");
        let mut replica = Self {
            folder,
            programs: self.programs.clone(),
            user: self.user,
            server: None,
            options: Vec::new(),
            port: self.port,
        };
        replica.resume();
        // From now on a commit is acknowledged when the replica has it.
        self.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.query("postgres", "SELECT pg_reload_conf()");
        let deadline = Instant::now() + START_TIMEOUT;
        while self.query("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
            != "1"
        {
            assert!(Instant::now() < deadline, "the replica does not follow");
            std::thread::sleep(Duration::from_millis(50));
        }
        replica
    }

    /// Makes a replica the server that takes writes.
    pub fn promote(&self) {
        assert_eq!(self.query("postgres", "SELECT pg_promote()"), "t", "the replica is not promoted");
    }

    /// `kill -9` of the server and all its processes.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let group = format!("-{}", server.id());
            let _ = Command::new("kill").args(["-9", "--", &group]).status();
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts the server again and waits until it answers.
    pub fn resume(&mut self) {
        self.begin();
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if self.answers() {
                return;
            }
            // A killed server leaves processes behind that still have to end.
            let ended = self.server.as_mut().is_some_and(|server| matches!(server.try_wait(), Ok(Some(_))));
            if ended {
                self.begin();
            }
            assert!(Instant::now() < deadline, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Starts the server and does not wait.
    pub fn begin(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        for option in ["listen_addresses=", "shared_buffers=16MB", "max_connections=100", "wal_recycle=off"] {
            command.args(["-c", option]);
        }
        for option in &self.options {
            command.args(["-c", option]);
        }
        self.server = Some(command.process_group(0).spawn().expect("postgres"));
    }

    fn command(&self, program: &str) -> Command {
        self.command_at(&self.programs.join(program))
    }

    fn command_at(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(&self.folder);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        command.env("PGPORT", self.port.to_string());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The folder with the server's programs, the newest version first.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.push("/usr/bin".into());
    folders
        .into_iter()
        .rev()
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// PostgreSQL refuses to run as root.
fn other_user() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    is_root.then(|| find("postgres").or_else(|| find("nobody")).unwrap_or((65534, 65534)))
}

fn unique() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos()
}
