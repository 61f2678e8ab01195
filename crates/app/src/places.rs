//! Which files of the workspace count, and why another does not: for `config show`, `/config`, `/status` and the first screen.

use std::path::{Path, PathBuf};

use config::places::{Place, PlaceState};
use config::{Environment, Resolved};
use domain::visible_line;
use engine::instruction_files::{Folders, InstructionSet, read_all};
use engine::memory::MemoryFolders;
use serde_json::{Value, json};

/// Every file with instructions, settings, skills or commands that was looked at.
pub(crate) struct PlaceReport {
    places: Vec<Place>,
    /// Files with instructions among those that count.
    pub(crate) instructions: Vec<PathBuf>,
}

/// The user's own file with instructions for all chats.
pub(crate) fn global_instructions(environment: &Environment) -> Option<PathBuf> {
    let folders = [environment.config_dir(), environment.eca_config_dir()];
    folders.into_iter().map(|folder| folder.join("AGENTS.md")).find(|path| path.is_file())
}

/// Where the memory is; `None` where it is switched off. A project keeps its own where it keeps things for all assistants.
pub(crate) fn memory_folders(
    environment: &Environment,
    resolved: &Resolved,
    roots: &[PathBuf],
) -> Option<MemoryFolders> {
    let settings = resolved.settings.memory;
    let inner = |root: &Path| {
        let common = Path::new(".agents/memory");
        if root.join(common).is_dir() { common } else { Path::new(".dragoman/memory") }.to_owned()
    };
    settings.enabled.then(|| MemoryFolders {
        user: environment.data_dir().join("memory"),
        project: roots.first().map(|root| (root.clone(), inner(root))),
        is_trusted: resolved.folders.first().is_some_and(config::trust::Folder::is_trusted),
        may_propose: settings.may_propose,
        delete_with_chats: settings.delete_with_chats,
    })
}

/// The memory as a program in the current folder sees it.
pub(crate) fn memory_here(environment: &Environment) -> Option<MemoryFolders> {
    let roots: Vec<PathBuf> = std::env::current_dir().into_iter().collect();
    let inputs = config::Inputs { workspace_roots: roots.clone(), ..config::Inputs::default() };
    memory_folders(environment, &config::resolve(environment, &inputs), &roots)
}

impl PlaceReport {
    pub(crate) fn new(environment: &Environment, resolved: &Resolved, roots: &[PathBuf]) -> Self {
        let global = global_instructions(environment);
        let InstructionSet { files, left_out, .. } = read_all(&Folders {
            global: global.as_deref(),
            roots,
            with_parents: resolved.settings.include_parent_agents_files,
            is_forbidden: &|_| false,
        });
        let instructions = files.iter().map(|file| file.path.clone()).collect();
        let mut places: Vec<Place> = Vec::new();
        for file in files {
            let what = match file.globs.is_empty() {
                true => "instructions".to_owned(),
                false => format!("instructions for {}", file.globs.join(", ")),
            };
            places.push(Place { path: file.path, state: PlaceState::Counts(what) });
        }
        let left_out = left_out.into_iter();
        places.extend(left_out.map(|file| Place { path: file.path, state: PlaceState::LeftOut(file.why) }));
        places.extend(resolved.all_places());
        Self { places, instructions }
    }

    /// Files other than those with instructions that count, and those that do not with the reason.
    pub(crate) fn others(&self, shown: impl Fn(&Path) -> String) -> [Vec<String>; 2] {
        let (mut counting, mut left_out) = (Vec::new(), Vec::new());
        for place in self.places.iter().filter(|place| !self.instructions.contains(&place.path)) {
            let (list, why) = match &place.state {
                PlaceState::Counts(why) => (&mut counting, why),
                PlaceState::LeftOut(why) => (&mut left_out, why),
            };
            list.push(visible_line(&format!("{}: {why}", shown(&place.path))).into_owned());
        }
        [counting, left_out]
    }

    /// A line for each file, for `config show`.
    pub(crate) fn text(&self) -> String {
        self.places.iter().map(|place| format!("# {}\n", visible_line(&place.line()))).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let entry = |place: &Place| match &place.state {
            PlaceState::Counts(what) => json!({"path": place.path, "counts": true, "what": what}),
            PlaceState::LeftOut(why) => json!({"path": place.path, "counts": false, "why": why}),
        };
        self.places.iter().map(entry).collect()
    }
}
