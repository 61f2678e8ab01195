//! A TypeScript project on disk: written once, and its generated part again whenever the specification changes.
//!
//! Owns `dragoman.json` (wishes, and the hash of each generated file) and the files that belong to the project's people.
//! Invariants: a file that somebody changed is never replaced unless that was asked for; nothing outside of the generated
//! folder is changed or removed; each file changes atomically.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use apiui::customize::PlanEdit;
use apiui::project::GENERATED;
use domain::Failure;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::options::{GenerateOptions, write_failure};

const STATE: &str = "dragoman.json";

/// Written once; afterwards they belong to the people who keep the project.
const OWN: [(&str, &str); 14] = [
    ("package.json", include_str!("project/package.json")),
    ("tsconfig.json", include_str!("project/tsconfig.json")),
    ("vite.config.ts", include_str!("project/vite.config.ts")),
    ("eslint.config.js", include_str!("project/eslint.config.js")),
    ("playwright.config.ts", include_str!("project/playwright.config.ts")),
    (".prettierrc.json", include_str!("project/prettierrc.json")),
    (".prettierignore", include_str!("project/prettierignore")),
    (".gitignore", include_str!("project/gitignore")),
    ("index.html", include_str!("project/index.html")),
    ("README.md", include_str!("project/README.md")),
    ("src/main.tsx", include_str!("project/main.tsx")),
    ("src/theme.css", include_str!("project/theme.css")),
    ("tests/interface.test.tsx", include_str!("project/interface.test.tsx")),
    ("tests/browser/interface.spec.ts", include_str!("project/interface.spec.ts")),
];

/// The files of a new project besides the generated ones.
pub fn own_files(name: &str) -> Vec<(String, String)> {
    OWN.iter().map(|(path, template)| ((*path).to_owned(), template.replace("{{name}}", name))).collect()
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    #[serde(default)]
    wishes: Vec<String>,
    /// What a model made of wishes that are not understood without one, by the wish.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    edits: BTreeMap<String, Vec<PlanEdit>>,
    /// The options of the command line, for the next time.
    #[serde(default, skip_serializing_if = "KeptOptions::is_empty")]
    options: KeptOptions,
    /// The hash of each generated file as it was written.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Options that a project was generated with; those of a later command line win.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KeptOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub no_auth: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub no_pagination: bool,
}

impl KeptOptions {
    pub(crate) fn of(arguments: &GenerateOptions) -> Self {
        Self {
            theme: arguments.theme.clone(),
            layout: arguments.layout.clone(),
            server: arguments.server.clone(),
            title: arguments.title.clone(),
            header: arguments.header.clone(),
            no_auth: arguments.no_auth,
            no_pagination: arguments.no_pagination,
        }
    }

    /// These, and what they leave open as it was before.
    fn over(self, before: Self) -> Self {
        Self {
            theme: self.theme.or(before.theme),
            layout: self.layout.or(before.layout),
            server: self.server.or(before.server),
            title: self.title.or(before.title),
            header: if self.header.is_empty() { before.header } else { self.header },
            no_auth: self.no_auth || before.no_auth,
            no_pagination: self.no_pagination || before.no_pagination,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

pub(crate) struct Project {
    folder: PathBuf,
    state: State,
    is_new: bool,
}

impl Project {
    /// A folder that is new or empty, or a project that was made here and whose generated files are as they were written.
    pub(crate) fn open(folder: PathBuf, overwrites: bool) -> Result<Self, Failure> {
        let shown = folder.display().to_string();
        let text = match std::fs::read_to_string(folder.join(STATE)) {
            Ok(text) => text,
            Err(_) if std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) => {
                return Err(
                    Failure::user(format!("{shown} is not empty.")).hint("Choose another folder with -o.")
                );
            }
            Err(_) => return Ok(Self { folder, state: State::default(), is_new: true }),
        };
        let state: State = serde_json::from_str(&text).map_err(|error| {
            Failure::user(format!("{shown}/{STATE} cannot be read: {error}."))
                .hint("Mend it, or generate into another folder with -o.")
        })?;
        let project = Self { folder, state, is_new: false };
        let changed = if overwrites { Vec::new() } else { project.changed_files() };
        if changed.is_empty() && !project.leads_elsewhere() {
            return Ok(project);
        }
        if changed.is_empty() {
            return Err(
                Failure::user(format!("{shown}/{GENERATED} is a link.")).hint("Replace it by a folder.")
            );
        }
        let count = changed.len();
        let named = changed.into_iter().take(10).collect::<Vec<_>>().join(", ");
        let message = format!(
            "Generated files of {shown} were changed by hand ({count}): {named}. Nothing was written."
        );
        Err(Failure::user(message)
            .hint("Move the changes to files outside of src/generated, or add --overwrite to give them up."))
    }

    pub(crate) fn wishes(&self) -> &[String] {
        &self.state.wishes
    }

    /// What a model made of a wish.
    pub(crate) fn edits(&self) -> &BTreeMap<String, Vec<PlanEdit>> {
        &self.state.edits
    }

    /// Adds the options of the command line to those of the project.
    pub(crate) fn merge_options(&mut self, given: KeptOptions) -> KeptOptions {
        self.state.options = given.over(std::mem::take(&mut self.state.options));
        self.state.options.clone()
    }

    /// Writes the generated files, and what a new project needs besides. Files that are not generated any more are removed.
    pub(crate) fn write(
        mut self,
        files: Vec<(String, String)>,
        name: &str,
        wishes: &[String],
        edits: BTreeMap<String, Vec<PlanEdit>>,
    ) -> Result<String, Failure> {
        for (path, template) in OWN {
            let path = self.folder.join(path);
            if self.is_new || !path.exists() {
                replace(&path, &template.replace("{{name}}", name))?;
            }
        }
        let before = std::mem::take(&mut self.state.files);
        for (path, text) in files {
            replace(&self.folder.join(&path), &text)?;
            self.state.files.insert(path, hash(text.as_bytes()));
        }
        for path in before.keys().filter(|path| is_generated(path) && !self.state.files.contains_key(*path)) {
            let path = self.folder.join(path);
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(write_failure(&path, &error));
            }
        }
        self.state.wishes.extend(wishes.iter().cloned());
        self.state.edits.extend(edits);
        let state = serde_json::to_string_pretty(&self.state).unwrap_or_default();
        replace(&self.folder.join(STATE), &format!("{state}\n"))?;
        let shown = self.folder.display();
        Ok(if self.is_new {
            format!("\nTo see it:\n  cd {shown}\n  npm install\n  npm run dev")
        } else {
            format!(" {shown}/{GENERATED} is up to date; all other files are as they were.")
        })
    }

    /// Generated files that are not as they were written.
    fn changed_files(&self) -> Vec<String> {
        let is_changed = |(path, written): &(&String, &String)| {
            let now = std::fs::read(self.folder.join(path));
            is_generated(path) && now.is_ok_and(|now| hash(&now) != **written)
        };
        self.state.files.iter().filter(is_changed).map(|(path, _)| path.clone()).collect()
    }

    fn leads_elsewhere(&self) -> bool {
        let is_link = |path: &str| self.folder.join(path).is_symlink();
        is_link("src") || is_link(GENERATED)
    }
}

/// Whether a path of `dragoman.json` is one that we wrote: in the generated folder, without detours.
fn is_generated(path: &str) -> bool {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    Path::new(path).starts_with(GENERATED) && Path::new(path).components().all(plain)
}

fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        // Source files are for everybody whom the user's mask lets read them.
        if let Some(permissions) = platform::permissions_for_all() {
            builder.permissions(permissions);
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| write_failure(path, &error))
}

fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
