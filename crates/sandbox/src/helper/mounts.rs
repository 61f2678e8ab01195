//! The file system that the command sees. The real one becomes read-only; then, from the root downwards, writable
//! folders are laid over it, protected paths over these, and empty covers over secrets.
//!
//! Invariants: copies of folders are taken before anything is covered; a writable copy is opened without following a
//! link; each folder between a writable one and a protected or hidden path is a mount of its own, so that none can be
//! renamed.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, mount, mount_change, move_mount};

use super::git_copy::GitCopy;
use super::guards::{self, Guards};
use super::mount_calls::{clone, own_tmpfs, own_tmpfs_with};
use super::ways::Ways;
use super::{Setup, SetupError, Step};
use crate::lists::REPLACED;
use crate::policy::Policy;
use crate::real_path::real_path;

const READ_ONLY: u64 = 0x1;
const NO_SETUID: u64 = 0x2;

/// Devices without a memory of their own.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Before anything is mounted: nothing of it is seen outside.
pub(super) fn make_private() -> Setup<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step("private mounts")
}

/// Returns the copies of git directories, from which state is taken over when the command has ended.
pub(super) fn build(policy: &Policy) -> Setup<Vec<GitCopy>> {
    let temporary = Temporary::copy(&policy.temporary)?;
    let devices = copy_devices();
    let copies: Vec<GitCopy> = policy.git_copies.iter().filter_map(GitCopy::make).collect();
    let mut layers = collect_layers(policy, &copies)?;
    layers.extend(covers(policy)?);
    let ways = Ways::find(&policy.exposed);
    // The root first; of two for one path, the stricter one last.
    layers.sort_by_key(|layer| (layer.path.components().count(), layer.rank));
    set_attributes(CWD, c"/", READ_ONLY | NO_SETUID).step("read-only root")?;
    own_devices(devices, policy.memory)?;
    own_tmpfs("/run").step("/run")?;
    temporary.attach()?;
    ways.make();
    for layer in layers {
        layer.attach()?;
    }
    for folder in [c"/run", c"/dev"] {
        set_attributes_of_one(folder, READ_ONLY | NO_SETUID).step("read-only folders")?;
    }
    Ok(copies)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Exposed,
    Writable,
    /// Its own entries stay as they are; what is in them may be writable.
    Fixed,
    Protected,
    Hidden,
}

/// A copy of a part of the file system, and where it is laid.
struct Layer {
    path: PathBuf,
    rank: Rank,
    tree: OwnedFd,
    is_folder: bool,
}

impl Layer {
    fn attach(&self) -> Setup<()> {
        let attached = match attach(&self.tree, &self.path) {
            // A secret or protected path that can no longer be reached needs no cover.
            Err(rustix::io::Errno::NOENT) if self.rank > Rank::Fixed => return Ok(()),
            Err(rustix::io::Errno::NOENT) => {
                make_place(&self.path, self.is_folder).step(&self.path.display().to_string())?;
                attach(&self.tree, &self.path)
            }
            attached => attached,
        };
        attached.step(&self.path.display().to_string())
    }
}

fn collect_layers(policy: &Policy, copies: &[GitCopy]) -> Setup<Vec<Layer>> {
    let mut layers = Vec::new();
    let real =
        |paths: &[PathBuf]| -> Vec<PathBuf> { paths.iter().filter_map(|path| real_path(path)).collect() };
    let writable = real(&policy.writable);
    let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
    let mut protected = real(&policy.protected);
    // A git directory that could not be copied is read-only; a link to one that was leads to the copy.
    let is_copied = |folder: &PathBuf| copies.iter().any(|copy| copy.folder == *folder);
    let is_in_copy = |path: &PathBuf| copies.iter().any(|copy| path.starts_with(&copy.folder));
    let wanted = policy.git_copies.iter().filter_map(|copy| copy.folder.canonicalize().ok());
    protected.extend(wanted.filter(|folder| !is_copied(folder)));
    // Everything else is read-only anyway.
    protected.retain(|path| !is_copied(path) && (is_inside(path) || is_in_copy(path)));
    let hidden = real(&policy.hidden);
    let is_kept = |path: &Path| protected.iter().chain(&hidden).any(|kept| path.starts_with(kept));
    let mut guards = Guards::find(&policy.guarded, &writable);
    guards.fixed.retain(|path| !is_kept(path));
    let fixed: Vec<PathBuf> =
        protected.iter().chain(copies.iter().map(|copy| &copy.folder)).cloned().collect();
    guards.pinned.extend(between(&writable, &fixed, &hidden));
    let mut open: BTreeSet<PathBuf> = guards.pinned;
    open.extend(guards.fixed.iter().flat_map(|folder| guards::entries_of(folder)));
    open.retain(|path| !is_kept(path));
    open.extend(writable.iter().filter(|path| !protected.contains(path)).cloned());
    // The real folders must not be laid over a copy.
    open.retain(|path| !guards.fixed.contains(path) && !is_in_copy(path));
    for copied in copies {
        let layer = copy(&copied.merged, Rank::Writable)?;
        layers.extend(layer.map(|layer| Layer { path: copied.folder.clone(), ..layer }));
    }
    let kept_roots: Vec<PathBuf> = writable.iter().filter(|path| protected.contains(path)).cloned().collect();
    for (paths, rank) in [
        (open, Rank::Writable),
        (guards.fixed, Rank::Fixed),
        (protected.into_iter().collect(), Rank::Protected),
    ] {
        for path in paths {
            layers.extend(copy(&path, rank)?);
        }
    }
    // A workspace that is read-only as a whole must be there, also below a folder that is made anew.
    for path in kept_roots {
        layers.extend(copy(&path, Rank::Fixed)?);
    }
    layers.extend(shown_layers(policy, &writable, &hidden)?);
    Ok(layers)
}

/// What is shown of folders that are made anew. What is writable anyway must not become read-only by that, and what is hidden
/// stays so.
fn shown_layers(policy: &Policy, writable: &[PathBuf], hidden: &[PathBuf]) -> Setup<Vec<Layer>> {
    let is_shown = |path: &PathBuf| {
        REPLACED.iter().any(|folder| path.starts_with(folder))
            && !writable.iter().chain(hidden).any(|folder| path.starts_with(folder))
    };
    let mut layers = Vec::new();
    for path in policy.exposed.iter().filter_map(|path| real_path(path)).filter(is_shown) {
        layers.extend(copy(&path, Rank::Exposed)?);
    }
    Ok(layers)
}

/// Every folder below a writable one and above a protected or hidden path.
fn between(writable: &[PathBuf], protected: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |path: &Path| writable.iter().any(|root| path.starts_with(root) && path != root);
    let ancestors = protected.iter().chain(hidden).flat_map(|path| path.ancestors().skip(1));
    ancestors.filter(|path| inside(path)).map(Path::to_owned).collect()
}

/// `None`: there is no such path, or it is a link by now.
fn copy(path: &Path, rank: Rank) -> Setup<Option<Layer>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(place) => place,
        Err(_) => return Ok(None),
    };
    let name = || path.display().to_string();
    let kind = rustix::fs::fstat(&place).step(&name())?.st_mode;
    let is_folder = rustix::fs::FileType::from_raw_mode(kind).is_dir();
    let tree = clone(&place).step(&name())?;
    let attributes = if rank == Rank::Writable { NO_SETUID } else { READ_ONLY | NO_SETUID };
    set_attributes(tree.as_fd(), c"", attributes).step(&name())?;
    Ok(Some(Layer { path: path.to_owned(), rank, tree, is_folder }))
}

fn attach(tree: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    move_mount(tree, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Only in a folder that this function's caller made itself: everything else is read-only by now.
fn make_place(path: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(path).map(drop)
}

/// Empty covers: a folder that cannot be opened, an empty file, and a file that cannot be opened.
fn covers(policy: &Policy) -> Setup<Vec<Layer>> {
    let stage = &policy.temporary;
    own_tmpfs(stage).step("covers")?;
    let [folder, file, closed] = ["folder", "file", "closed"].map(|name| stage.join(name));
    fs::create_dir(&folder).step("covers")?;
    fs::File::create(&file).step("covers")?;
    fs::File::create(&closed).step("covers")?;
    for (path, mode) in [(&folder, 0o000), (&file, 0o444), (&closed, 0o000)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).step("covers")?;
    }
    let mut layers = Vec::new();
    let hidden = policy.hidden.iter().map(|path| (path, &file));
    let unreadable = policy.unreadable.iter().map(|path| (path, &closed));
    let covered = hidden.chain(unreadable).filter_map(|(path, cover)| Some((real_path(path)?, cover)));
    for (path, cover) in covered {
        let Ok(kind) = path.symlink_metadata() else { continue };
        let source = if kind.is_dir() { &folder } else { cover };
        if let Some(cover) = copy(&source.canonicalize().step("covers")?, Rank::Hidden)? {
            layers.push(Layer { path, ..cover });
        }
    }
    // It stays mounted: unmounting waits for the whole kernel, and nothing of it is of use to a command.
    Ok(layers)
}

/// The folders that take the place of `/tmp` and `/var/tmp`.
struct Temporary(Vec<Layer>);

impl Temporary {
    fn copy(folder: &Path) -> Setup<Self> {
        let mut layers = Vec::new();
        for (name, path) in [("tmp", "/tmp"), ("var", "/var/tmp")] {
            let Ok(path) = Path::new(path).canonicalize() else { continue };
            let source = folder.join(name).canonicalize().step("the temporary folder")?;
            let layer = copy(&source, Rank::Writable)?;
            let layer = layer.ok_or_else(|| SetupError("the temporary folder is gone".to_owned()))?;
            layers.push(Layer { path, ..layer });
        }
        Ok(Self(layers))
    }

    fn attach(self) -> Setup<()> {
        self.0.iter().try_for_each(Layer::attach)
    }
}

fn copy_devices() -> Vec<(&'static str, OwnedFd)> {
    let open = |name: &'static str| {
        let path = Path::new("/dev").join(name);
        let place =
            openat2(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        Some((name, clone(&place.ok()?).ok()?))
    };
    DEVICES.iter().filter_map(|name| open(name)).collect()
}

fn own_devices(devices: Vec<(&'static str, OwnedFd)>, memory: Option<u64>) -> Setup<()> {
    own_tmpfs("/dev").step("/dev")?;
    for (name, tree) in devices {
        let path = Path::new("/dev").join(name);
        make_place(&path, false).step(name)?;
        attach(&tree, &path).step(name)?;
    }
    fs::create_dir("/dev/shm").step("/dev/shm")?;
    // Its files are memory that belongs to no process.
    let size = memory.map(|bytes| format!(",size={}", bytes / 4)).unwrap_or_default();
    own_tmpfs_with("/dev/shm", &size).step("/dev/shm")?;
    fs::create_dir("/dev/pts").step("/dev/pts")?;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", "/dev/pts", "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, options)
        .step("/dev/pts")?;
    let links = [
        ("pts/ptmx", "/dev/ptmx"),
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    links.into_iter().try_for_each(|(target, path)| symlink(target, path)).step("/dev")
}

/// Shows the processes of this namespace alone, so a process of the namespace mounts it. Read-only, because for root many
/// of its files are switches of the whole machine.
pub(super) fn own_proc() -> Setup<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", "/proc", "proc", flags, c"").step("/proc")
}

/// As `struct mount_attr` of the kernel.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(folder: impl AsFd, path: &CStr, set: u64) -> io::Result<()> {
    change_attributes(folder, path, set, libc::AT_RECURSIVE | libc::AT_EMPTY_PATH)
}

fn set_attributes_of_one(path: &CStr, set: u64) -> io::Result<()> {
    change_attributes(CWD, path, set, 0)
}

fn change_attributes(folder: impl AsFd, path: &CStr, set: u64, flags: libc::c_int) -> io::Result<()> {
    let attributes = Attributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the descriptor is open, the path ends with a zero, and the structure has the size that is passed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
