//! Plugins: looks at them, pins their sources, installs, updates and uninstalls them.
//!
//! Invariant: nothing of a source is used before the user has seen it and agreed; an update shows its changes first.

mod fetch;

use std::path::Path;

use config::plugins::{self, Plugin, PluginPin, PluginSource, Plugins};
use config::{Environment, ManagedRules, NewValue, SettingsChange, SettingsFile};
use domain::{Failure, visible_line};
use serde_json::{Value, json};

use fetch::Snapshot;

/// Shows a text, asks a question, and answers whether the user agrees.
pub type Confirm<'a> = &'a dyn Fn(&str, &str) -> Result<bool, Failure>;

/// Files of a plugin that are listed; more are counted.
const MOST_FILES: usize = 200;
/// The files of a plugin that start programs or change settings are shown whole.
const SHOWN_WHOLE: &[&str] = &[
    "hooks/hooks.json",
    ".mcp.json",
    "mcp.json",
    "eca.json",
    "plugin.json",
    ".plugin/plugin.json",
    ".claude-plugin/plugin.json",
];

/// What `/plugins` and `dragoman plugins list` show.
pub fn list(known: &Plugins) -> String {
    let mut lines = Vec::new();
    for source in &known.sources {
        let version = match &source.pin {
            None => "not pinned".to_owned(),
            Some(PluginPin { commit: None, .. }) => "a folder, used as it is".to_owned(),
            Some(PluginPin { commit: Some(commit), .. }) => format!("pinned to {commit:.12}"),
        };
        lines.push(format!("{} ({}): {version}", source.name, source.location));
        let Some(pin) = &source.pin else { continue };
        let offered = match plugins::marketplace(&pin.folder, &source.name) {
            Ok(offered) => offered,
            Err(failure) => {
                lines.push(format!("  {failure}"));
                continue;
            }
        };
        for plugin in offered {
            let mark = if known.installed.contains(&plugin) { "✅ " } else { "" };
            lines.push(format!("- {mark}{}: {}", plugin.name, plugin.description));
        }
    }
    if lines.is_empty() {
        return "No plugin is configured. `dragoman plugins install NAME` installs one.".to_owned();
    }
    lines.push(
        "`dragoman plugins install NAME` in a terminal installs a plugin, `update SOURCE` a newer version."
            .into(),
    );
    lines.join("\n")
}

/// Uses a plugin, if the user agrees.
pub async fn install(
    environment: &Environment,
    known: &Plugins,
    entry: &str,
    confirm: Confirm<'_>,
) -> Result<String, Failure> {
    let (known, entry, added) = with_new_source(environment, known, entry);
    let (source, snapshot, plugin) = look_up(environment, &known, &entry).await?;
    let name = format!("{}@{}", plugin.name, source.name);
    let is_listed = known.wanted.iter().any(|wanted| *wanted == name || *wanted == plugin.name);
    let text = describe(&plugin, snapshot.as_ref().and_then(|snapshot| snapshot.commit.as_deref()));
    let question = match &snapshot {
        Some(_) => format!("Pin {} to this version and use {}?", source.name, plugin.name),
        None => format!("Use {}?", plugin.name),
    };
    if !confirm(&text, &question)? {
        return Ok(format!("{name} is not installed."));
    }
    if let Some(snapshot) = snapshot {
        snapshot.keep(environment, &source)?;
    }
    if added {
        let keys = ["plugins", &source.name, "source"].map(str::to_owned).to_vec();
        let change = SettingsChange { keys, value: NewValue::Set(json!(source.location)) };
        SettingsFile::of_user(environment).change(&[change])?;
    }
    if !is_listed {
        let keys = vec!["plugins".to_owned(), "install".to_owned()];
        let change = SettingsChange { keys, value: NewValue::Append(json!(name)) };
        SettingsFile::of_user(environment).change(&[change])?;
    }
    Ok(format!("{name} is installed. Chats that start from now on use it."))
}

/// `NAME@ADDRESS` names a source that the settings do not have yet, or have under a name. `true`: it is new.
fn with_new_source(environment: &Environment, known: &Plugins, entry: &str) -> (Plugins, String, bool) {
    let mut known = known.clone();
    let named = entry.split_once('@').filter(|(_, place)| place.contains('/'));
    let found = named.and_then(|(plugin, place)| Some((plugin, plugins::source_at(environment, place)?)));
    let Some((plugin, mut source)) = found else { return (known, entry.to_owned(), false) };
    if let Some(same) = known.sources.iter().find(|it| it.location == source.location) {
        let entry = format!("{plugin}@{}", same.name);
        return (known, entry, false);
    }
    let taken = |name: &str| known.sources.iter().any(|source| source.name == name);
    let numbered = (2..).map(|number| format!("{}-{number}", source.name));
    let free = std::iter::once(source.name.clone()).chain(numbered).find(|name| !taken(name));
    source.name = free.unwrap_or_default();
    let entry = format!("{plugin}@{}", source.name);
    known.sources.push(source);
    (known, entry, true)
}

/// A source with what it offers, and its snapshot where it is not pinned yet.
struct Offer {
    source: PluginSource,
    snapshot: Option<Snapshot>,
    plugins: Vec<Plugin>,
}

/// The source that offers a plugin, and its snapshot where it is not pinned yet. The user's own sources come first: a
/// built-in one is fetched only for a plugin that they do not offer. A source that cannot be used hides no other one.
async fn look_up(
    environment: &Environment,
    known: &Plugins,
    entry: &str,
) -> Result<(PluginSource, Option<Snapshot>, Plugin), Failure> {
    let wanted = entry.rsplit_once('@').map(|(_, source)| source);
    let built_in = plugins::built_in_sources();
    let is_built_in = |source: &PluginSource| built_in.iter().any(|it| it.location == source.location);
    let (mut last, mut own): (Vec<PluginSource>, Vec<PluginSource>) =
        known.sources.iter().cloned().partition(|source| source.pin.is_none() && is_built_in(source));
    if known.sources.is_empty() {
        last = built_in;
    }
    own.retain(|source| wanted.is_none_or(|wanted| source.name == wanted));
    last.retain(|source| wanted.is_none_or(|wanted| source.name == wanted));
    let (mut offers, mut problems): (Vec<Offer>, Vec<String>) = Default::default();
    for sources in [own, last] {
        for source in sources {
            match offer(source).await {
                Ok(offer) => offers.push(offer),
                Err(failure) => problems.push(failure.message),
            }
        }
        let offered: Vec<Plugin> = offers.iter().flat_map(|offer| offer.plugins.clone()).collect();
        let is_offered = offered.iter().any(|it| Some(it.name.as_str()) == entry.split('@').next());
        if !is_offered {
            continue;
        }
        let plugin = plugins::find(entry, &offered).cloned().map_err(Failure::user)?;
        let offer = offers.into_iter().find(|offer| offer.source.name == plugin.source);
        let Offer { source, snapshot, .. } = offer.ok_or_else(|| Failure::user("The source is gone."))?;
        if let Some(managed) = environment.managed()
            && !managed.rules.permits_plugin(&plugin.name, &source.name, &source.location)
        {
            return Err(ManagedRules::refusal(&format!("The plugin {}", plugin.name)));
        }
        return Ok((source, snapshot, plugin));
    }
    let names: Vec<&str> =
        offers.iter().flat_map(|offer| &offer.plugins).map(|it| it.name.as_str()).collect();
    let mut text = format!("No source offers a plugin {entry}.");
    if !names.is_empty() {
        text.push_str(&format!(" There are: {}.", names.join(", ")));
    }
    Err(Failure::user([vec![text], problems].concat().join(" ")))
}

async fn offer(source: PluginSource) -> Result<Offer, Failure> {
    let snapshot = match &source.pin {
        Some(_) => None,
        None => Some(fetch::fetch(&source).await?),
    };
    let pinned = source.pin.as_ref().map(|pin| pin.folder.as_path());
    let folder = snapshot.as_ref().map(Snapshot::folder).or(pinned);
    let folder = folder.ok_or_else(|| Failure::user("The source is gone."))?;
    let plugins = plugins::marketplace(folder, &source.name)?;
    Ok(Offer { snapshot, plugins, source })
}

/// Uses the newest version of a source, if the user agrees.
pub async fn update(
    environment: &Environment,
    known: &Plugins,
    name: &str,
    confirm: Confirm<'_>,
) -> Result<String, Failure> {
    let source = known.sources.iter().find(|source| source.name == name).ok_or_else(|| {
        Failure::user(format!("There is no source {name}.")).hint("`dragoman plugins list` shows them.")
    })?;
    let Some(pin) = source.pin.as_ref() else {
        return Err(Failure::user(format!("{name} is not pinned.")).hint("Install one of its plugins first."));
    };
    let Some(before) = pin.commit.clone() else {
        return Ok(format!("{name} is a folder of this machine and is used as it is."));
    };
    let snapshot = fetch::fetch(source).await?;
    let after = snapshot.commit.clone().unwrap_or_default();
    if after == before {
        return Ok(format!("{name} is at the newest version, {before:.12}."));
    }
    let changes = fetch::changes(&pin.folder, snapshot.folder()).await?;
    let text = format!("{name} from {before:.12} to {after:.12}:\n\n{changes}");
    if !confirm(&text, &format!("Use this version of {name}?"))? {
        return Ok(format!("{name} stays at {before:.12}."));
    }
    // A marketplace that cannot be used is not pinned.
    plugins::marketplace(snapshot.folder(), name)?;
    snapshot.keep(environment, source)?;
    Ok(format!("{name} is at {after:.12}. Chats that start from now on use it."))
}

/// Takes a plugin out of the settings of the user.
pub fn uninstall(environment: &Environment, entry: &str) -> Result<String, Failure> {
    let file = SettingsFile::of_user(environment);
    let values = file.values()?;
    let listed = values.get("plugins").and_then(|section| section.get("install")).and_then(Value::as_array);
    let listed: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
    let fits = |name: &str| name == entry || name.split('@').next() == Some(entry);
    let kept: Vec<&str> = listed.iter().copied().filter(|name| !fits(name)).collect();
    if kept.len() == listed.len() {
        let text = format!("{} does not list {entry}.", file.path().display());
        return Err(
            Failure::user(text).hint("Remove it from the file that names it: `dragoman config show`.")
        );
    }
    let keys = vec!["plugins".to_owned(), "install".to_owned()];
    file.change(&[SettingsChange { keys, value: NewValue::Set(json!(kept)) }])?;
    Ok(format!("{entry} is no longer used. Its source stays pinned."))
}

/// Everything that a plugin brings.
fn describe(plugin: &Plugin, commit: Option<&str>) -> String {
    let mut lines = vec![format!("{}: {}", plugin.name, plugin.description)];
    lines.extend(commit.map(|commit| format!("Version: {commit}")));
    lines.extend(
        (!plugin.dependencies.is_empty()).then(|| format!("It needs: {}", plugin.dependencies.join(", "))),
    );
    let files = fetch::files_below(&plugin.folder);
    lines.push(format!("It has {} files:", files.len()));
    lines.extend(files.iter().take(MOST_FILES).map(|file| format!("  {}", name_of(file))));
    for file in SHOWN_WHOLE {
        if let Ok(text) = std::fs::read_to_string(plugin.folder.join(file)) {
            lines.push(format!("\n{file}:\n{}", text.trim_end()));
        }
    }
    lines.join("\n")
}

fn name_of(path: &Path) -> String {
    visible_line(&path.display().to_string()).into_owned()
}
