//! A disk that fails or loses power at a chosen call: a layer between SQLite and the system's files.
//!
//! It watches only the folders that a test names. Invariant: what a power cut leaves is the content of each file at its
//! last sync and any part of the writes since, whole, torn or not at all.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rusqlite::ffi;

use crate::Dice;

/// Disks write whole sectors.
const SECTOR: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A write finds no space.
    Full,
    /// The call fails.
    Broken,
    /// A write stores its first half and then finds no space.
    Short,
    /// This call and all later ones fail, and what was not synced may be lost.
    PowerCut,
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) calls: u64,
    /// The fault and the number of the call that it strikes.
    pub(crate) fault: Option<(u64, Fault)>,
    pub(crate) struck: bool,
    files: HashMap<PathBuf, LoggedFile>,
}

/// A file as it is on the disk, and what the disk has not stored for certain.
#[derive(Default, Clone)]
struct LoggedFile {
    synced: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { size: usize },
}

pub(crate) type SharedDisk = Arc<Mutex<Disk>>;

/// Watches the database files in a folder from now on.
pub(crate) fn watch(folder: &Path, fault: Option<(u64, Fault)>) -> SharedDisk {
    install();
    let disk = SharedDisk::default();
    lock(&disk).fault = fault;
    lock(disks()).insert(folder.to_owned(), disk.clone());
    disk
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Counts a call; the fault that strikes it.
    fn count(&mut self) -> Option<Fault> {
        self.calls += 1;
        let (at, fault) = self.fault?;
        let strikes = if fault == Fault::PowerCut { self.calls >= at } else { self.calls == at };
        self.struck |= strikes;
        strikes.then_some(fault)
    }

    /// Puts what a power cut may have left into another folder.
    pub(crate) fn copy_remains(&self, folder: &Path, dice: &mut Dice) {
        for (path, file) in &self.files {
            let mut content = file.synced.clone();
            for pending in &file.pending {
                match pending {
                    // Later writes may be stored although earlier ones are not.
                    Pending::Write { at, bytes } => write_some(&mut content, *at, bytes, dice),
                    Pending::Truncate { size } if dice.below(2) == 0 => content.resize(*size, 0),
                    Pending::Truncate { .. } => {}
                }
            }
            fs::write(folder.join(path.file_name().unwrap()), content).unwrap();
        }
    }

    fn file(&mut self, path: &Path) -> &mut LoggedFile {
        self.files
            .entry(path.to_owned())
            .or_insert_with(|| LoggedFile { synced: fs::read(path).unwrap_or_default(), pending: Vec::new() })
    }
}

fn write_some(content: &mut Vec<u8>, at: usize, bytes: &[u8], dice: &mut Dice) {
    let whole = dice.below(3);
    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
        let stored = match whole {
            0 => true,
            1 => false,
            _ => dice.below(2) == 0,
        };
        if stored {
            write_at(content, at + number * SECTOR, sector);
        }
    }
}

fn write_at(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A watched file that SQLite has open.
#[derive(Clone)]
struct WatchedFile {
    path: PathBuf,
    disk: SharedDisk,
    real: Methods,
}

/// The system's methods; SQLite never changes or frees them.
#[derive(Clone, Copy)]
struct Methods(&'static ffi::sqlite3_io_methods);

// SAFETY: the structure holds function pointers only and is constant.
unsafe impl Send for Methods {}

fn disks() -> &'static Mutex<HashMap<PathBuf, SharedDisk>> {
    static DISKS: OnceLock<Mutex<HashMap<PathBuf, SharedDisk>>> = OnceLock::new();
    DISKS.get_or_init(Mutex::default)
}

/// By the address of SQLite's file structure.
fn open_files() -> &'static Mutex<HashMap<usize, WatchedFile>> {
    static FILES: OnceLock<Mutex<HashMap<usize, WatchedFile>>> = OnceLock::new();
    FILES.get_or_init(Mutex::default)
}

fn disk_of(path: &Path) -> Option<SharedDisk> {
    lock(disks()).get(path.parent()?).cloned()
}

fn watched(file: *mut ffi::sqlite3_file) -> WatchedFile {
    lock(open_files()).get(&(file as usize)).cloned().expect("only watched files have these methods")
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default VFS exists for the life of the process. The copy is leaked, so it does too; its other
        // functions do not look at the VFS that they are called with.
        unsafe {
            let mut layer = std::ptr::read(ffi::sqlite3_vfs_find(std::ptr::null()));
            layer.zName = c"watched".as_ptr();
            layer.pNext = std::ptr::null_mut();
            layer.xOpen = Some(open);
            layer.xDelete = Some(delete);
            assert_eq!(ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 1), ffi::SQLITE_OK);
        }
    });
}

/// The system's VFS.
fn real_vfs() -> *mut ffi::sqlite3_vfs {
    // SAFETY: the name is a C string, and SQLite has this VFS on every Unix.
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

/// # Safety
/// As SQLite calls it: `name` is null or a C string, `file` has room for the system's structure.
unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are SQLite's own, and the system's VFS gets them unchanged.
    unsafe {
        let path = (!name.is_null())
            .then(|| PathBuf::from(std::ffi::OsStr::from_bytes(CStr::from_ptr(name).to_bytes())));
        let disk = path.as_deref().and_then(disk_of);
        if let Some(disk) = &disk
            && lock(disk).count().is_some_and(|fault| fault != Fault::Short)
        {
            (*file).pMethods = std::ptr::null();
            return ffi::SQLITE_CANTOPEN;
        }
        let vfs = real_vfs();
        let outcome = (*vfs).xOpen.expect("every VFS opens")(vfs, name, file, flags, out_flags);
        if let (ffi::SQLITE_OK, Some(path), Some(disk)) = (outcome, path, disk) {
            let real = &*(*file).pMethods;
            lock(&disk).file(&path);
            lock(open_files()).insert(file as usize, WatchedFile { path, disk, real: Methods(real) });
            (*file).pMethods = layered(real);
        }
        outcome
    }
}

/// The system's methods with ours in their place where the disk is touched.
fn layered(real: &'static ffi::sqlite3_io_methods) -> *const ffi::sqlite3_io_methods {
    struct Layered(ffi::sqlite3_io_methods);
    // SAFETY: function pointers only, written once.
    unsafe impl Send for Layered {}
    // SAFETY: as above.
    unsafe impl Sync for Layered {}
    static LAYERED: OnceLock<Layered> = OnceLock::new();
    let make = || {
        let mut methods = *real;
        // Without `xFetch` SQLite maps no file into memory.
        methods.iVersion = 2;
        methods.xRead = Some(read);
        methods.xWrite = Some(write);
        methods.xTruncate = Some(truncate);
        methods.xSync = Some(sync);
        methods.xClose = Some(close);
        Layered(methods)
    };
    &LAYERED.get_or_init(make).0
}

/// # Safety
/// As SQLite calls it.
unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: `name` is a C string; the system's VFS gets it unchanged.
    unsafe {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        if let Some(disk) = disk_of(&path) {
            let mut disk = lock(&disk);
            if disk.count().is_some_and(|fault| fault != Fault::Short) {
                return ffi::SQLITE_IOERR_DELETE;
            }
            disk.files.remove(&path);
        }
        let vfs = real_vfs();
        (*vfs).xDelete.expect("every VFS deletes")(vfs, name, sync)
    }
}

/// # Safety
/// As SQLite calls it, for a watched file.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let WatchedFile { real, .. } = watched(file);
    lock(open_files()).remove(&(file as usize));
    // SAFETY: the file is the system's own structure.
    unsafe { real.0.xClose.expect("files close")(file) }
}

/// # Safety
/// As SQLite calls it, for a watched file.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, size: c_int, at: i64) -> c_int {
    let WatchedFile { disk, real, .. } = watched(file);
    if matches!(lock(&disk).count(), Some(Fault::Broken | Fault::PowerCut)) {
        return ffi::SQLITE_IOERR_READ;
    }
    // SAFETY: the file is the system's own structure, the other arguments are SQLite's.
    unsafe { real.0.xRead.expect("files read")(file, to, size, at) }
}

/// # Safety
/// As SQLite calls it, for a watched file: `from` holds `size` bytes.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, size: c_int, at: i64) -> c_int {
    let WatchedFile { path, disk, real } = watched(file);
    let mut disk = lock(&disk);
    let fault = disk.count();
    let stored = match fault {
        None => size,
        Some(Fault::Short) => size / 2,
        Some(Fault::Full) => return ffi::SQLITE_FULL,
        Some(Fault::Broken | Fault::PowerCut) => return ffi::SQLITE_IOERR_WRITE,
    };
    // SAFETY: the file is the system's own structure, and `from` holds at least `stored` bytes.
    let (outcome, bytes) = unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), stored as usize).to_vec();
        (real.0.xWrite.expect("files write")(file, from, stored, at), bytes)
    };
    disk.file(&path).pending.push(Pending::Write { at: at as usize, bytes });
    if fault.is_some() { ffi::SQLITE_FULL } else { outcome }
}

/// # Safety
/// As SQLite calls it, for a watched file.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    let WatchedFile { path, disk, real } = watched(file);
    let mut disk = lock(&disk);
    if disk.count().is_some_and(|fault| fault != Fault::Short) {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    disk.file(&path).pending.push(Pending::Truncate { size: size as usize });
    // SAFETY: the file is the system's own structure.
    unsafe { real.0.xTruncate.expect("files truncate")(file, size) }
}

/// # Safety
/// As SQLite calls it, for a watched file.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let WatchedFile { path, disk, real } = watched(file);
    let mut disk = lock(&disk);
    if disk.count().is_some_and(|fault| fault != Fault::Short) {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    let logged = disk.file(&path);
    for pending in std::mem::take(&mut logged.pending) {
        match pending {
            Pending::Write { at, bytes } => write_at(&mut logged.synced, at, &bytes),
            Pending::Truncate { size } => logged.synced.resize(size, 0),
        }
    }
    // SAFETY: the file is the system's own structure.
    unsafe { real.0.xSync.expect("files sync")(file, flags) }
}
