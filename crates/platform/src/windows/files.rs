//! Files on Windows: access lists for modes, and calls that are repeated while another program has a file open.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION, LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, SetFileSecurityW,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_STANDARD_INFO,
    FileStandardInfo, GetFileInformationByHandle, GetFileInformationByHandleEx, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use super::wide;
use crate::Stamp;

/// The owner, the system and administrators, and nobody by inheritance from above.
const OWNER_ONLY: &str = "D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// Where the byte lies that a lock covers.
const LOCK_OFFSET_HIGH: u32 = 0x4000_0000;

/// Another program, a virus scanner for example, has a file open for a moment.
const TRIES: u32 = 40;
const WAIT: Duration = Duration::from_millis(25);

/// How a file is made and opened.
pub trait OpenOptionsExt {
    /// A new file is for its owner alone: it inherits that from its folder, see `create_private_folder`.
    fn private(&mut self) -> &mut Self;
    /// Windows has no modes.
    fn new_mode(&mut self, mode: u32) -> &mut Self;
    /// A symbolic link at the end of the path is opened itself and not followed.
    fn no_follow(&mut self) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn private(&mut self) -> &mut Self {
        self
    }

    fn new_mode(&mut self, _mode: u32) -> &mut Self {
        self
    }

    fn no_follow(&mut self) -> &mut Self {
        self.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
    }
}

/// Makes the missing folders of a path. The last one, if it is new, is for its owner alone.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => restrict(folder, 0o700),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a folder for its owner alone; fails where something has its name.
pub fn create_new_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    restrict(folder, 0o700)
}

/// Not known here: folders of other users cannot be opened.
pub fn is_own(_metadata: &Metadata) -> bool {
    true
}

/// Not checked here: the administrator gives the folder its access list.
pub fn check_owned_by_administrator(_path: &Path) -> Result<(), String> {
    Ok(())
}

/// Makes the missing folders of a path. Windows has no modes.
pub fn create_folder(folder: &Path, _mode: u32) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Takes away the rights of others.
pub fn restrict(path: &Path, _wanted: u32) -> io::Result<()> {
    let descriptor = OwnerOnly::new()?;
    let path = wide(path.as_os_str());
    let parts = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    // SAFETY: the path ends with a zero, and the descriptor lives until the end of this function.
    let set = unsafe { SetFileSecurityW(path.as_ptr(), parts, descriptor.as_raw()) };
    let outcome = if set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    match outcome {
        // File systems without access lists, such as FAT.
        Err(error) if error.raw_os_error() == Some(50) => Ok(()),
        outcome => outcome,
    }
}

/// A security descriptor with [`OWNER_ONLY`].
pub(crate) struct OwnerOnly(PSECURITY_DESCRIPTOR);

impl OwnerOnly {
    pub(crate) fn new() -> io::Result<Self> {
        let text = wide(OsStr::new(OWNER_ONLY));
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: the text ends with a zero; the descriptor is freed when it is dropped.
        let made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                std::ptr::null_mut(),
            )
        };
        if made == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }

    pub(crate) fn as_raw(&self) -> PSECURITY_DESCRIPTOR {
        self.0
    }
}

impl Drop for OwnerOnly {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for `new`, and nothing else has it.
        unsafe { LocalFree(self.0) };
    }
}

/// Takes the exclusive lock on a file without waiting. It covers one byte far behind the end: what a lock covers, other
/// processes could not read.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = 0;
    place.Anonymous.Anonymous.OffsetHigh = LOCK_OFFSET_HIGH;
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open for as long as the file is borrowed; the call returns at once and keeps no pointer.
    if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let taken = [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING];
    if taken.iter().any(|known| error.raw_os_error() == i32::try_from(*known).ok()) {
        return Err(TryLockError::WouldBlock);
    }
    Err(TryLockError::Error(error))
}

/// What the read-only flag says.
pub fn mode_of(metadata: &Metadata) -> u32 {
    let executable = if metadata.is_dir() { 0o111 } else { 0 };
    executable | if metadata.permissions().readonly() { 0o444 } else { 0o644 }
}

pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    fs::set_permissions(path, permissions)
}

pub fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    file.set_permissions(permissions)
}

/// A new file inherits the rights of its folder.
pub fn permissions_for_all() -> Option<Permissions> {
    None
}

/// Tells a file from another one that later got the same name.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
    identity_of(&file)
}

/// The same for an open file. One that was removed and is still open somewhere is not found.
pub fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    let mut standard = FILE_STANDARD_INFO::default();
    // SAFETY: the handle is open for as long as the file is borrowed; the structure belongs to the class, with its size.
    let asked = unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileStandardInfo,
            (&raw mut standard).cast(),
            size_of::<FILE_STANDARD_INFO>() as u32,
        )
    };
    if asked != 0 && standard.DeletePending {
        return Err(io::ErrorKind::NotFound.into());
    }
    let found = information(file)?;
    let index = (u64::from(found.nFileIndexHigh) << 32) | u64::from(found.nFileIndexLow);
    Ok((found.dwVolumeSerialNumber.into(), index))
}

pub(crate) fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open for as long as the file is borrowed, and the structure is large enough.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(found)
}

pub fn stamp_of(metadata: &Metadata) -> Stamp {
    // Ticks of 100 ns since 1601.
    let nanos = |ticks: u64| {
        let since_1970 = i64::try_from(ticks).unwrap_or(i64::MAX).saturating_sub(116_444_736_000_000_000);
        since_1970.saturating_mul(100)
    };
    Stamp { mtime: nanos(metadata.last_write_time()), ctime: nanos(metadata.creation_time()), inode: 0 }
}

/// A regular file with an ending that Windows executes.
pub fn is_executable(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    matches!(ending.as_str(), "exe" | "com" | "bat" | "cmd") && path.is_file()
}

/// Files can be made in a folder: tried, because access lists cannot be read off.
pub fn is_writable(folder: &Path) -> bool {
    let path = folder.join(format!(".dragoman-{}.tmp", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path).is_ok();
    made && fs::remove_file(&path).is_ok()
}

/// Makes a symbolic link, which Windows allows in developer mode only.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    let leads_to = link.parent().map_or_else(|| target.to_owned(), |folder| folder.join(target));
    if leads_to.is_dir() {
        std::os::windows::fs::symlink_dir(target, link)
    } else {
        std::os::windows::fs::symlink_file(target, link)
    }
}

/// A name as bytes: any on Unix, WTF-8 on Windows.
pub fn name_bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

/// The name that [`name_bytes`] gave; half of a surrogate pair becomes a replacement character.
pub fn name_from_bytes(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Opens a file for reading; a link at its end is opened itself, and its content is not that of the file it names.
pub fn open_unfollowed(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).no_follow().open(path)
}

/// Gives a file a name that another one may have. It is tried again while another program has that one open.
pub fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    retry_while_busy(|| fs::rename(from, to))
}

/// Repeats a call that fails because another program has the file open, for a second at most.
pub fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut tries = 1;
    loop {
        match attempt() {
            Err(error) if tries < TRIES && is_passing(&error) => std::thread::sleep(WAIT),
            outcome => return outcome,
        }
        tries += 1;
    }
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_ACCESS_DENIED];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|known| *known as i32 == code))
}

/// Windows keeps the entries of folders in the file system's own journal.
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Windows allows that for administrators only.
pub fn sync_file_system(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// NTFS cannot share blocks.
pub fn clone_file(_copy: &File, _source: &File) -> bool {
    false
}

/// Standard input and output, unbuffered. Nothing else may use them meanwhile.
pub fn standard_streams() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;
    let input = io::stdin().as_handle().try_clone_to_owned()?;
    Ok((input.into(), io::stdout().as_handle().try_clone_to_owned()?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_program_holds_is_replaced_when_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::write(&new, "new").unwrap();
        fs::write(&old, "old").unwrap();
        let mut held = Some(OpenOptions::new().read(true).share_mode(0).open(&old).unwrap());
        let mut failures = 0;
        let replaced = retry_while_busy(|| {
            let outcome = fs::rename(&new, &old);
            if outcome.is_err() {
                failures += 1;
                held = None;
            }
            outcome
        });
        assert_eq!((replaced.is_ok(), failures), (true, 1));
        assert_eq!(fs::read_to_string(&old).unwrap(), "new");
        let missing = retry_while_busy(|| {
            failures += 1;
            fs::rename(&new, &old)
        });
        assert_eq!((missing.is_err(), failures), (true, 2), "what is missing is not waited for");
    }
}
