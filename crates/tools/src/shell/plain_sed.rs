//! `sed` scripts that only print, delete or replace: `1,20p`, `/re/d`, `s/a/b/g`.

/// Every script of the arguments is plain and no option reads or writes another file.
pub(super) fn is_plain(arguments: &[&str]) -> bool {
    let mut scripts = Vec::new();
    let mut rest = arguments;
    while let [word, more @ ..] = rest {
        rest = more;
        match *word {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-ne" | "-nE" | "-nr" | "--quiet" | "--silent"
            | "--regexp-extended" | "-i" | "-Ei" | "-ni" => {
                if *word == "-ne" {
                    let [script, more @ ..] = rest else { return false };
                    scripts.push(*script);
                    rest = more;
                }
            }
            "-e" => {
                let [script, more @ ..] = rest else { return false };
                scripts.push(*script);
                rest = more;
            }
            word if word.starts_with('-') => return false,
            script if scripts.is_empty() => {
                scripts.push(script);
                // What follows is files; an option among them would still count for GNU sed.
                return rest.iter().all(|word| !word.starts_with('-'))
                    && scripts.iter().all(|one| is_script(one));
            }
            _ => break,
        }
    }
    !scripts.is_empty()
        && scripts.iter().all(|one| is_script(one))
        && rest.iter().all(|word| !word.starts_with('-'))
}

fn is_script(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    let mut rest = script.trim();
    while !rest.is_empty() {
        let Some(after) = command(rest) else { return false };
        rest = after.trim_start();
        match rest.strip_prefix(';') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => {}
            None => return false,
        }
    }
    true
}

/// One command with its address; what follows it.
fn command(script: &str) -> Option<&str> {
    let mut rest = address(script)?;
    if let Some(second) = rest.strip_prefix(',') {
        let after = address(second)?;
        if after.len() == second.len() {
            return None;
        }
        rest = after;
    }
    let rest = rest.trim_start().trim_start_matches('!');
    let mut chars = rest.chars();
    match chars.next()? {
        'p' | 'd' | '=' => Some(chars.as_str()),
        'q' => Some(chars.as_str().trim_start_matches(|char: char| char.is_ascii_digit())),
        's' => {
            let delimiter =
                chars.next().filter(|char| !char.is_alphanumeric() && !"\\ ;\n".contains(*char))?;
            let after = until(until(chars.as_str(), delimiter)?, delimiter)?;
            Some(after.trim_start_matches(|char: char| "gpiI".contains(char) || char.is_ascii_digit()))
        }
        _ => None,
    }
}

/// A number, `$` or `/re/`, or nothing.
fn address(script: &str) -> Option<&str> {
    let script = script.trim_start();
    if let Some(rest) = script.strip_prefix('$') {
        return Some(rest);
    }
    match script.strip_prefix('/') {
        Some(rest) => until(rest, '/'),
        None => Some(script.trim_start_matches(|char: char| char.is_ascii_digit())),
    }
}

/// What follows the next `delimiter` that no backslash is before. Programs differ about one between brackets, so
/// that is refused.
fn until(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    let mut bracket = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == delimiter && bracket && text[at..].contains(']') => return None,
            _ if char == delimiter => return Some(&text[at + char.len_utf8()..]),
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
    }
    None
}
