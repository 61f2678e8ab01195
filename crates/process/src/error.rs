//! Why a child could not be started, as sentences for the user. A child that started and then failed is no
//! error of this crate: `Exit` or `End` reports its end.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("There is no program “{program}” on the PATH. Install it or give its full path.")]
    NotFound { program: String },
    #[error("“{program}” may not be executed. Check its permissions (chmod +x).")]
    NotExecutable { program: String },
    #[error("The working directory {} does not exist or is no directory. Choose another one.", path.display())]
    NoDirectory { path: PathBuf },
    #[error("“{program}” could not be started: {source}.")]
    Failed { program: String, source: io::Error },
    #[error("The command was not run, because its sandbox could not be prepared: {reason}.")]
    Sandbox { reason: String },
    #[error("No more programs are started, because Dragoman is shutting down.")]
    ShuttingDown,
}

impl ProcessError {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to the standard library and grows")]
    pub(crate) fn from_spawn(program: &str, source: io::Error) -> Self {
        let program = program.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            io::ErrorKind::PermissionDenied => Self::NotExecutable { program },
            _ => Self::Failed { program, source },
        }
    }
}
