//! Taking a prompt apart: politeness off, clauses split, lists of names, quotes.
//!
//! Owns text only; knows no plan.

/// Longer prompts are no plain wishes.
const MAX_PROMPT: usize = 2_000;

/// The prompt without what is only polite, in straight quotes, on one line.
pub(super) fn tidy(prompt: &str) -> String {
    let text: String = prompt.chars().take(MAX_PROMPT).map(plain_character).collect();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    loop {
        let lower = text.to_lowercase();
        let polite = POLITE.iter().find(|start| {
            lower.starts_with(**start) && lower[start.len()..].starts_with([' ', ',', '!', '.'])
        });
        match polite {
            // Both are cut by the same ASCII words.
            Some(start) => text = text[start.len()..].trim_start_matches([' ', ',', '!', '.']).to_owned(),
            None => break,
        }
    }
    for end in [" please", " thanks", " thank you", ", please", " now", " for me"] {
        let trimmed = text.trim_end_matches(['.', '!', '?', ' ']);
        if trimmed.to_lowercase().ends_with(end) {
            text = trimmed[..trimmed.len() - end.len()].to_owned();
        }
    }
    text.trim_end_matches(['.', '!', '?', ' ', ',']).to_owned()
}

const POLITE: [&str; 36] = [
    "please",
    "can you",
    "could you",
    "would you",
    "will you",
    "can we",
    "could we",
    "can i",
    "could i",
    "may i",
    "we want to",
    "we need to",
    "we'd like to",
    "it would be nice to",
    "hello",
    "maybe",
    "actually",
    "i would like you to",
    "i'd like you to",
    "i would like to",
    "i'd like to",
    "i want you to",
    "i want to",
    "i need you to",
    "i need to",
    "let's",
    "lets",
    "now",
    "also",
    "and",
    "then",
    "just",
    "hey",
    "hi",
    "ok",
    "kindly",
];

/// The parts of a prompt that may be wishes of their own: split where the next part begins like one.
pub(super) fn clauses(text: &str) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut current = String::new();
    for piece in pieces(text) {
        let starts = begins_a_wish(&piece.text) && !ends_like_a_noun(&current);
        if !current.is_empty() && (starts || piece.is_hard) {
            clauses.push(std::mem::take(&mut current));
        }
        if !current.is_empty() {
            current.push_str(&piece.joint);
        }
        current.push_str(&piece.text);
    }
    clauses.push(current);
    // "In books, rename …" says first where the wish belongs.
    let names_place = |clause: &str| {
        let lower = clause.to_lowercase();
        ["in ", "on ", "for "].iter().any(|word| lower.starts_with(word)) && lower.split(' ').count() <= 5
    };
    if clauses.len() > 1 && names_place(&clauses[0]) && begins_a_wish(&clauses[1]) {
        let place = clauses.remove(0);
        clauses[0] = format!("{} {place}", clauses[0]);
    }
    clauses.into_iter().map(|clause| tidy(&clause)).filter(|clause| !clause.is_empty()).collect()
}

struct Piece {
    /// What stood before it.
    joint: String,
    text: String,
    /// After a full stop or semicolon.
    is_hard: bool,
}

/// Cuts at stops, commas and "and", but never inside quotes.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = vec![Piece { joint: String::new(), text: String::new(), is_hard: false }];
    let mut in_quotes = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        in_quotes ^= c == '"';
        let joint = [
            "; ",
            ". ",
            ", and then ",
            ", then ",
            " and then ",
            ", and ",
            " and ",
            ", ",
            " then ",
            " & ",
            " but ",
        ]
        .into_iter()
        .find(|joint| {
            !in_quotes && rest.get(..joint.len()).is_some_and(|start| start.eq_ignore_ascii_case(joint))
        });
        match joint {
            Some(joint) => {
                pieces.push(Piece {
                    joint: joint.to_owned(),
                    text: String::new(),
                    is_hard: joint.starts_with([';', '.']),
                });
                rest = &rest[joint.len()..];
            }
            None => {
                if let Some(piece) = pieces.last_mut() {
                    piece.text.push(c);
                }
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    pieces
}

/// After "the edit" comes "and delete buttons", not another wish.
fn ends_like_a_noun(text: &str) -> bool {
    let last = text.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    ["edit", "create", "delete", "add", "new", "update", "search", "filter", "save"].contains(&last.as_str())
}

fn begins_a_wish(text: &str) -> bool {
    const VERBS: &str = "add hide remove drop delete show display sort order group rename call move put make use switch change \
        set turn filter search restore bring enable disable include exclude reorder rearrange arrange place limit paginate \
        ungroup clear title relabel label get create let don't unhide give keep omit undo color colour highlight format \
        calculate compute save combine round";
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    // In a list of names "title" is a name.
    (words.next().is_some() || first == "ungroup") && VERBS.split_whitespace().any(|verb| verb == first)
}

/// `name, email and status` → its names.
pub(super) fn names(text: &str) -> Vec<String> {
    let normal = text
        .replace(" and then ", ",")
        .replace(" then ", ",")
        .replace(" and ", ",")
        .replace(" & ", ",")
        .replace(" or ", ",")
        .replace(", and", ",");
    normal.split([',', ';']).map(bare).filter(|name| !name.is_empty()).collect()
}

/// A name without article, quotes, and words for what it is.
pub(super) fn bare(text: &str) -> String {
    let mut name = text.trim().trim_matches(['"', '\'', '.', ':', ' ']).to_owned();
    for start in [
        "the ", "a ", "an ", "their ", "its ", "by ", "columns ", "column ", "fields ", "field ", "both ",
        "my ",
    ] {
        if name.to_lowercase().starts_with(start) {
            name = name[start.len()..].trim_start().to_owned();
        }
    }
    for end in [" columns", " column", " fields", " field", " values", " value", " property"] {
        if name.to_lowercase().ends_with(end) {
            name.truncate(name.len() - end.len());
        }
    }
    name.trim_matches(['"', '\'', ' ']).to_owned()
}

/// A new name in a wish: the text in quotes, or all of it.
pub(super) fn given_name(text: &str) -> String {
    let text = text.trim();
    if let Some(start) = text.find('"')
        && let Some(length) = text[start + 1..].find('"')
    {
        return text[start + 1..start + 1 + length].to_owned();
    }
    let text = text.trim_matches(['\'', '.', ' ']);
    text.to_owned()
}

/// Typographic quotes as straight ones.
fn plain_character(c: char) -> char {
    match c {
        '“' | '”' | '„' | '«' | '»' | '`' => '"',
        '’' | '‘' => '\'',
        c if c.is_control() => ' ',
        c => c,
    }
}

/// Whether a quotation mark has no partner. A mark after a number means inches.
pub(super) fn has_open_quote(prompt: &str) -> bool {
    let mut before = ' ';
    let mut straight = 0_usize;
    let mut opened = 0_i32;
    for c in prompt.chars() {
        match c {
            '"' if straight % 2 == 1 || !before.is_ascii_digit() => straight += 1,
            '“' | '„' | '«' => opened += 1,
            '”' | '»' => opened -= 1,
            _ => {}
        }
        before = c;
    }
    // German quotes open low and close with the mark that opens English ones.
    let is_german = prompt.contains('„') && prompt.contains('“');
    straight % 2 == 1 || opened != 0 && !is_german
}
