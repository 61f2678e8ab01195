//! Where a path leads on Windows: drives, shares, junctions and short names.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Component, Path, PathBuf, Prefix};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_NAME_NORMALIZED, GetFinalPathNameByHandleW,
};

use crate::names;

/// Follows every link, junction, short name and `..` of the part that exists, which is then written as the disk has it.
/// Names that do not exist stay as they are written. Names that mean something else than they say are refused.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    if let Some(reason) = names::odd_windows_path(&path.to_string_lossy()) {
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, reason));
    }
    // Windows removes `..` before it follows links, and so does this.
    let path = without_dots(&std::path::absolute(path)?);
    for existing in path.ancestors() {
        match OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(existing) {
            Ok(file) => {
                let mut resolved = path_of(&file)?;
                let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
                if missing.components().count() > 0 {
                    resolved.push(missing);
                }
                return Ok(resolved);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// The path of an open file, as the disk has it and without a verbatim prefix.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    let mut buffer = vec![0_u16; 512];
    loop {
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the handle is open for as long as the file is borrowed, and the buffer has this length.
        let needed = unsafe {
            GetFinalPathNameByHandleW(file.as_raw_handle(), buffer.as_mut_ptr(), length, FILE_NAME_NORMALIZED)
        };
        match needed as usize {
            0 => return Err(io::Error::last_os_error()),
            needed if needed < buffer.len() => {
                let path = PathBuf::from(std::ffi::OsString::from_wide(&buffer[..needed]));
                return Ok(without_prefix(path));
            }
            needed => buffer.resize(needed + 1, 0),
        }
    }
}

/// `\\?\C:\a` → `C:\a`, `\\?\UNC\server\share` → `\\server\share`.
fn without_prefix(path: PathBuf) -> PathBuf {
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else { return path };
    let start = match prefix.kind() {
        Prefix::VerbatimDisk(drive) => format!("{}:", char::from(drive)),
        Prefix::VerbatimUNC(server, share) => {
            format!(r"\\{}\{}", server.to_string_lossy(), share.to_string_lossy())
        }
        _ => return path,
    };
    let mut plain = PathBuf::from(start);
    plain.push(components.as_path());
    plain
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::Storage::FileSystem::GetShortPathNameW;

    use super::*;

    fn short(path: &Path) -> PathBuf {
        let path = crate::windows::wide(path.as_os_str());
        let mut buffer = vec![0_u16; 1024];
        // SAFETY: the path ends with a zero, and the buffer has this length.
        let length = unsafe { GetShortPathNameW(path.as_ptr(), buffer.as_mut_ptr(), 1024) } as usize;
        std::ffi::OsString::from_wide(&buffer[..length]).into()
    }

    #[test]
    fn short_names_lead_to_the_long_ones() {
        let folder = tempfile::tempdir().unwrap();
        let real = resolve_links(folder.path()).unwrap();
        let long = real.join("a rather long folder").join("secret file.environment");
        std::fs::create_dir(real.join("a rather long folder")).unwrap();
        std::fs::write(&long, "").unwrap();
        let short = short(&long);
        assert_ne!(short.file_name(), long.file_name(), "the disk has short names");
        assert_eq!(resolve_links(&short).unwrap(), long);
        assert!(crate::open_file(&short).is_err(), "what is opened is named as the disk has it");
        assert!(crate::open_file(&long).is_ok());
    }

    #[test]
    fn drives_and_shares_stay() {
        let folder = tempfile::tempdir().unwrap();
        let real = resolve_links(folder.path()).unwrap();
        let text = real.to_string_lossy().into_owned();
        assert!(text.as_bytes()[1] == b':', "{text}");
        for other in
            [text.to_lowercase(), text.to_uppercase(), format!(r"\\?\{text}"), text.replace('\\', "/")]
        {
            assert_eq!(resolve_links(Path::new(&other)).unwrap(), real, "{other}");
        }
        let share = Path::new(r"\\?\UNC\server\share\a");
        assert_eq!(without_prefix(share.to_owned()), Path::new(r"\\server\share\a"));
    }
}
