//! The right to write a chat: an operating-system lock on one small file per chat. The lock ends with its process.
//!
//! Must not know the database. Invariants: at most one process holds a chat; a child of the holder never does, because
//! the file closes when the child starts another program. The file's text tells other processes who holds the chat and where
//! the holder lets them attach; only the lock gives the right to write.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use domain::store::{HeldChat, Lease};
use domain::{Failure, SessionId};

use crate::files::{self, StoreFiles};

/// A holder may remove its file while another process locks it; each further try then finds a new file.
const TRIES: usize = 100;

/// The longest text of a lease that is read, in bytes, and the longest holder name in it that is shown.
const LONGEST_TEXT: u64 = 4096;
const LONGEST_NAME: usize = 200;

pub(crate) struct Leases {
    files: StoreFiles,
    held: HashMap<SessionId, File>,
}

impl Leases {
    pub(crate) fn new(files: &StoreFiles) -> Self {
        Self { files: files.clone(), held: HashMap::new() }
    }

    pub(crate) fn is_held(&self, session: &SessionId) -> bool {
        self.held.contains_key(session)
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn acquire(&mut self, session: &SessionId) -> Result<Lease, Failure> {
        if self.is_held(session) {
            return Ok(Lease::Held);
        }
        files::private_directory(&self.files.leases())?;
        let path = self.path(session);
        for _ in 0..TRIES {
            let mut file = files::private_file(&path).map_err(|error| files::unusable(&path, &error))?;
            match platform::try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let LeaseText { holder, address, .. } = LeaseText::read(file);
                    return Ok(Lease::HeldBy { holder, address });
                }
                Err(TryLockError::Error(error)) => return Err(files::unusable(&path, &error)),
            }
            let locked = platform::identity_of(&file).ok();
            if locked.is_none() || locked != platform::identity(&path).ok() {
                continue;
            }
            // After the lock: a repair that begins now sees it and does not go on.
            if self.files.is_being_repaired() {
                let _ = fs::remove_file(&path);
                return Err(Failure::taken("The store of the chats is being repaired.")
                    .hint("Try again when `dragoman store repair` has ended."));
            }
            // Only the lock matters: on a full disk other processes do not see the name.
            let address = self.files.address().unwrap_or_default();
            let text = format!("{}\n{address}\n{session}\n", self.files.holder);
            let _ =
                file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
            self.held.insert(session.clone(), file);
            return Ok(Lease::Held);
        }
        Err(Failure::internal(format!("Other processes open and close the chat {session} too quickly."))
            .hint("Try again."))
    }

    pub(crate) fn release(&mut self, session: &SessionId) {
        if let Some(file) = self.held.remove(session) {
            // Remove the file while it is locked: a process that opened it meanwhile sees that it is gone and creates
            // another one.
            let _ = fs::remove_file(self.path(session));
            drop(file);
        }
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.files.leases().join(format!("{:032x}", fingerprint(session.as_str())))
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        for session in self.held.keys().cloned().collect::<Vec<_>>() {
            self.release(&session);
        }
    }
}

/// What the file of a lease says: the holder, its address and the chat, a line each.
struct LeaseText {
    holder: String,
    address: Option<String>,
    session: Option<SessionId>,
}

impl LeaseText {
    fn read(file: File) -> Self {
        let mut bytes = Vec::new();
        let _ = file.take(LONGEST_TEXT).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().map(|line| {
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            Some(line.trim().to_owned()).filter(|line| !line.is_empty())
        });
        let holder = lines.next().flatten().unwrap_or_else(|| "another Dragoman".to_owned());
        let end = (0..=LONGEST_NAME.min(holder.len())).rev().find(|end| holder.is_char_boundary(*end));
        Self {
            holder: holder[..end.unwrap_or(0)].to_owned(),
            address: lines.next().flatten(),
            session: lines.next().flatten().map(SessionId::new),
        }
    }
}

/// The leases whose holders named themselves, also those that a process left behind when it died.
pub(crate) fn named_leases(files: &StoreFiles) -> Vec<HeldChat> {
    let Ok(entries) = fs::read_dir(files.leases()) else { return Vec::new() };
    let texts = entries.flatten().filter_map(|entry| File::open(entry.path()).ok()).map(LeaseText::read);
    let named = |text: LeaseText| {
        text.session.map(|session| HeldChat { session, holder: text.holder, address: text.address })
    };
    texts.filter_map(named).collect()
}

/// The names of the processes that hold chats now.
pub(crate) fn living_holders(files: &StoreFiles) -> Vec<String> {
    let Ok(entries) = fs::read_dir(files.leases()) else { return Vec::new() };
    let locked = entries.flatten().filter_map(|entry| {
        let file = File::open(entry.path()).ok()?;
        let is_held = matches!(platform::try_lock(&file), Err(TryLockError::WouldBlock));
        is_held.then(|| LeaseText::read(file).holder)
    });
    locked.collect()
}

/// FNV-1a of 128 bits. Clients make ids that need not be valid file names, and all builds must agree on the result.
/// Two chats with the same value could only not be written at the same time.
fn fingerprint(text: &str) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn every_build_names_a_lease_alike() {
        assert_eq!(fingerprint(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fingerprint("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fingerprint("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    /// A chat is acquired while its holder releases it and removes the file: never do both hold it.
    #[test]
    fn a_chat_that_changes_hands_fast_is_held_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let files = StoreFiles::new(directory.path(), "rival".to_owned());
        let (session, held) = (SessionId::new("a"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut leases = Leases::new(&files);
                    for _ in 0..1000 {
                        if leases.acquire(&session).unwrap() == Lease::Held {
                            assert!(!held.swap(true, Ordering::SeqCst), "two hold it");
                            std::thread::yield_now();
                            held.store(false, Ordering::SeqCst);
                            leases.release(&session);
                        }
                    }
                });
            }
        });
    }
}
