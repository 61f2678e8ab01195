//! The colors of `dragoman chat`: built-in themes, and files in the folder `themes` next to the user's settings.
//!
//! Invariant: `NO_COLOR` wins over everything.

use std::path::Path;

use config::Environment;
use domain::Failure;
use terminal::{ColorDepth, Palette, Theme, theme_file};

/// A larger file is no theme.
const MAX_THEME_BYTES: u64 = 64 << 10;

/// The theme of this name, and all that can be chosen. `auto` is dark or light, as the terminal says when it is asked, unless
/// it said so by `COLORFGBG`.
pub(super) fn choose(
    wanted: &str,
    environment: &Environment,
) -> Result<(Theme, Vec<(String, Theme)>), Failure> {
    if environment.var("NO_COLOR").is_some() {
        let plain = Theme::new(Palette::Plain);
        return Ok((plain, vec![("plain".to_owned(), plain)]));
    }
    let depth = ColorDepth::of(environment.var("COLORTERM"), environment.var("TERM"));
    let folder = environment.config_dir().join("themes");
    let mut themes: Vec<(String, Theme)> = theme_file::BUILT_IN
        .iter()
        .map(|(name, palette)| ((*name).to_owned(), Theme::with_depth(*palette, depth)))
        .collect();
    for (name, theme) in files(&folder, depth) {
        match theme {
            Ok(theme) => themes.push((name, theme)),
            Err(problem) if name == wanted => {
                let file = folder.join(format!("{name}.json"));
                return Err(Failure::user(format!("{} is no theme: {problem}.", file.display()))
                    .hint("`dragoman docs chat` shows how a theme is written."));
            }
            Err(_) => {}
        }
    }
    if wanted == "auto" {
        let palette = if is_light(environment) { Palette::Light } else { Palette::Dark };
        return Ok((Theme::with_depth(palette, depth), themes));
    }
    let Some((_, theme)) = themes.iter().find(|(name, _)| name == wanted) else {
        let names: Vec<&str> = themes.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Failure::user(format!("There is no theme {wanted:?}."))
            .hint(format!("Choose one of these: auto, {}.", names.join(", "))));
    };
    Ok((*theme, themes))
}

/// Why a name is no theme.
pub(super) fn problem(wanted: &str, environment: &Environment) -> Option<String> {
    let is_built_in = wanted == "auto" || theme_file::BUILT_IN.iter().any(|(name, _)| *name == wanted);
    if is_built_in {
        return None;
    }
    let found = files(&environment.config_dir().join("themes"), ColorDepth::True);
    match found.into_iter().find(|(name, _)| name == wanted) {
        Some((_, Ok(_))) => None,
        Some((_, Err(problem))) => {
            Some(format!("chat.theme: the file of {wanted:?} is no theme: {problem}."))
        }
        None => Some(format!("chat.theme: there is no theme {wanted:?}.")),
    }
}

fn is_light(environment: &Environment) -> bool {
    let background = environment.var("COLORFGBG").and_then(|it| it.rsplit(';').next()?.parse::<u8>().ok());
    match background {
        Some(color) => matches!(color, 7 | 15),
        None => terminal::is_background_light().unwrap_or(false),
    }
}

/// The themes of the user's folder, by the names of their files.
fn files(folder: &Path, depth: ColorDepth) -> Vec<(String, Result<Theme, String>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(100);
    let mut themes: Vec<(String, Result<Theme, String>)> = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let is_theme = path.extension().is_some_and(|ending| ending == "json");
        if let Some(name) = name.filter(|_| is_theme) {
            themes.push((name, read(&path, depth)));
        }
    }
    themes.sort_by(|one, other| one.0.cmp(&other.0));
    themes
}

fn read(path: &Path, depth: ColorDepth) -> Result<Theme, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_THEME_BYTES {
        return Err("it is too large".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value = serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))?;
    theme_file::read(&value, depth)
}
