//! Logs to a file that is rotated when it grows, and (for servers) to stderr; known secrets are masked.
//!
//! Invariant: the first log line opens the file; a failure to write a log line has no effect.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use config::{Environment, Redactor};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::cli::Level;

/// The file is rotated at this size; `ROTATED_FILES` old files are kept.
const ROTATE_BYTES: u64 = 4 << 20;
const ROTATED_FILES: u32 = 3;

/// All secrets of this process.
pub(crate) static REDACTORS: LazyLock<Mutex<Vec<Redactor>>> = LazyLock::new(Mutex::default);

/// Masks the secrets of `redactor` in every later line.
pub(crate) fn redact_with(redactor: &Redactor) {
    REDACTORS.lock().unwrap_or_else(PoisonError::into_inner).push(redactor.clone());
}

pub(crate) fn start(environment: &Environment, level: Option<Level>) {
    init(environment, level, true);
}

/// Logs only to the file: stderr belongs to the user.
pub(crate) fn start_quietly(environment: &Environment, level: Option<Level>) {
    init(environment, level, false);
}

/// The path of the log file.
pub(crate) fn file(environment: &Environment) -> PathBuf {
    environment.state_dir().join("dragoman.log")
}

fn init(environment: &Environment, level: Option<Level>, stderr: bool) {
    let level = match level.unwrap_or(Level::Warn) {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let log = Log { path: file(environment), file: Arc::default(), stderr };
    let started =
        tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(log).try_init();
    if started.is_err() {
        tracing::debug!("logging was started already");
    }
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

#[derive(Clone)]
struct Log {
    path: PathBuf,
    file: Arc<Mutex<Option<File>>>,
    stderr: bool,
}

/// One line that is being written.
struct LogLine {
    log: Log,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine { log: self.clone(), bytes: Vec::new() }
    }
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        let redactors = REDACTORS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = redactors.iter().fold(text, |text, redactor| redactor.redact(&text).into_owned());
        if self.log.stderr {
            let _ = io::stderr().write_all(text.as_bytes());
        }
        let mut file = self.log.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = open(&self.log.path).ok();
        }
        if let Some(open_file) = file.as_mut() {
            let _ = open_file.write_all(text.as_bytes());
            if open_file.metadata().is_ok_and(|metadata| metadata.len() > ROTATE_BYTES) {
                *file = None;
                rotate(&self.log.path);
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn rotate(path: &Path) {
    let old = |number: u32| path.with_extension(format!("log.{number}"));
    for number in (1..ROTATED_FILES).rev() {
        let _ = std::fs::rename(old(number), old(number + 1));
    }
    let _ = std::fs::rename(path, old(1));
}
