//! There is no wall on Windows: a command that must be strictly confined is refused, any other runs as it is, and rules
//! ask about it as they do wherever there is no sandbox.

use std::ffi::OsString;
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
pub fn known_sandbox_support() -> Option<&'static Support> {
    SUPPORT.get()
}

/// None, on this system.
pub async fn sandbox_support(_sandbox: &Sandbox) -> &'static Support {
    SUPPORT.get_or_init(|| {
        let reason = "Dragoman has none for this operating system yet".to_owned();
        let support = Support::Unavailable { reason };
        tracing::warn!("{}", support.sentence());
        support
    })
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
    ) -> Result<Option<Confined>, ProcessError> {
        let support = sandbox_support(&self.sandbox).await;
        if self.allowance.strict {
            return Err(ProcessError::Sandbox { reason: support.sentence() });
        }
        Ok(None)
    }
}

impl Confined {
    pub(crate) fn serve(self) -> io::Result<Proxy> {
        Ok(self.proxy)
    }
}
