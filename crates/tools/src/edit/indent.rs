//! How the indentation a model wrote becomes the one the file has.
//!
//! Invariant: a line whose indentation in the file is in doubt gets none.

/// Learned from lines that are the same in both but for their indentation.
#[derive(Debug)]
pub enum Indent {
    Same,
    /// The file has this in front of what the model wrote.
    Deeper(String),
    /// The model wrote this in front of what the file has.
    Shallower(String),
    /// Spaces of the model's are tabs of the file's: so many to one.
    Tabs(usize),
    /// Tabs of the model's are so many spaces of the file's.
    Spaces(usize),
    /// The file has so many spaces for so many of the model's.
    Scaled {
        model: usize,
        file: usize,
    },
    /// No rule fits all lines.
    Irregular,
}

impl Indent {
    /// `lines`: all of the file, for the width of one level.
    pub fn learn<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>, lines: &[&str]) -> Learned {
        let known = known_pairs(pairs);
        let kind = Self::of(&known);
        let is_shifted = matches!(kind, Self::Deeper(_) | Self::Shallower(_));
        let unit = if is_shifted && known.len() == 1 { unit_of(lines) } else { None };
        Learned { kind, known, unit }
    }

    fn of(table: &[(String, String)]) -> Self {
        if table.iter().all(|(old, file)| old == file) {
            return Self::Same;
        }
        let shift = |longer: fn(&(String, String)) -> (&str, &str)| {
            let mut shifts = table.iter().map(|pair| {
                let (long, short) = longer(pair);
                long.strip_suffix(short)
            });
            let first = shifts.next()??;
            shifts.all(|shift| shift == Some(first)).then(|| first.to_owned())
        };
        if let Some(shift) = shift(|(old, file)| (file, old)) {
            return Self::Deeper(shift);
        }
        if let Some(shift) = shift(|(old, file)| (old, file)) {
            return Self::Shallower(shift);
        }
        if let Some(width) = ratio(table.iter().map(|(old, file)| (old.as_str(), file.as_str()))) {
            return Self::Tabs(width);
        }
        if let Some(width) = ratio(table.iter().map(|(old, file)| (file.as_str(), old.as_str()))) {
            return Self::Spaces(width);
        }
        match scale(table) {
            Some((model, file)) => Self::Scaled { model, file },
            None => Self::Irregular,
        }
    }

    /// The indentation in the file for one of the model's that no pair has.
    fn convert(&self, blank: &str) -> Option<String> {
        Some(match self {
            Self::Same => blank.to_owned(),
            Self::Deeper(shift) => format!("{shift}{blank}"),
            Self::Shallower(shift) => blank.strip_prefix(shift.as_str())?.to_owned(),
            Self::Tabs(width) => {
                let spaces = blank.chars().filter(|char| *char == ' ').count();
                let tabs = blank.chars().count() - spaces + spaces / width;
                format!("{}{}", "\t".repeat(tabs), " ".repeat(spaces % width))
            }
            Self::Spaces(width) => blank.replace('\t', &" ".repeat(*width)),
            Self::Scaled { model, file } => {
                let is_plain = blank.bytes().all(|byte| byte == b' ');
                (is_plain && (blank.len() * file).is_multiple_of(*model))
                    .then(|| " ".repeat(blank.len() * file / model))?
            }
            Self::Irregular => return None,
        })
    }
}

/// What was learned, for the lines that a model adds.
#[derive(Debug)]
pub struct Learned {
    kind: Indent,
    known: Vec<(String, String)>,
    /// The width of one level in the file, where only one pair is known and more than one rule would fit it.
    unit: Option<usize>,
}

impl Learned {
    /// A line of the model's as the file has it. `None`: that is in doubt.
    pub fn apply(&self, line: &str) -> Option<String> {
        let blank = blank_of(line);
        let rest = &line[blank.len()..];
        if rest.is_empty() {
            return Some(String::new());
        }
        let mut same = self.known.iter().filter(|(old, _)| old == blank);
        if let Some((_, file)) = same.next() {
            return same.all(|(_, other)| other == file).then(|| format!("{file}{rest}"));
        }
        if let (Some(unit), [(old, _)]) = (self.unit, &self.known[..])
            && !old.len().abs_diff(blank.len()).is_multiple_of(unit)
        {
            return None;
        }
        Some(format!("{}{rest}", self.kind.convert(blank)?))
    }
}

fn known_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut known: Vec<(String, String)> = Vec::new();
    for (old, file) in pairs.filter(|(old, _)| !old.trim().is_empty()) {
        let pair = (blank_of(old).to_owned(), blank_of(file).to_owned());
        if !known.contains(&pair) {
            known.push(pair);
        }
    }
    known
}

/// The smallest step by which lines of a file that is indented with spaces go deeper.
fn unit_of(lines: &[&str]) -> Option<usize> {
    let mut before = 0;
    let mut unit: Option<usize> = None;
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        let blank = blank_of(line);
        if !blank.bytes().all(|byte| byte == b' ') {
            continue;
        }
        if blank.len() > before + 1 {
            let step = blank.len() - before;
            unit = Some(unit.map_or(step, |unit| unit.min(step)));
        }
        before = blank.len();
    }
    unit
}

/// So many spaces of the model's are so many of the file's, where every pair agrees and two say so.
fn scale(pairs: &[(String, String)]) -> Option<(usize, usize)> {
    let is_plain = |text: &String| text.bytes().all(|byte| byte == b' ');
    let mut sizes = pairs.iter().filter(|(old, file)| !(old.is_empty() && file.is_empty()));
    if !pairs.iter().all(|(old, file)| is_plain(old) && is_plain(file)) {
        return None;
    }
    let (model, file) = sizes.next().map(|(old, file)| (old.len(), file.len()))?;
    let agrees = |(old, known): &(String, String)| old.len() * file == known.len() * model;
    (model > 0 && file > 0 && pairs.len() > 1 && pairs.iter().all(agrees)).then_some((model, file))
}

fn blank_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// How many spaces one tab stands for, where every pair agrees.
fn ratio<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<usize> {
    let mut width = None;
    for (spaces, tabs) in pairs {
        if spaces.is_empty() && tabs.is_empty() {
            continue;
        }
        let plain = spaces.bytes().all(|byte| byte == b' ') && tabs.bytes().all(|byte| byte == b'\t');
        if !plain || tabs.is_empty() || !spaces.len().is_multiple_of(tabs.len()) {
            return None;
        }
        let this = spaces.len() / tabs.len();
        if this == 0 || width.is_some_and(|width| width != this) {
            return None;
        }
        width = Some(this);
    }
    width
}
