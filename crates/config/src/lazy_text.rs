//! Strings with references: `${env:NAME:default}`, `${file:path}`, `${cmd:line}`, `${netrc:machine}`.
//! Variables are replaced at once; files, commands and netrc entries are looked up at the first use and remembered, so
//! that reading settings never waits for a password manager. The value of a reference is never searched for references.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Failure;
use process::{End, OutputLimit, Spawn};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::jsonc;
use crate::netrc::{self, NetrcQuery};
use crate::secret::{Redactor, Secret};

/// How long a `${cmd:…}` may take: a person may have to type a passphrase.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A setting that may have to be looked up. Copies share the value.
#[derive(Clone)]
pub struct LazyText(Arc<Inner>);

struct Inner {
    /// The key it is under, for messages.
    setting: String,
    /// As it was written.
    written: String,
    parts: Vec<Part>,
    /// Whether surrounding white space is removed: for everything but prompts.
    trim: bool,
    secret: Option<Redactor>,
    value: OnceCell<String>,
}

/// The places that references of a text are looked up in.
pub(crate) struct LookupContext<'a> {
    pub(crate) environment: &'a Environment,
    /// Relative files start here.
    pub(crate) base: &'a Path,
    /// Commands run here.
    pub(crate) directory: &'a Path,
    pub(crate) netrc_file: Option<&'a Path>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    File(PathBuf),
    Command {
        line: String,
        directory: PathBuf,
    },
    Netrc {
        entry: String,
        files: Vec<PathBuf>,
    },
    /// A file of ECA's own program, which is not here.
    ClassPath,
}

impl LazyText {
    pub(crate) fn new(setting: &str, written: &str, trim: bool, context: &LookupContext) -> Self {
        Self(Arc::new(Inner::new(setting, written, trim, None, context)))
    }

    /// A setting without references.
    pub fn plain(setting: impl Into<String>, value: impl Into<String>) -> Self {
        let written: String = value.into();
        let value = OnceCell::new_with(Some(written.clone()));
        Self(Arc::new(Inner {
            setting: setting.into(),
            written,
            parts: Vec::new(),
            trim: false,
            secret: None,
            value,
        }))
    }

    /// The value, looked up at the first call. A failure is not remembered: the next call tries again.
    pub async fn get(&self) -> Result<&str, Failure> {
        let value = self.0.value.get_or_try_init(|| self.0.look_up()).await?;
        Ok(value)
    }

    /// The value if it is known without looking anything up.
    pub fn known(&self) -> Option<&str> {
        self.0.value.get().map(String::as_str)
    }

    /// The value for a caller that cannot await. Waits for commands, at most their time limit.
    pub fn get_blocking(&self) -> Result<String, Failure> {
        if let Some(known) = self.known() {
            return Ok(known.to_owned());
        }
        let value = self.look_up_now()?;
        let _ = self.0.value.set(value.clone());
        Ok(value)
    }

    fn look_up_now(&self) -> Result<String, Failure> {
        if !self.0.parts.iter().any(|part| matches!(part, Part::Command { .. })) {
            return self.0.without_commands();
        }
        let failed =
            |what: String| Failure::internal(format!("`{}` could not be looked up: {what}.", self.0.setting));
        // On a thread of its own, because the caller may be inside a runtime.
        std::thread::scope(|scope| {
            let lookup = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| failed(error.to_string()))?;
                runtime.block_on(self.0.look_up())
            });
            lookup.join().unwrap_or_else(|_| Err(failed("the thread for it ended".into())))
        })
    }

    /// As it was written, references and all. Not for secrets.
    pub fn written(&self) -> &str {
        &self.0.written
    }

    pub(crate) fn needs_class_path(&self) -> bool {
        self.0.parts.contains(&Part::ClassPath)
    }
}

impl fmt::Debug for LazyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyText({:?})", self.0.written)
    }
}

impl PartialEq for LazyText {
    fn eq(&self, other: &Self) -> bool {
        self.0.written == other.0.written && self.0.parts == other.0.parts
    }
}

/// A secret that may have to be looked up. The redactor knows its value from then on.
#[derive(Clone, PartialEq)]
pub struct SecretSource(LazyText);

impl SecretSource {
    /// Without a redactor it is shown masked all the same, but not searched for in logs.
    pub(crate) fn new(
        setting: &str,
        written: &str,
        context: &LookupContext,
        redactor: Option<&Redactor>,
    ) -> Self {
        Self(LazyText(Arc::new(Inner::new(setting, written, true, redactor.cloned(), context))))
    }

    /// The secret, looked up at the first call.
    pub async fn get(&self) -> Result<Secret, Failure> {
        self.0.get().await.map(Secret::new)
    }

    /// The secret if it is known without looking anything up.
    pub fn known(&self) -> Option<Secret> {
        self.0.known().map(Secret::new)
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSource(********)")
    }
}

impl Inner {
    fn new(
        setting: &str,
        written: &str,
        trim: bool,
        secret: Option<Redactor>,
        context: &LookupContext,
    ) -> Self {
        let parts = parse(written, context);
        let (setting, written) = (setting.to_owned(), written.to_owned());
        let mut inner = Self { setting, written, parts, trim, secret, value: OnceCell::new() };
        let known = match inner.parts.as_slice() {
            [] => Some(String::new()),
            [Part::Text(text)] => Some(inner.finish(text)),
            _ => None,
        };
        inner.value = OnceCell::new_with(known);
        inner
    }

    async fn look_up(&self) -> Result<String, Failure> {
        let mut value = String::new();
        for part in &self.parts {
            match part {
                Part::Command { line, directory } => value.push_str(&self.run(line, directory).await?),
                part @ Part::Text(_)
                | part @ Part::File(_)
                | part @ Part::Netrc { .. }
                | part @ Part::ClassPath => value.push_str(&self.literal(part)?),
            }
        }
        Ok(self.finish(&value))
    }

    fn without_commands(&self) -> Result<String, Failure> {
        let parts: Result<String, Failure> = self.parts.iter().map(|part| self.literal(part)).collect();
        parts.map(|value| self.finish(&value))
    }

    fn finish(&self, value: &str) -> String {
        let value = if self.trim { value.trim() } else { value }.to_owned();
        if let Some(redactor) = &self.secret {
            redactor.add_secret(&value);
        }
        value
    }

    fn literal(&self, part: &Part) -> Result<String, Failure> {
        match part {
            Part::Text(text) => Ok(text.clone()),
            Part::File(path) => match jsonc::read(path) {
                Ok(Some(text)) => Ok(text),
                Ok(None) => Err(self.failed(format!("there is no file {}", path.display()))),
                Err(broken) => Err(self.failed(format!("{}: {}", path.display(), broken.0))),
            },
            Part::Netrc { entry, files } => {
                let texts = files.iter().filter_map(|file| jsonc::read(file).ok().flatten());
                let password =
                    texts.into_iter().find_map(|text| netrc::password(&text, &NetrcQuery::parse(entry)));
                password.ok_or_else(|| {
                    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                    self.failed(format!("there is no entry “{entry}” in {}", files.join(" or ")))
                })
            }
            Part::ClassPath => Err(self.failed("`${classpath:…}` means files of ECA's own program".into())),
            Part::Command { .. } => Err(self.failed("a command cannot run here".into())),
        }
    }

    /// Runs a command and takes its output. Neither its text nor its errors are shown: both may hold secrets.
    async fn run(&self, line: &str, directory: &Path) -> Result<String, Failure> {
        let directory = if directory.is_dir() { directory } else { Path::new("/") };
        let spawn = Spawn::shell(line)
            .directory(directory)
            .deadline(COMMAND_TIMEOUT)
            .limit(OutputLimit { head: 1 << 20, tail: 0 });
        let finished = spawn.run(&CancellationToken::new()).await;
        let finished = finished.map_err(|error| self.failed(error.to_string()))?;
        let why = match finished.end {
            End::Exited(0) if finished.stdout.dropped == 0 => {
                return Ok(finished.stdout.text().trim_end().to_owned());
            }
            End::Exited(0) => "its command writes more than 1 MiB".to_owned(),
            End::Exited(code) => format!("its command failed with exit code {code}"),
            End::Signalled(signal) => format!("its command was ended by signal {signal}"),
            End::DeadlinePassed | End::Stopped => {
                format!("its command took longer than {} seconds", COMMAND_TIMEOUT.as_secs())
            }
        };
        Err(self.failed(why))
    }

    fn failed(&self, why: String) -> Failure {
        let failure = Failure::config(format!("`{}` could not be looked up: {why}.", self.setting));
        failure.hint("Try the reference by hand, then mend it in your settings.")
    }
}

/// Splits a text into literal parts and references, putting variables in.
fn parse(written: &str, context: &LookupContext) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = written;
    while let Some(start) = rest.find("${") {
        text.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let known = closing(inside).and_then(|end| Some((end, reference(&inside[..end], context)?)));
        match known {
            Some((end, Part::Text(value))) => {
                text.push_str(&value);
                rest = &inside[end + 1..];
            }
            Some((end, part)) => {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(part);
                rest = &inside[end + 1..];
            }
            // Not a reference: it stays as it is.
            None => {
                text.push_str("${");
                rest = inside;
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    parts
}

/// What a text refers to.
pub(crate) enum Reference {
    File(PathBuf),
    /// A variable, a command or an entry of netrc.
    OfUser,
}

/// Everything that a text refers to.
pub(crate) fn references(written: &str, context: &LookupContext) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut rest = written;
    while let Some((_, inside)) = rest.split_once("${") {
        rest = inside;
        let Some(end) = closing(inside) else { continue };
        let is_variable = inside[..end].starts_with("env:");
        match reference(&inside[..end], context) {
            Some(Part::File(file)) => found.push(Reference::File(file)),
            Some(Part::Command { .. } | Part::Netrc { .. }) => found.push(Reference::OfUser),
            Some(Part::Text(_)) if is_variable => found.push(Reference::OfUser),
            Some(Part::Text(_) | Part::ClassPath) | None => {}
        }
    }
    found
}

/// The brace that ends a reference; braces inside it (`awk '{print $1}'`) come in pairs, or else the first one.
pub(crate) fn closing(inside: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in inside.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    inside.find('}')
}

fn reference(inside: &str, context: &LookupContext) -> Option<Part> {
    let (kind, value) = inside.split_once(':')?;
    match kind {
        "env" => {
            let (name, default) = value.split_once(':').unwrap_or((value, ""));
            Some(Part::Text(context.environment.raw(name).unwrap_or(default).to_owned()))
        }
        "file" => Some(Part::File(context.base.join(context.environment.expand_home(value)))),
        "cmd" => Some(Part::Command { line: value.to_owned(), directory: context.directory.to_owned() }),
        "netrc" => {
            let home = context.environment.home();
            let files = match context.netrc_file {
                Some(file) => vec![file.to_owned()],
                None => vec![home.join(".netrc"), home.join("_netrc")],
            };
            Some(Part::Netrc { entry: value.to_owned(), files })
        }
        "classpath" => Some(Part::ClassPath),
        _ => None,
    }
}
