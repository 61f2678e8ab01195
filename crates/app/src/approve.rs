//! The values of `--approve`: what runs without a question where nobody can be asked.

use clap::ValueEnum;
use domain::host::Grants;

#[derive(Clone, Copy, ValueEnum)]
pub enum Approve {
    /// Only calls that the rules allow.
    None,
    /// Also calls that change nothing.
    Read,
    /// Also file changes inside the folder.
    Edit,
    /// Also web pages. Neither `read` nor `edit` includes it.
    Network,
    /// Also commands that the sandbox keeps in the folder, without network. Neither `read` nor `edit` includes it.
    Sandboxed,
    /// All calls that no rule denies.
    All,
}

impl From<Approve> for Grants {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::None => Self::NONE,
            Approve::Read => Self::READ,
            Approve::Edit => Self::EDIT,
            Approve::Network => Self::NETWORK,
            Approve::Sandboxed => Self::CONTAINED,
            Approve::All => Self::ALL,
        }
    }
}

/// What all of them grant together.
pub(crate) fn join_grants(approved: &[Approve]) -> Grants {
    approved.iter().fold(Grants::NONE, |grants, approve| grants.or((*approve).into()))
}
