//! Secrets in the Credential Manager of Windows.

use std::ffi::OsStr;
use std::io;

use windows_sys::Win32::Foundation::ERROR_NOT_FOUND;
use windows_sys::Win32::Security::Credentials::{
    CRED_PERSIST_LOCAL_MACHINE, CRED_TYPE_GENERIC, CREDENTIALW, CredFree, CredReadW, CredWriteW,
};

/// The secret of this name; `None` where there is none.
pub fn read(name: &str) -> io::Result<Option<String>> {
    let name = super::wide(OsStr::new(name));
    let mut found: *mut CREDENTIALW = std::ptr::null_mut();
    // SAFETY: the name ends with a zero; the system fills in the pointer where the call succeeds.
    if unsafe { CredReadW(name.as_ptr(), CRED_TYPE_GENERIC, 0, &raw mut found) } == 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error().map(i32::cast_unsigned) {
            Some(ERROR_NOT_FOUND) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: the call succeeded, so the pointer leads to a credential until it is freed below.
    let bytes = unsafe {
        let length = (*found).CredentialBlobSize as usize;
        let bytes = match (*found).CredentialBlob.is_null() {
            true => Vec::new(),
            false => std::slice::from_raw_parts((*found).CredentialBlob, length).to_vec(),
        };
        CredFree(found.cast());
        bytes
    };
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "the secret is not a text");
    String::from_utf8(bytes).map(Some).map_err(not_text)
}

/// Keeps a secret for this user on this machine.
pub fn write(name: &str, secret: &str) -> io::Result<()> {
    let mut name = super::wide(OsStr::new(name));
    let mut secret = secret.as_bytes().to_vec();
    let size = u32::try_from(secret.len()).map_err(io::Error::other)?;
    let credential = CREDENTIALW {
        Type: CRED_TYPE_GENERIC,
        TargetName: name.as_mut_ptr(),
        CredentialBlobSize: size,
        CredentialBlob: secret.as_mut_ptr(),
        Persist: CRED_PERSIST_LOCAL_MACHINE,
        ..Default::default()
    };
    // SAFETY: both pointers lead to memory that lives until the call has returned; the other fields are empty.
    match unsafe { CredWriteW(&raw const credential, 0) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_and_a_missing_one_is_none() {
        let since = std::time::UNIX_EPOCH.elapsed().map(|since| since.as_nanos()).unwrap_or_default();
        let name = format!("dragoman-test/{since}");
        assert_eq!(read(&name).ok(), Some(None));
        assert!(write(&name, "secret").is_ok());
        assert_eq!(read(&name).ok(), Some(Some("secret".to_owned())));
    }
}
