//! The right to write a chat: a lock of the operating system on one small file per chat, which death frees.
//!
//! Must not know the database. Invariants: of all processes at most one holds a chat; a child of the holder never
//! does (the file is closed when it starts another program). What stands in the file is for people only.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use domain::store::Lease;
use domain::{Failure, SessionId};

use crate::place::{self, Place};

/// A lock can be lost to a holder that removes its file just then; each try then meets a new file.
const TRIES: usize = 100;

/// More of a holder's name than anybody wants to read.
const LONGEST_NAME: u64 = 200;

pub struct Leases {
    directory: PathBuf,
    holder: String,
    held: HashMap<SessionId, File>,
}

impl Leases {
    pub fn new(place: &Place) -> Self {
        Self { directory: place.leases(), holder: place.holder.clone(), held: HashMap::new() }
    }

    pub fn holds(&self, session: &SessionId) -> bool {
        self.held.contains_key(session)
    }

    pub fn take(&mut self, session: &SessionId) -> Result<Lease, Failure> {
        if self.holds(session) {
            return Ok(Lease::Held);
        }
        place::private_directory(&self.directory)?;
        let path = self.path(session);
        for _ in 0..TRIES {
            let mut file = place::private_file(&path).map_err(|error| place::unusable(&path, &error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Lease::HeldBy { holder: name_in(file) }),
                Err(TryLockError::Error(error)) => return Err(place::unusable(&path, &error)),
            }
            let locked = file.metadata().ok().map(|metadata| place::identity(&metadata));
            if locked.is_none() || locked != fs::metadata(&path).ok().map(|found| place::identity(&found)) {
                continue;
            }
            // The lock is what counts: a full disk only costs others the name.
            let _ =
                file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", self.holder));
            self.held.insert(session.clone(), file);
            return Ok(Lease::Held);
        }
        Err(Failure::internal(format!("The chat {session} changes hands too fast.")).hint("Try again."))
    }

    pub fn release(&mut self, session: &SessionId) {
        if let Some(file) = self.held.remove(session) {
            // While it is still locked: whoever opened it meanwhile sees that it is no longer there and makes another.
            let _ = fs::remove_file(self.path(session));
            drop(file);
        }
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.directory.join(format!("{:032x}", fingerprint(session.as_str())))
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        for session in self.held.keys().cloned().collect::<Vec<_>>() {
            self.release(&session);
        }
    }
}

fn name_in(file: File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(LONGEST_NAME).read_to_end(&mut bytes);
    let text: String = String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).collect();
    match text.trim() {
        "" => "another Dragoman".to_owned(),
        name => name.to_owned(),
    }
}

/// FNV-1a of 128 bits: ids are made by clients and need not be file names, and all builds must agree. Two chats with
/// the same value would only keep each other from being written at once.
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

    /// Taking a chat just as another one lets go of it and removes the file: never do both have it.
    #[test]
    fn a_chat_that_changes_hands_fast_is_held_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path(), "rival".to_owned());
        let (session, taken) = (SessionId::new("a"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut leases = Leases::new(&place);
                    for _ in 0..1000 {
                        if leases.take(&session).unwrap() == Lease::Held {
                            assert!(!taken.swap(true, Ordering::SeqCst), "two hold it");
                            std::thread::yield_now();
                            taken.store(false, Ordering::SeqCst);
                            leases.release(&session);
                        }
                    }
                });
            }
        });
    }
}
