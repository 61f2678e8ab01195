//! There is no wall on Windows: a command that must be strictly confined is refused, any other runs as it is, and rules
//! ask about it as they do wherever there is no sandbox.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use sandbox::proxy::Proxy;
use sandbox::{Allowance, Sandbox, Support};

use crate::error::ProcessError;

/// The wall that a child is started behind.
#[derive(Debug, Clone)]
pub(crate) struct Confinement {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) allowance: Allowance,
}

static SUPPORT: OnceLock<Support> = OnceLock::new();

/// What [`sandbox_support`] found, if it was asked already.
pub fn known_sandbox_support() -> Option<Support> {
    SUPPORT.get().cloned()
}

/// None, on this system.
pub async fn sandbox_support(_sandbox: &Sandbox) -> Support {
    let support = SUPPORT.get_or_init(|| {
        let reason = "Dragoman has none for this operating system yet".to_owned();
        let support = Support::Unavailable { reason };
        tracing::warn!("{}", support.sentence());
        support
    });
    support.clone()
}

/// A command line for the helper; there is none here.
pub(crate) struct Confined {
    pub(crate) command: Command,
    pub(crate) leftovers: Option<sandbox::Guard>,
    proxy: Proxy,
}

impl Confinement {
    /// `None`: this machine has no wall.
    pub(crate) async fn prepare(
        &self,
        _program: &Path,
        _arguments: &[OsString],
        _directory: &Path,
        _set: &[&OsStr],
        _terminal: bool,
    ) -> Result<Option<Confined>, ProcessError> {
        let support = sandbox_support(&self.sandbox).await;
        if self.allowance.strict || self.sandbox.is_required() {
            return Err(ProcessError::Sandbox { reason: support.sentence() });
        }
        Ok(None)
    }
}

impl Confined {
    pub(crate) fn serve(self) -> io::Result<Attendant> {
        Ok(Attendant { proxy: self.proxy })
    }
}

/// What this process does for a confined child while it runs: nothing here.
#[derive(Debug)]
pub(crate) struct Attendant {
    pub(crate) proxy: Proxy,
}

impl Attendant {
    pub(crate) async fn was_over_memory(&self) -> bool {
        false
    }
}
