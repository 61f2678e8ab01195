//! A small world with made-up secrets, in which escapes are attempted: a home, a workspace, a folder beside it, and services
//! that listen. Everything of it lies in one folder and goes with it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::places::Facts;

pub struct World {
    root: PathBuf,
    tool: PathBuf,
    temporary: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    #[cfg(unix)]
    _sockets: Vec<UnixListener>,
    #[cfg(unix)]
    _datagrams: UnixDatagram,
    abstract_name: String,
}

/// What the attempts of one lane may use; an attempt takes more.
const MEMORY_MEGABYTES: u64 = 192;

const CANARIES: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/key",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".mozilla/firefox/key4.db",
    ".config/google-chrome/Default/Cookies",
    "server.pem",
    ".bash_history",
    ".local/share/dragoman/credentials.json",
    ".pypirc",
    ".gem/credentials",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".hex/hex.config",
    ".config/dragoman/config.json",
];

/// Settings of package managers that hold a token.
const SETTINGS: &[(&str, &str)] = &[
    (".npmrc", "//registry.npmjs.org/:_authToken=CANARY\n"),
    (".yarnrc.yml", "npmAuthToken: CANARY\n"),
    (".m2/settings.xml", "<password>CANARY</password>\n"),
    (".gradle/gradle.properties", "sonatypePassword=CANARY\n"),
    (".config/pip/pip.conf", "index-url = https://me:CANARY@packages.example.com/simple\n"),
    (".nuget/NuGet/NuGet.Config", "<add key=\"ClearTextPassword\" value=\"CANARY\" />\n"),
];

/// Files of the workspace that hold secrets.
const WORKSPACE_SECRETS: &[&str] = &[".env", "config/prod.env", "certs/server.key"];

const ORDINARY: &[&str] =
    &[".bashrc", ".gitconfig", ".cargo/bin/cargo", ".cargo/config.toml", ".local/bin/ls"];

impl World {
    /// Makes it in a new folder of `parent`, with `tool` inside of it.
    pub fn make(parent: &Path, tool: &Path) -> io::Result<Self> {
        Self::make_with(parent, |root| {
            let own = root.join("tool");
            fs::copy(tool, &own).map(|_| own)
        })
    }

    /// Another one, for attempts at the same time, with the tool of this one.
    pub fn make_sibling(&self) -> io::Result<Self> {
        let parent = self.root.parent().unwrap_or(&self.root);
        Self::make_with(parent, |_| Ok(self.tool.clone()))
    }

    fn make_with(parent: &Path, tool: impl FnOnce(&Path) -> io::Result<PathBuf>) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("sandbox-doctor-{}-{number}-{}", std::process::id(), nanoseconds());
        let root = parent.join(&unique);
        fs::create_dir_all(&root)?;
        let root = root.canonicalize()?;
        let temporary = std::env::temp_dir().join(&unique);
        fs::create_dir(&temporary)?;
        fill(&root)?;
        let tool = tool(&root)?;
        let abstract_name = format!("dragoman-{unique}");
        #[cfg(unix)]
        let mut sockets = vec![
            UnixListener::bind(root.join("home/agent.sock"))?,
            UnixListener::bind(temporary.join("s.sock"))?,
        ];
        #[cfg(unix)]
        sockets.extend(odd_sockets(&root.join("home"))?);
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?;
            sockets.push(UnixListener::bind_addr(&address)?);
        }
        #[cfg(unix)]
        for socket in &mut sockets {
            socket.set_nonblocking(true)?;
        }
        #[cfg(unix)]
        let root_of_sockets = root.join("home/sockets");
        Ok(Self {
            root,
            tool,
            temporary,
            tcp: TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            udp: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            #[cfg(unix)]
            _sockets: sockets,
            #[cfg(unix)]
            _datagrams: UnixDatagram::bind(root_of_sockets.join("datagram.sock"))?,
            abstract_name,
        })
    }

    /// A home in `/tmp`, as test machines have it: nothing of it but the workspace is seen inside.
    pub fn is_in_temporary_folder(&self) -> bool {
        ["/tmp", "/var/tmp"].iter().any(|folder| self.root.starts_with(folder))
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.join("home/work")
    }

    /// Files of the workspace that no command may open.
    pub fn unreadable(&self) -> Vec<PathBuf> {
        WORKSPACE_SECRETS.iter().map(|path| self.workspace().join(path)).collect()
    }

    /// The facts of a sandbox for it.
    pub fn facts(&self, helper: PathBuf, path: String) -> Facts {
        let home = self.home();
        Facts {
            helper,
            roots: vec![self.workspace()],
            own_folders: vec![home.join(".config/dragoman"), home.join(".local/share/dragoman")],
            cache: home.join(".cache/dragoman"),
            temporary: std::env::temp_dir(),
            variables: [("PATH".to_owned(), path)].into(),
            home,
            memory_megabytes: Some(MEMORY_MEGABYTES),
            ..Facts::default()
        }
    }

    /// The variables that the scripts use. `victim` is a process outside that was started with a canary.
    pub fn variables(&self, victim: u32) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.display().to_string();
        let port =
            |address: io::Result<std::net::SocketAddr>| address.map(|address| address.port().to_string());
        vec![
            ("HOME", text(self.home())),
            ("OUTSIDE", text(self.root.join("outside"))),
            ("TMPFOLDER", text(self.temporary.clone())),
            (
                "TOOL",
                format!(
                    "{}\n{}\n{}",
                    text(self.tool.clone()),
                    crate::HELPER_ARGUMENT,
                    super::ATTEMPT_ARGUMENT
                ),
            ),
            ("VICTIM", victim.to_string()),
            ("PARENT", std::process::id().to_string()),
            ("PORT", port(self.tcp.local_addr()).unwrap_or_default()),
            ("UDP", port(self.udp.local_addr()).unwrap_or_default()),
            ("EVIL", text(self.root.join("outside/evil"))),
            ("SOCKET", text(self.home().join("agent.sock"))),
            ("SOCKETS", text(self.home().join("sockets"))),
            ("TMPSOCKET", text(self.temporary.join("s.sock"))),
            ("ABSTRACT", self.abstract_name.clone()),
        ]
    }

    /// A file that exists once the program `$EVIL` has run.
    pub fn mark_of_later(&self) -> PathBuf {
        self.root.join("outside/ran")
    }

    /// Everything outside of the workspace and all that is protected in it: what no attempt may change.
    pub fn fingerprint(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let skipped =
            [self.workspace(), self.tool.clone(), self.home().join(".cache"), self.home().join(".npm")];
        collect(&self.root, &skipped, &mut files);
        for name in [".git/hooks", ".git/modules", ".husky", ".dragoman", "dotfiles"] {
            collect(&self.workspace().join(name), &[], &mut files);
        }
        let config = self.workspace().join(".git/config");
        let text = fs::read(&config).unwrap_or_default();
        files.insert(config, text);
        files
    }

    /// As it was made, where an attempt broke something or left something behind.
    pub fn repair(&self) -> io::Result<()> {
        let made = [".git", ".husky", ".dragoman", ".env", "config", "certs", "dotfiles", "service.sock"];
        for entry in fs::read_dir(self.workspace())?.flatten() {
            if !made.iter().any(|name| entry.file_name() == *name) {
                remove(&entry.path());
            }
        }
        remove(&self.root.join("outside"));
        for name in [".git", ".husky", "dotfiles"] {
            remove(&self.workspace().join(name));
        }
        fill(&self.root)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

fn remove(path: &Path) {
    let is_folder = path.symlink_metadata().is_ok_and(|kind| kind.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Sockets whose names say little: the kernel's table shows the name that was bound, not the path of today.
#[cfg(unix)]
fn odd_sockets(home: &Path) -> io::Result<Vec<UnixListener>> {
    use std::os::fd::AsRawFd;
    let folder = home.join("sockets");
    fs::create_dir_all(&folder)?;
    let plain = |name: &str| UnixListener::bind(folder.join(name));
    let mut sockets = vec![plain("a b.sock")?, plain("first.sock")?, plain("linked.sock")?];
    fs::rename(folder.join("first.sock"), folder.join("renamed.sock"))?;
    fs::hard_link(folder.join("linked.sock"), folder.join("second.sock"))?;
    fs::remove_file(folder.join("linked.sock"))?;
    let open = fs::File::open(&folder)?;
    let through = format!("/proc/self/fd/{}/unknown.sock", open.as_raw_fd());
    // Only where there is a /proc.
    sockets.extend(UnixListener::bind(through));
    sockets.push(UnixListener::bind(home.join("work/service.sock"))?);
    Ok(sockets)
}

/// A folder of dotfiles in the workspace, with links to it: the target of one is missing.
#[cfg(unix)]
fn fill_dotfiles(home: &Path) -> io::Result<()> {
    let dotfiles = home.join("work/dotfiles");
    for folder in ["dragoman", "shell"] {
        fs::create_dir_all(dotfiles.join(folder))?;
    }
    fs::write(dotfiles.join("dragoman/grants.json"), "{}\n")?;
    fs::write(dotfiles.join("zshrc"), "ordinary\n")?;
    for (link, target) in [
        (".local/share/dragoman/grants.json", "../../../work/dotfiles/dragoman/grants.json"),
        (".zshrc", "work/dotfiles/zshrc"),
        (".bash_profile", "work/dotfiles/shell/bash_profile"),
    ] {
        if home.join(link).symlink_metadata().is_err() {
            std::os::unix::fs::symlink(target, home.join(link))?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn fill_dotfiles(_home: &Path) -> io::Result<()> {
    Ok(())
}

/// Settings with tokens, and secrets of the workspace.
fn fill_secrets(write: &dyn Fn(&str, &str) -> io::Result<()>) -> io::Result<()> {
    for (path, text) in SETTINGS {
        write(&format!("home/{path}"), text)?;
    }
    for path in WORKSPACE_SECRETS {
        write(&format!("home/work/{path}"), "API_TOKEN=SECRET-CANARY\n")?;
    }
    Ok(())
}

fn fill(root: &Path) -> io::Result<()> {
    let write = |path: &str, text: &str| -> io::Result<()> {
        let path = root.join(path);
        // A file system may write what replaces a file to the disk at once, which takes milliseconds for each.
        if fs::read(&path).is_ok_and(|known| known == text.as_bytes()) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    for path in CANARIES {
        write(&format!("home/{path}"), "CANARY\n")?;
    }
    fill_secrets(&write)?;
    for path in ORDINARY {
        write(&format!("home/{path}"), "ordinary\n")?;
    }
    for folder in [".config/autostart", ".cargo/registry", ".cache"] {
        fs::create_dir_all(root.join("home").join(folder))?;
    }
    fs::create_dir_all(root.join("outside/empty"))?;
    write("outside/file", "outside\n")?;
    let evil = root.join("outside/evil");
    write("outside/evil", &format!("#!/bin/sh\ntouch {}\n", root.join("outside/ran").display()))?;
    platform::set_mode(&evil, 0o755)?;
    for folder in [
        ".git/hooks",
        ".git/objects",
        ".git/refs/heads",
        ".git/modules/sub/hooks",
        ".git/modules/sub/objects",
        ".git/modules/sub/refs",
        ".husky",
        ".dragoman",
    ] {
        fs::create_dir_all(root.join("home/work").join(folder))?;
    }
    for repository in ["home/work/.git", "home/work/.git/modules/sub"] {
        write(&format!("{repository}/HEAD"), "ref: refs/heads/main\n")?;
        write(
            &format!("{repository}/config"),
            "[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = ../shared.inc\n",
        )?;
    }
    fill_dotfiles(&root.join("home"))
}

fn collect(folder: &Path, skipped: &[PathBuf], files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        match kind {
            Ok(_) if skipped.contains(&path) => {}
            Ok(kind) if kind.is_dir() => {
                files.insert(path.clone(), Vec::new());
                collect(&path, skipped, files);
            }
            Ok(kind) if kind.is_file() => {
                drop(files.insert(path.clone(), fs::read(&path).unwrap_or_default()))
            }
            Ok(_) | Err(_) => drop(files.insert(path, Vec::new())),
        }
    }
}

fn nanoseconds() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().subsec_nanos()
}
