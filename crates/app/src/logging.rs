//! Logs to a file that is rotated when it grows, and (for servers) to stderr; known secrets are masked.
//!
//! Invariant: the first log line opens the file; a failure to write a log line has no effect.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use config::{Environment, LogLevel, Redactor};
use platform::OpenOptionsExt;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::Level;

/// The file is rotated at this size; `ROTATED_FILES` old files are kept.
const ROTATE_BYTES: u64 = 4 << 20;
const ROTATED_FILES: u32 = 3;

/// All secrets of this process.
pub(crate) static REDACTORS: LazyLock<Mutex<Vec<Redactor>>> = LazyLock::new(Mutex::default);

/// The text with every secret masked that is known so far.
pub(crate) fn mask_secrets(text: &str) -> String {
    let redactors = REDACTORS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    redactors.iter().fold(text.to_owned(), |text, redactor| redactor.redact(&text).into_owned())
}

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

/// Logs to the file; to stderr too if the user asked for a level, because stderr belongs to the command's own messages.
pub(crate) fn start_for_command(environment: &Environment, level: Option<Level>) {
    init(environment, level, level.is_some());
}

/// The path of the log file.
pub(crate) fn file(environment: &Environment) -> PathBuf {
    environment.state_dir().join("dragoman.log")
}

/// Sets the level to `logLevel` of the settings, unless the command line has named a level.
pub(crate) fn use_configured_level(level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    if let Some(set_level) = SET_LEVEL.get() {
        set_level(level);
    }
}

/// Changes the level of the running log; absent where the command line has named a level.
static SET_LEVEL: OnceLock<Box<dyn Fn(LevelFilter) + Send + Sync>> = OnceLock::new();

fn init(environment: &Environment, level: Option<Level>, stderr: bool) {
    let filter = match level.unwrap_or(Level::Warn) {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let log = Log { path: file(environment), file: Arc::default(), stderr };
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log);
    let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
    if started.is_err() {
        tracing::debug!("logging was started already");
    } else if level.is_none() {
        // A level that cannot be set leaves the log as it was.
        let _ = SET_LEVEL.set(Box::new(move |level| drop(handle.reload(level))));
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
        platform::create_private_folder(folder)?;
    }
    OpenOptions::new().create(true).append(true).private().open(path)
}

fn rotate(path: &Path) {
    let old = |number: u32| path.with_extension(format!("log.{number}"));
    for number in (1..ROTATED_FILES).rev() {
        let _ = std::fs::rename(old(number), old(number + 1));
    }
    let _ = std::fs::rename(path, old(1));
}
