//! The copy of a git directory that a command may write: a layer over the real one. When every process of the command is
//! gone, plain state is taken over from the layer: objects, names of commits, the index.
//!
//! Invariants: only files that `git::judge` knows as state reach the real directory; no link is followed on the way; an
//! object is never replaced, and nothing that names objects is taken over unless all of them were; a name of a commit, a
//! log or an index that somebody else changed meanwhile stays. A copy is taken over once: by the helper, or, where that was
//! killed, by the program that started it or by a later one (`left`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use git::{Kind, Part};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, mkdirat, openat, openat2,
    renameat, statat, unlinkat,
};
use rustix::mount::{MountFlags, mount};

use super::git_files::{beneath, is_opaque, names, read, remove_all};
use super::{copy_marks, mount_calls};
use crate::policy;

/// A walk ends after this many entries.
const MOST_ENTRIES: usize = 500_000;
/// How long a lock of another git is waited for.
const LOCK_TIME: Duration = Duration::from_secs(2);
/// Paths that a message names.
const NAMED: usize = 8;

pub(crate) struct GitCopy {
    /// The real git directory's path.
    pub(super) folder: PathBuf,
    /// Where the copy can be taken from.
    pub(super) merged: PathBuf,
    real: OwnedFd,
    upper: OwnedFd,
    configuration: bool,
    /// When the command began, in nanoseconds since 1970.
    began: i128,
    /// The index as it was then: git replaces the file, so it can still be read.
    index: Option<OwnedFd>,
    /// The folder of the layer, in which a mark says that it was taken over. Not of the mounts that become read-only.
    place: OwnedFd,
}

impl GitCopy {
    /// `None`: this kernel or file system cannot do it; the directory is read-only then.
    pub(super) fn make(wanted: &policy::GitCopy) -> Option<Self> {
        let folder = wanted.folder.canonicalize().ok()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = openat2(CWD, &folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let real = mount_calls::clone(&place).ok()?;
        std::fs::create_dir(&wanted.place).ok()?;
        let (merged, upper) = lay_over(&folder, &wanted.place).or_else(|| {
            // The folder's own file system cannot hold a layer.
            mount_calls::own_tmpfs(&wanted.place).ok()?;
            lay_over(&folder, &wanted.place)
        })?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let began = i128::try_from(began).unwrap_or_default();
        let index = open_index(&real);
        copy_marks::describe(wanted, &folder, began).ok()?;
        let place = openat(CWD, &wanted.place, flags, Mode::empty()).ok()?;
        let (configuration, place) = (wanted.configuration, mount_calls::clone(&place).ok()?);
        Some(Self { folder, merged, real, upper, configuration, began, index, place })
    }

    /// A copy whose helper was killed. The index of the beginning is no longer known.
    pub(crate) fn of_killed(
        place: &Path,
        folder: PathBuf,
        configuration: bool,
        began: i128,
    ) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = openat(CWD, place.join("upper"), flags, Mode::empty())?;
        let real = openat2(CWD, &folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let (merged, place) = (place.join("merged"), openat(CWD, place, flags, Mode::empty())?);
        Ok(Self { folder, merged, real, upper, configuration, began, index: None, place })
    }
}

fn open_index(real: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(real, "index", flags, Mode::empty()).ok()
}

fn lay_over(folder: &Path, place: &Path) -> Option<(PathBuf, OwnedFd)> {
    let [upper, work, merged] = ["upper", "work", "merged"].map(|name| place.join(name));
    for folder in [&upper, &work, &merged] {
        std::fs::create_dir_all(folder).ok()?;
    }
    let options = [(&b"lowerdir="[..], folder), (b",upperdir=", &upper), (b",workdir=", &work)];
    let mut text = Vec::new();
    for (name, path) in options {
        text.extend_from_slice(name);
        for byte in path.as_os_str().as_bytes() {
            if b":,\\".contains(byte) {
                text.push(b'\\');
            }
            text.push(*byte);
        }
    }
    text.extend_from_slice(b",userxattr");
    let text = std::ffi::CString::new(text).ok()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", &merged, "overlay", flags, text.as_c_str()).ok()?;
    let upper =
        openat(CWD, &upper, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    Some((merged, upper))
}

/// Takes state over from each copy, and says what was not taken.
pub(super) fn take_over(copies: Vec<GitCopy>, errors: Option<OwnedFd>) {
    let mut refused = Vec::new();
    for copy in copies {
        let (left_out, problem) = take_over_one(&copy);
        refused.extend(left_out);
        if let Some((errors, problem)) = errors.as_ref().and_then(|fd| fd.try_clone().ok()).zip(problem) {
            let text = format!(
                "Dragoman: nothing was taken over from the copy of {:?}, because objects could not be written: {problem}. \
                 What the command committed there is lost.\n",
                copy.folder
            );
            let _ = File::from(errors).write_all(text.as_bytes());
        }
    }
    let Some(errors) = errors.filter(|_| !refused.is_empty()) else { return };
    let more = refused.len().saturating_sub(NAMED);
    let names: Vec<String> = refused.iter().take(NAMED).map(|path| format!("{path:?}")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "Dragoman: the command wrote to a copy of the git directory. Commits, branches and the index were taken over; these \
         were not, because git would obey them or another program changed them: {}{more}.\n",
        names.join(", ")
    );
    let _ = File::from(errors).write_all(text.as_bytes());
}

/// What was not taken over, and why nothing was.
pub(crate) fn take_over_one(copy: &GitCopy) -> (Vec<PathBuf>, Option<String>) {
    let mut import = Import { copy, changes: Vec::new(), count: 0, refused: Vec::new(), lost: None };
    if import.has_no_head() {
        import.refused.push(PathBuf::new());
    } else {
        import.collect(&copy.upper, Path::new(""));
        import.apply();
    }
    copy_marks::mark_taken(&copy.place);
    let refused = if import.lost.is_some() { Vec::new() } else { import.refused };
    (refused.into_iter().map(|path| copy.folder.join(path)).collect(), import.lost)
}

enum Change {
    Write {
        path: PathBuf,
        part: Part,
        inner: PathBuf,
        stat: Stat,
    },
    Delete {
        path: PathBuf,
        part: Part,
        inner: PathBuf,
    },
    /// A folder that a new submodule needs.
    Folder(PathBuf),
}

struct Import<'a> {
    copy: &'a GitCopy,
    changes: Vec<Change>,
    count: usize,
    refused: Vec<PathBuf>,
    /// Why an object is missing. What names objects must not be taken over then.
    lost: Option<String>,
}

impl Import<'_> {
    /// The command deleted the whole repository, or what makes it one: git never does.
    fn has_no_head(&self) -> bool {
        statat(&self.copy.upper, "HEAD", AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| !FileType::from_raw_mode(stat.st_mode).is_file())
    }

    /// Everything that the layer holds.
    fn collect(&mut self, folder: &OwnedFd, path: &Path) {
        if is_opaque(folder) {
            self.collect_hidden(folder, path);
        }
        for name in names(folder) {
            self.count += 1;
            if self.count > MOST_ENTRIES {
                self.lost = Some(format!("there are more than {MOST_ENTRIES} files"));
                return;
            }
            let Ok(stat) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let path = path.join(&name);
            let (part, inner) = self.part_of(&path);
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => self.changes.push(Change::Write { path, part, inner, stat }),
                FileType::CharacterDevice if stat.st_rdev == 0 => {
                    self.changes.push(Change::Delete { path, part, inner });
                }
                FileType::Directory => {
                    let is_new = part == (Part::Module { is_new: true });
                    if is_new && ["objects", "refs", "info"].iter().any(|name| inner == Path::new(name)) {
                        self.changes.push(Change::Folder(path.clone()));
                    }
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    if let Ok(below) = openat(folder, &name, flags, Mode::empty()) {
                        self.collect(&below, &path);
                    }
                }
                FileType::CharacterDevice
                | FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::BlockDevice
                | FileType::Unknown => self.refused.push(path),
            }
        }
    }

    /// The command removed the folder and made it anew.
    fn collect_hidden(&mut self, folder: &OwnedFd, path: &Path) {
        let Ok(real) = self.open_real(path) else { return };
        let kept = names(folder);
        for name in names(&real).into_iter().filter(|name| !kept.contains(name)) {
            let path = path.join(name);
            let (part, inner) = self.part_of(&path);
            self.changes.push(Change::Delete { path, part, inner });
        }
    }

    /// The git directory that a path belongs to, and the path in it.
    fn part_of(&self, path: &Path) -> (Part, PathBuf) {
        let mut part = Part::Repository;
        let mut inner = path.to_owned();
        let mut outer = PathBuf::new();
        loop {
            let names: Vec<_> = inner.iter().map(ToOwned::to_owned).collect();
            let first = names.first().and_then(|name| name.to_str()).unwrap_or_default();
            let ends: Vec<usize> = match first {
                "worktrees" if names.len() > 2 => vec![2],
                "modules" => (2..names.len()).collect(),
                _ => return (part, inner),
            };
            let found = ends.into_iter().find_map(|end| {
                let folder = outer.join(names[..end].iter().collect::<PathBuf>());
                let has_head = |place: &OwnedFd| {
                    statat(place, folder.join("HEAD"), AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
                };
                let is_known = has_head(&self.copy.real);
                (is_known || has_head(&self.copy.upper)).then_some((end, folder, !is_known))
            });
            let Some((end, folder, is_new)) = found else { return (part, inner) };
            part = if first == "worktrees" { Part::Worktree { is_new } } else { Part::Module { is_new } };
            inner = names[end..].iter().collect();
            outer = folder;
        }
    }

    /// Objects first, then what names them; deletions last.
    fn apply(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|change| match change {
            Change::Folder(_) => 0,
            Change::Write { part, inner, .. } => match git::judge(*part, inner) {
                Kind::Object if inner.extension().is_some_and(|ending| ending == "idx") => 2,
                Kind::Object => 1,
                Kind::Link | Kind::Configuration => 3,
                Kind::Reference
                | Kind::Plain
                | Kind::Steps
                | Kind::Options
                | Kind::Passing
                | Kind::Refused => 4,
            },
            Change::Delete { .. } => 5,
        });
        for change in changes {
            match change {
                Change::Folder(path) => drop(self.make_real(&path)),
                Change::Write { path, part, inner, stat } => {
                    let is_object = git::judge(part, &inner) == Kind::Object;
                    if self.lost.is_some() && !is_object {
                        continue;
                    }
                    match self.write(&path, part, &inner, &stat) {
                        Err(error) if is_object => self.lost = Some(error.to_string()),
                        Err(_) => self.refused.push(path),
                        Ok(()) => {}
                    }
                }
                Change::Delete { .. } if self.lost.is_some() => {}
                Change::Delete { path, part, inner } => self.delete(path, part, &inner),
            }
        }
    }

    fn write(&self, path: &Path, part: Part, inner: &Path, stat: &Stat) -> io::Result<()> {
        let kind = git::judge(part, inner);
        if kind == Kind::Passing {
            return Ok(());
        }
        let source = openat(
            &self.copy.upper,
            path,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let known = self.stat_real(path);
        if kind == Kind::Object && known.is_some() {
            return Ok(());
        }
        if kind != Kind::Object && kind != Kind::Plain {
            let contents = read(&source)?;
            if known.is_some() && self.read_real(path).is_ok_and(|known| known == contents) {
                return Ok(());
            }
            let is_fit = match kind {
                Kind::Configuration => self.may_configure(path, part, &contents),
                Kind::Reference => {
                    kind.accepts(inner, &contents) && known.is_none_or(|known| !self.is_later(&known))
                }
                Kind::Object
                | Kind::Plain
                | Kind::Steps
                | Kind::Options
                | Kind::Link
                | Kind::Passing
                | Kind::Refused => kind.accepts(inner, &contents),
            };
            if !is_fit {
                return Err(io::Error::other("it is not state"));
            }
        }
        let is_foreign = |known: &Stat| self.is_later(known) && !self.is_same_index(inner);
        if kind == Kind::Plain && is_shared(inner) && known.is_some_and(|known| is_foreign(&known)) {
            return Err(io::Error::other("somebody else changed it"));
        }
        self.copy_file(&source, path, stat, kind == Kind::Object)
    }

    /// Another git only looked at the files again: the index names the same contents as when the command began.
    fn is_same_index(&self, path: &Path) -> bool {
        let entries = |fd: &OwnedFd| {
            let mut bytes = Vec::new();
            rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(0)).ok()?;
            File::from(fd.try_clone().ok()?).read_to_end(&mut bytes).ok()?;
            git::index_entries(&bytes)
        };
        let before = self.copy.index.as_ref().filter(|_| path == Path::new("index")).and_then(entries);
        let now = open_index(&self.copy.real).as_ref().and_then(entries);
        before.is_some() && before == now
    }

    fn may_configure(&self, path: &Path, part: Part, contents: &[u8]) -> bool {
        let is_new = part == (Part::Module { is_new: true });
        if !is_new && !self.copy.configuration {
            return false;
        }
        let known = if is_new { Ok(Vec::new()) } else { self.read_real(path) };
        let Ok(Ok(known)) = known.map(String::from_utf8) else { return false };
        let in_module = matches!(part, Part::Module { .. });
        std::str::from_utf8(contents).is_ok_and(|text| git::changes_are_harmless(&known, text, in_module))
    }

    /// Somebody else changed it while the command ran.
    fn is_later(&self, stat: &Stat) -> bool {
        i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec) > self.copy.began
    }

    fn delete(&mut self, path: PathBuf, part: Part, inner: &Path) {
        let Some(known) = self.stat_real(&path) else { return };
        let is_folder = FileType::from_raw_mode(known.st_mode).is_dir();
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(above) = self.open_real(above) else { return };
        if is_folder {
            // What is left of objects is harmless.
            if part.may_lose(inner) && remove_all(&above, Path::new(name)).is_ok()
                || inner.starts_with("objects")
            {
                return;
            }
            return self.refused.push(path);
        }
        match git::judge(part, inner) {
            Kind::Object | Kind::Passing => {}
            Kind::Reference if self.is_later(&known) || inner == Path::new("HEAD") => self.refused.push(path),
            Kind::Plain if is_shared(inner) && self.is_later(&known) => self.refused.push(path),
            Kind::Reference | Kind::Plain | Kind::Steps | Kind::Options => {
                let _ = unlinkat(&above, name, AtFlags::empty());
            }
            Kind::Link | Kind::Configuration | Kind::Refused => self.refused.push(path),
        }
    }

    /// As git replaces its files: a lock is written and renamed.
    fn copy_file(&self, source: &OwnedFd, path: &Path, stat: &Stat, is_object: bool) -> io::Result<()> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = self.make_real(above)?;
        let mut lock = name.to_owned();
        lock.push(if is_object { ".dragoman" } else { ".lock" });
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let deadline = Instant::now() + LOCK_TIME;
        let target = loop {
            match openat(&folder, &lock, flags, mode) {
                Ok(file) => break file,
                Err(rustix::io::Errno::EXIST) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error.into()),
            }
        };
        let mut target = File::from(target);
        let copied = io::copy(&mut File::from(source.try_clone()?), &mut target)
            .and_then(|_| {
                // git compares the time of the index with those of files.
                let time = Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ };
                Ok(rustix::fs::futimens(&target, &Timestamps { last_access: time, last_modification: time })?)
            })
            .and_then(|()| Ok(renameat(&folder, &lock, &folder, name)?));
        if copied.is_err() {
            let _ = unlinkat(&folder, &lock, AtFlags::empty());
        }
        copied
    }

    fn stat_real(&self, path: &Path) -> Option<Stat> {
        let above = self.open_real(path.parent()?).ok()?;
        statat(&above, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn read_real(&self, path: &Path) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        read(&openat2(&self.copy.real, path, flags, Mode::empty(), beneath())?)
    }

    fn open_real(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat2(&self.copy.real, path, flags, Mode::empty(), beneath())?)
    }

    /// Opens a folder after making what is missing of it.
    fn make_real(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut folder = self.open_real(Path::new(""))?;
        for name in path {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = openat(&folder, name, flags, Mode::empty())?;
        }
        Ok(folder)
    }
}

/// State that the user's own git changes as well, and that cannot be made anew.
fn is_shared(path: &Path) -> bool {
    path == Path::new("index") || path.starts_with("logs") || path.starts_with("reftable")
}
