//! Downloads one file of the hub, from where an earlier try ended.
//!
//! Invariants: size and SHA-256 are those of the list, or those that the hub states of other files, and are checked
//! before the file gets its name; no header of ours follows a redirect; an interrupted download leaves its part for the
//! next try.

use std::path::PathBuf;
use std::time::Duration;

use config::{Environment, Inputs};
use domain::Failure;
use futures_util::StreamExt;
use local_model::{Engine, Incoming};
use reqwest::Response;
use reqwest::header::{LOCATION, RANGE};
use serde_json::Value;
use tokio::time::Instant;

use crate::model_list::{HubPlace, ListedModel, is_plain};
use crate::progress::{ProgressBar, REDRAW};
use crate::{Output, space};

/// A request without an answer, and a download without data, fail after this time.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const FACTS_TIMEOUT: Duration = Duration::from_secs(15);
const MOST_REDIRECTS: usize = 5;
/// The list of a repository is some kilobytes.
const FACTS_LIMIT: usize = 4 << 20;
const DEFAULT_HUB: &str = "https://huggingface.co";

/// What the hub states about a file.
struct HubFile {
    repository: String,
    name: String,
    bytes: u64,
    sha256: String,
    license: String,
}

/// Puts a model of the list into the models directory.
pub(crate) async fn pull_listed(
    environment: &Environment,
    model: &ListedModel,
    place: &HubPlace,
    output: Output,
) -> Result<PathBuf, Failure> {
    let file = HubFile {
        repository: place.repository.clone(),
        name: place.file.clone(),
        bytes: model.bytes,
        sha256: model.sha256.clone(),
        license: model.license.clone(),
    };
    download(environment, &file, &model.id, output).await
}

/// Whether the hub answers and has the file.
pub(crate) async fn has(environment: &Environment, place: &HubPlace) -> Result<(), Failure> {
    let url = address(environment, &place.repository, &place.file);
    let answer = tokio::time::timeout(FACTS_TIMEOUT, get(environment, &url, None)).await;
    answer.map_err(|_| unreachable("it does not answer"))?.map(drop)
}

/// `file` is `OWNER/REPO/FILE.gguf`.
pub async fn pull_file(environment: &Environment, file: &str, output: Output) -> Result<(), Failure> {
    let parts: Vec<&str> = file.split('/').collect();
    let good = parts.len() >= 3 && file.ends_with(".gguf") && parts.iter().all(|part| is_plain(part));
    if !good {
        return Err(Failure::user(format!("hf:{file} is not a file of the hub."))
            .hint("Write hf:OWNER/REPO/FILE.gguf."));
    }
    let (repository, name) = (parts[..2].join("/"), parts[2..].join("/"));
    let stem = parts.last().and_then(|last| last.strip_suffix(".gguf")).unwrap_or_default().to_lowercase();
    let file = facts(environment, &repository, |candidate| candidate == name).await?;
    let path = environment.models_dir().join(format!("{stem}.gguf"));
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == file.bytes) {
        return output.print_line(&format!("local/{stem} is already installed: {}", path.display()));
    }
    let gigabytes = file.bytes as f64 / 1e9;
    output.print_line(&format!(
        "{} of {repository} ({gigabytes:.1} GB, license {})",
        file.name, file.license
    ))?;
    let path = download(environment, &file, &stem, output).await?;
    output.print_line(&format!("local/{stem} is installed: {}", path.display()))
}

async fn facts(
    environment: &Environment,
    repository: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<HubFile, Failure> {
    let url = format!("{}/api/models/{repository}?blobs=true", hub(environment));
    let answer = tokio::time::timeout(FACTS_TIMEOUT, async {
        let mut body = get(environment, &url, None).await?.bytes_stream();
        let mut text = Vec::new();
        while let Some(bytes) = body.next().await {
            text.extend_from_slice(&bytes.map_err(|error| unreachable(&without_url(error)))?);
            if text.len() > FACTS_LIMIT {
                return Err(unreachable("its list of files is too long"));
            }
        }
        serde_json::from_slice::<Value>(&text).map_err(|_| unreachable("its answer is not JSON"))
    });
    let answer = answer.await.map_err(|_| unreachable("it does not answer"))??;
    let files = answer["siblings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let file = files.iter().find(|file| file["rfilename"].as_str().is_some_and(&wanted));
    let file = file.ok_or_else(|| Failure::user(format!("{repository} has no such file on the hub.")))?;
    let size = file["lfs"]["size"].as_u64().or_else(|| file["size"].as_u64());
    let (Some(bytes), Some(sha256)) = (size, file["lfs"]["sha256"].as_str()) else {
        return Err(Failure::user(format!(
            "The hub states no size and SHA-256 of the file in {repository}."
        ))
        .hint("Download the file yourself and run `dragoman models add FILE.gguf`."));
    };
    let license = answer["cardData"]["license"].as_str().unwrap_or("not stated");
    Ok(HubFile {
        repository: repository.to_owned(),
        name: file["rfilename"].as_str().unwrap_or_default().to_owned(),
        bytes,
        sha256: sha256.to_lowercase(),
        license: license.chars().filter(|c| !c.is_control()).take(60).collect(),
    })
}

async fn download(
    environment: &Environment,
    file: &HubFile,
    id: &str,
    output: Output,
) -> Result<PathBuf, Failure> {
    let models = environment.models_dir();
    let failed = |error: local_model::InstallError| Failure::user(error.to_string());
    let mut incoming = Incoming::resume(&models, id).map_err(failed)?;
    space::check(&models, file.bytes.saturating_sub(incoming.written()))?;
    if incoming.written() > 0 {
        let megabytes = incoming.written() / 1_000_000;
        output.print_line(&format!("Continuing after the {megabytes} MB that are already there."))?;
    }
    if incoming.written() != file.bytes {
        fetch(environment, file, &mut incoming, output).await?;
    }
    incoming.finish_checked(file.bytes, &file.sha256, Engine::check).map_err(failed)
}

async fn fetch(
    environment: &Environment,
    file: &HubFile,
    incoming: &mut Incoming,
    output: Output,
) -> Result<(), Failure> {
    let url = address(environment, &file.repository, &file.name);
    let unwritable = |error: local_model::InstallError| Failure::user(error.to_string());
    let response = get(environment, &url, Some(incoming.written()).filter(|done| *done > 0)).await?;
    if response.status().as_u16() != 206 {
        // The server sends the file from its beginning.
        incoming.restart().map_err(unwritable)?;
    }
    let mut body = response.bytes_stream();
    let mut bar = ProgressBar::new(output, file.bytes);
    let mut redraw = tokio::time::interval(REDRAW);
    let mut silent_until = Instant::now() + SILENCE_TIMEOUT;
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout_at(silent_until, body.next()) => next,
            _ = redraw.tick(), if bar.is_shown => {
                bar.draw(incoming.written());
                continue;
            }
        };
        let Some(bytes) = next.map_err(|_| interrupted("no data arrives"))? else { break };
        silent_until = Instant::now() + SILENCE_TIMEOUT;
        let bytes = bytes.map_err(|error| interrupted(&without_url(error)))?;
        if incoming.written() + bytes.len() as u64 > file.bytes {
            incoming.restart().map_err(unwritable)?;
            return Err(unreachable("the file is larger than stated"));
        }
        incoming.write(&bytes).map_err(unwritable)?;
    }
    bar.clear();
    if incoming.written() < file.bytes {
        return Err(interrupted("the connection ended early"));
    }
    Ok(())
}

/// Follows redirects by hand: each address gets a client of its own, and nothing but the range goes along.
pub(crate) async fn get(
    environment: &Environment,
    url: &str,
    from: Option<u64>,
) -> Result<Response, Failure> {
    let inputs = Inputs { workspace_roots: Vec::new(), ..Inputs::default() };
    let network = providers::network::of(&config::resolve(environment, &inputs))?;
    let mut url = url.to_owned();
    for _ in 0..=MOST_REDIRECTS {
        let client = network.client(&url).await?;
        let mut request = client.get(&url);
        if let Some(from) = from {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = tokio::time::timeout(SILENCE_TIMEOUT, request.send()).await;
        let response = response.map_err(|_| unreachable("it does not answer"))?;
        let response = response.map_err(|error| unreachable(&without_url(error)))?;
        let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        match place.filter(|_| response.status().is_redirection()) {
            Some(place) => {
                let next = response.url().join(place).map_err(|_| unreachable("it redirects to nowhere"))?;
                if url.starts_with("https:") && next.scheme() != "https" {
                    return Err(unreachable("it redirects to an address without encryption"));
                }
                url = next.to_string();
            }
            None if response.status().is_success() => return Ok(response),
            None => return Err(unreachable(&format!("the server says {}", response.status()))),
        }
    }
    Err(unreachable("it redirects too often"))
}

fn address(environment: &Environment, repository: &str, file: &str) -> String {
    format!("{}/{repository}/resolve/main/{file}", hub(environment))
}

/// The address of the hub, or of a mirror that the usual variable names.
fn hub(environment: &Environment) -> String {
    let named = environment.var("HF_ENDPOINT").filter(|url| !url.is_empty());
    named.unwrap_or(DEFAULT_HUB).trim_end_matches('/').to_owned()
}

fn unreachable(reason: &str) -> Failure {
    Failure::provider(format!("The model hub cannot be used: {reason}."))
        .hint("Ollama and LM Studio have models too, or download a file yourself and run `dragoman models add FILE.gguf`.")
}

fn interrupted(reason: &str) -> Failure {
    Failure::provider(format!("The download was interrupted: {reason}."))
        .hint("Run the same command again; it goes on where it stopped.")
}

fn without_url(error: reqwest::Error) -> String {
    error.without_url().to_string()
}
