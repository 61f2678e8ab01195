//! Logins whose text is encrypted with a key that the keyring of the operating system holds.
//!
//! Must not know how a keyring is reached. Invariants: a text that was encrypted never becomes readable because the keyring
//! does not answer; a keyring that answered is not asked again, and one that did not is left alone for a while.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Failure;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::LoginStore;

const KEY_LENGTH: usize = 32;
/// How long a keyring that failed is not asked again.
const PAUSE: Duration = Duration::from_secs(30);
const UNREADABLE: &str = "The logins of MCP servers cannot be decrypted with the key of the keyring.";

/// Keeps one secret for this user. Calls block, and end by themselves.
pub trait Keyring: Send + Sync {
    /// `None`: it holds no such secret.
    fn read(&self) -> Result<Option<String>, Failure>;
    fn write(&self, secret: &str) -> Result<(), Failure>;
}

pub struct SealedLogins {
    inner: Arc<dyn LoginStore>,
    keyring: Box<dyn Keyring>,
    /// `None`: as it was before.
    is_wanted: Option<bool>,
    key: Mutex<KnownKey>,
}

/// What the keyring said.
enum KnownKey {
    Unasked,
    Key([u8; KEY_LENGTH]),
    Failed(Instant, Failure),
}

/// The encrypted text, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    nonce: String,
    sealed: String,
}

impl Sealed {
    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl SealedLogins {
    pub fn new(inner: Arc<dyn LoginStore>, keyring: Box<dyn Keyring>, is_wanted: Option<bool>) -> Self {
        Self { inner, keyring, is_wanted, key: Mutex::new(KnownKey::Unasked) }
    }

    /// Whether the kept text is encrypted.
    pub fn is_sealed(&self) -> bool {
        self.inner.read().ok().flatten().is_some_and(|text| Sealed::parse(&text).is_some())
    }

    fn key(&self, may_create: bool) -> Result<LessSafeKey, Failure> {
        let mut known = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match &*known {
            KnownKey::Key(bytes) => *bytes,
            KnownKey::Failed(at, failure) if at.elapsed() < PAUSE => return Err(failure.clone()),
            KnownKey::Unasked | KnownKey::Failed(..) => match self.find_key(may_create) {
                Ok(bytes) => {
                    *known = KnownKey::Key(bytes);
                    bytes
                }
                Err(failure) => {
                    *known = KnownKey::Failed(Instant::now(), failure.clone());
                    return Err(failure);
                }
            },
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| Failure::internal(UNREADABLE))?;
        Ok(LessSafeKey::new(key))
    }

    fn find_key(&self, may_create: bool) -> Result<[u8; KEY_LENGTH], Failure> {
        let unusable = || {
            Failure::config("The keyring holds no key for the logins of MCP servers.")
                .hint("Delete mcp-logins.json in the data folder, then log in again.")
        };
        if let Some(kept) = self.keyring.read()? {
            let bytes = STANDARD.decode(kept.trim()).ok().and_then(|bytes| bytes.try_into().ok());
            return bytes.ok_or_else(unusable);
        }
        if !may_create {
            return Err(unusable());
        }
        let key: [u8; KEY_LENGTH] = random()?;
        self.keyring.write(&STANDARD.encode(key))?;
        Ok(key)
    }

    fn open(&self, sealed: &Sealed) -> Result<String, Failure> {
        let failure = || {
            Failure::config(UNREADABLE).hint("Delete mcp-logins.json in the data folder, then log in again.")
        };
        let nonce = STANDARD.decode(&sealed.nonce).map_err(|_| failure())?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_| failure())?;
        let mut bytes = STANDARD.decode(&sealed.sealed).map_err(|_| failure())?;
        let key = self.key(false)?;
        let plain = key.open_in_place(nonce, Aad::empty(), &mut bytes).map_err(|_| failure())?;
        String::from_utf8(plain.to_vec()).map_err(|_| failure())
    }

    fn seal(&self, text: &str) -> Result<String, Failure> {
        let key = self.key(true)?;
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut bytes = text.as_bytes().to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
            .map_err(|_| Failure::internal("The logins of MCP servers could not be encrypted."))?;
        let sealed = Sealed { nonce: STANDARD.encode(nonce), sealed: STANDARD.encode(bytes) };
        serde_json::to_string(&sealed).map_err(|error| Failure::internal(format!("{error}.")))
    }

    /// The text to keep. A keyring that does not answer leaves a readable text readable, with a warning.
    fn written(&self, before: &str, after: String, was_sealed: bool) -> Result<String, Failure> {
        if !self.is_wanted.unwrap_or(was_sealed) {
            return Ok(after);
        }
        match self.seal(&after) {
            Err(failure) if !was_sealed => {
                tracing::warn!(%failure, "the logins of MCP servers are kept in a file that only its owner may read");
                Ok(if before == after { before.to_owned() } else { after })
            }
            sealed => sealed,
        }
    }
}

impl LoginStore for SealedLogins {
    fn read(&self) -> Result<Option<String>, Failure> {
        let Some(text) = self.inner.read()? else { return Ok(None) };
        match Sealed::parse(&text) {
            Some(sealed) => self.open(&sealed).map(Some),
            None => Ok(Some(text)),
        }
    }

    fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        self.inner.change(&mut |text| {
            let sealed = Sealed::parse(text);
            let before = match &sealed {
                Some(sealed) => self.open(sealed)?,
                None => text.to_owned(),
            };
            let after = change(&before)?;
            let was_sealed = sealed.is_some();
            if after == before && self.is_wanted.is_none_or(|wanted| wanted == was_sealed) {
                return Ok(text.to_owned());
            }
            self.written(&before, after, was_sealed)
        })
    }

    fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure> {
        self.inner.lock_renewal()
    }

    fn changed_at(&self) -> Option<SystemTime> {
        self.inner.changed_at()
    }
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Failure> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Failure::internal("There are no random numbers."))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A text or a secret in memory; `fails` stands for a locked keyring.
    #[derive(Default, Clone)]
    struct Memory {
        text: Arc<Mutex<Option<String>>>,
        fails: Arc<Mutex<bool>>,
    }

    impl LoginStore for Memory {
        fn read(&self) -> Result<Option<String>, Failure> {
            Ok(self.text.lock().unwrap().clone())
        }

        fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
            let before = LoginStore::read(self)?.unwrap_or_default();
            *self.text.lock().unwrap() = Some(change(&before)?);
            Ok(())
        }

        fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure> {
            Ok(Box::new(()))
        }

        fn changed_at(&self) -> Option<SystemTime> {
            None
        }
    }

    impl Keyring for Memory {
        fn read(&self) -> Result<Option<String>, Failure> {
            if *self.fails.lock().unwrap() {
                return Err(Failure::config("The keyring is locked."));
            }
            Ok(self.text.lock().unwrap().clone())
        }

        fn write(&self, secret: &str) -> Result<(), Failure> {
            *self.text.lock().unwrap() = Some(secret.to_owned());
            Ok(())
        }
    }

    struct Case {
        file: Memory,
        keyring: Memory,
    }

    impl Case {
        fn new(text: Option<&str>) -> Self {
            let file = Memory::default();
            *file.text.lock().unwrap() = text.map(str::to_owned);
            Self { file, keyring: Memory::default() }
        }

        /// As another process would see it.
        fn logins(&self, is_wanted: Option<bool>) -> SealedLogins {
            SealedLogins::new(Arc::new(self.file.clone()), Box::new(self.keyring.clone()), is_wanted)
        }

        fn kept(&self) -> String {
            self.file.text.lock().unwrap().clone().unwrap_or_default()
        }
    }

    fn write(logins: &SealedLogins, text: &str) -> Result<(), Failure> {
        logins.change(&mut |_| Ok(text.to_owned()))
    }

    #[test]
    fn a_wanted_keyring_encrypts_what_is_kept() {
        let case = Case::new(Some("{\"old\": 1}"));
        assert_eq!(case.logins(Some(true)).read().unwrap().as_deref(), Some("{\"old\": 1}"));
        write(&case.logins(Some(true)), "{\"token\": \"secret\"}").unwrap();
        assert!(case.logins(None).is_sealed() && !case.kept().contains("secret"), "{}", case.kept());
        assert_eq!(case.logins(None).read().unwrap().as_deref(), Some("{\"token\": \"secret\"}"));
        write(&case.logins(None), "{\"token\": \"newer\"}").unwrap();
        assert!(case.logins(None).is_sealed(), "it stays as it was");
        let before = case.kept();
        write(&case.logins(None), "{\"token\": \"newer\"}").unwrap();
        assert_eq!(before, case.kept(), "an equal text is not written anew");
        write(&case.logins(Some(false)), "{\"token\": \"newer\"}").unwrap();
        assert_eq!(case.kept(), "{\"token\": \"newer\"}", "the setting can be taken back");
    }

    #[test]
    fn a_locked_keyring_never_makes_a_secret_readable() {
        let case = Case::new(None);
        *case.keyring.fails.lock().unwrap() = true;
        write(&case.logins(Some(true)), "first").unwrap();
        assert_eq!(case.kept(), "first", "there was nothing to protect yet");
        *case.keyring.fails.lock().unwrap() = false;
        write(&case.logins(Some(true)), "second").unwrap();
        *case.keyring.fails.lock().unwrap() = true;
        assert!(case.logins(Some(true)).read().is_err());
        assert!(write(&case.logins(Some(true)), "third").is_err());
        assert!(case.logins(None).is_sealed());
    }

    #[test]
    fn another_key_and_a_changed_text_are_refused() {
        let case = Case::new(None);
        write(&case.logins(Some(true)), "text").unwrap();
        let other = Case::new(Some(&case.kept()));
        assert!(other.logins(None).read().is_err(), "the keyring has no key");
        *other.keyring.text.lock().unwrap() = Some(STANDARD.encode([7; KEY_LENGTH]));
        assert!(other.logins(None).read().is_err());
        let mut sealed = Sealed::parse(&case.kept()).unwrap();
        sealed.sealed = STANDARD.encode("not what was written");
        *case.file.text.lock().unwrap() = Some(serde_json::to_string(&sealed).unwrap());
        assert!(case.logins(None).read().is_err());
    }
}
