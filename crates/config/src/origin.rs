//! The origin of a value, in words for the user.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// An environment variable, by its name.
    Variable(String),
    InitializationOptions,
    GlobalFile(PathBuf),
    ProjectFile {
        path: PathBuf,
        root: PathBuf,
    },
    /// A file that `extraConfigs` of the user's own settings names.
    ExtraFile(PathBuf),
    CommandLine,
    /// The file of the machine's administrator.
    ManagedFile(PathBuf),
}

impl Origin {
    /// It is a file of ECA, or comes from a client of ECA's protocol.
    pub(crate) fn is_of_eca(&self) -> bool {
        let folder = self.file().and_then(Path::parent).and_then(Path::file_name);
        match self {
            Self::InitializationOptions => true,
            Self::Variable(name) => name == "ECA_CONFIG",
            Self::GlobalFile(_) | Self::ProjectFile { .. } => {
                folder.is_some_and(|name| name == "eca" || name == ".eca")
            }
            Self::Default | Self::ExtraFile(_) | Self::CommandLine | Self::ManagedFile(_) => false,
        }
    }

    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::GlobalFile(path)
            | Self::ExtraFile(path)
            | Self::ManagedFile(path)
            | Self::ProjectFile { path, .. } => Some(path),
            Self::Default | Self::Variable(_) | Self::InitializationOptions | Self::CommandLine => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Variable(name) => write!(f, "${name}"),
            Self::InitializationOptions => f.write_str("initializationOptions"),
            Self::GlobalFile(path)
            | Self::ExtraFile(path)
            | Self::ManagedFile(path)
            | Self::ProjectFile { path, .. } => {
                write!(f, "{}", path.display())
            }
            Self::CommandLine => f.write_str("command line"),
        }
    }
}
