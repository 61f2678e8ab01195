//! Landlock: a second wall behind the mounts, and the only one where namespaces are forbidden.
//!
//! Its rights only add up. So without namespaces a protected path inside of a writable folder cannot be expressed, and
//! the names of hidden files stay visible; their contents do not.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::{Setup, Step};
use crate::policy::{Mode, Policy};
use crate::real_path::real_path;

/// The newest rights that are used. An older kernel enforces those it knows.
const RIGHTS: ABI = ABI::V6;

/// Folders that the mounts made anew and that may be written.
const OWN_FOLDERS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/dev/pts"];

/// Devices that everybody writes to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/urandom"];

/// A walk towards hidden paths that meets more entries than this is refused.
const MOST_RULES: usize = 20_000;

pub(super) fn restrict(policy: &Policy) -> Setup<()> {
    let created = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(RIGHTS)))
        .and_then(Ruleset::create)
        .step("Landlock")?;
    let mut rules = Rules { created: Some(created), count: 0 };
    let all = AccessFs::from_all(RIGHTS);
    match policy.mode {
        Mode::Namespaces => {
            rules.allow(Path::new("/"), AccessFs::from_read(RIGHTS))?;
            for folder in OWN_FOLDERS {
                rules.allow(Path::new(folder), all)?;
            }
            let copies = policy.git_copies.iter().map(|copy| &copy.folder);
            policy.writable.iter().chain(copies).try_for_each(|path| rules.allow(path, all))?;
        }
        Mode::Landlock => {
            rules.allow(Path::new("/"), AccessFs::ReadDir.into())?;
            let hidden = real(&policy.hidden);
            rules.allow_around(Path::new("/"), &hidden, AccessFs::ReadFile | AccessFs::Execute)?;
            rules.allow(&policy.temporary, all)?;
            // A folder on the way to what must stay gets no right of its own, so nothing is made or renamed in it.
            let kept = [hidden, policy.guarded.iter().map(|path| real_or_missing(path)).collect()].concat();
            for path in real(&policy.writable) {
                // A folder that is opened as a workspace is worked in, wherever it lies.
                let inside: Vec<PathBuf> =
                    kept.iter().filter(|kept| kept.starts_with(&path)).cloned().collect();
                rules.allow_around(&path, &inside, all)?;
            }
        }
    }
    for device in DEVICES {
        rules.allow(Path::new(device), AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    rules.enforce(policy.mode)
}

fn real(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| real_path(path)).collect()
}

/// A path that does not exist yet counts too: where it would be made.
fn real_or_missing(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, real_path(above)?)));
    let Some((above, real)) = found else { return path.to_owned() };
    path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest))
}

struct Rules {
    created: Option<RulesetCreated>,
    count: usize,
}

impl Rules {
    /// A path that is not there, or that this user may not open, needs no rule.
    fn allow(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Setup<()> {
        self.count += 1;
        if self.count > MOST_RULES {
            return Err("too many files lie beside hidden ones").step("Landlock");
        }
        let Ok(place) = PathFd::new(path) else { return Ok(()) };
        // Rights of folders mean nothing for a file, and are refused for one.
        let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) };
        if let Some(created) = self.created.take_if(|_| !rights.is_empty()) {
            self.created = Some(created.add_rule(PathBeneath::new(place, rights)).step("Landlock")?);
        }
        Ok(())
    }

    /// Rights for everything but these paths: their neighbors are allowed one by one.
    fn allow_around(&mut self, folder: &Path, kept: &[PathBuf], rights: BitFlags<AccessFs>) -> Setup<()> {
        if kept.iter().any(|path| folder.starts_with(path)) {
            return Ok(());
        }
        if !kept.iter().any(|path| path.starts_with(folder)) {
            return self.allow(folder, rights);
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link is judged by where it leads.
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.allow_around(&entry.path(), kept, rights)?;
            }
        }
        Ok(())
    }

    fn enforce(self, mode: Mode) -> Setup<()> {
        let created = self.created.ok_or("the rules were lost").step("Landlock")?;
        let status = created.restrict_self().step("Landlock")?.ruleset;
        if mode == Mode::Landlock && status == RulesetStatus::NotEnforced {
            return Err("the kernel has none").step("Landlock");
        }
        Ok(())
    }
}
