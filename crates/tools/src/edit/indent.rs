//! How the indentation a model wrote becomes the one the file has.

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
    /// Pairs of what the model wrote and what the file has.
    Table(Vec<(String, String)>),
}

impl Indent {
    pub fn learn<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut table: Vec<(String, String)> = pairs
            .filter(|(old, _)| !old.trim().is_empty())
            .map(|(old, file)| (blank_of(old).to_owned(), blank_of(file).to_owned()))
            .collect();
        table.dedup();
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
        Self::Table(table)
    }

    pub fn apply(&self, line: &str) -> String {
        let blank = blank_of(line);
        let rest = &line[blank.len()..];
        if rest.is_empty() {
            return String::new();
        }
        match self {
            Self::Same => line.to_owned(),
            Self::Deeper(shift) => format!("{shift}{line}"),
            Self::Shallower(shift) => match line.strip_prefix(shift.as_str()) {
                Some(line) => line.to_owned(),
                None => rest.to_owned(),
            },
            Self::Tabs(width) => {
                let spaces = blank.chars().filter(|char| *char == ' ').count();
                let tabs = blank.chars().count() - spaces + spaces / width;
                format!("{}{}{rest}", "\t".repeat(tabs), " ".repeat(spaces % width))
            }
            Self::Spaces(width) => format!("{}{rest}", blank.replace('\t', &" ".repeat(*width))),
            Self::Table(table) => {
                let known = table.iter().filter(|(old, _)| blank.starts_with(old.as_str()));
                match known.max_by_key(|(old, _)| old.len()) {
                    Some((old, file)) => format!("{file}{}{rest}", &blank[old.len()..]),
                    None => line.to_owned(),
                }
            }
        }
    }
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
