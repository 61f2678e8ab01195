//! Names as people read them, and as code can use them.
//!
//! Owns splitting, singular and plural, and the shortening of foreign prose. English only.

/// The words of an identifier: `createdAt`, `created_at` and `created-at` alike.
pub fn split(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (at, c) in characters.iter().enumerate() {
        // The end of `CVEs` and `userIDs` is not a word.
        let plural_next = characters.get(at + 1) == Some(&'s')
            && characters.get(at + 2).is_none_or(|after| !after.is_lowercase());
        let lower_next = characters.get(at + 1).is_some_and(|next| next.is_lowercase()) && !plural_next;
        let after_lower =
            at > 0 && (characters[at - 1].is_lowercase() || characters[at - 1].is_ascii_digit());
        let begins = c.is_uppercase()
            && !word.is_empty()
            && (after_lower || (lower_next && at > 0 && characters[at - 1].is_uppercase()));
        if begins || !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !c.is_alphanumeric() {
                continue;
            }
        }
        word.push(*c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Words that are not written in lower case.
const WRITTEN: [&str; 51] = [
    "ID", "URL", "URI", "API", "IP", "IPv4", "IPv6", "UUID", "HTML", "JSON", "XML", "HTTP", "HTTPS", "ISBN",
    "IBAN", "VAT", "SKU", "CVE", "CIDR", "DNS", "SSH", "TLS", "SSL", "VPN", "VM", "CPU", "GPU", "RAM", "AWS",
    "SQL", "CSV", "PDF", "SSO", "MFA", "OTP", "UTC", "SHA", "GPS", "IMEI", "BIC", "SMTP", "TCP", "UDP",
    "SMS", "UI", "OAuth", "GraphQL", "GitHub", "MAC", "CVSS", "SLA",
];

/// `createdAt` → `Created at`, `petId` → `Pet ID`.
pub fn humanize(name: &str) -> String {
    // "IPv4" is one word.
    let words = split(&name.replace("IPv", "Ipv"));
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        let lower = word.to_lowercase();
        let is_upper = word.chars().all(|c| c.is_uppercase() || c.is_ascii_digit());
        let length = word.chars().count();
        let written = |word: &str| WRITTEN.iter().find(|one| one.eq_ignore_ascii_case(word));
        let stem = word.strip_suffix('s').filter(|stem| stem.chars().count() > 1);
        let is_plural_acronym = stem.is_some_and(|stem| stem.chars().all(char::is_uppercase));
        if let Some(written) = written(word) {
            out.push_str(written);
        } else if let Some(written) = stem.and_then(written) {
            out.push_str(written);
            out.push('s');
        } else if is_plural_acronym || length > 1 && is_upper && (words.len() > 1 || length <= 5) {
            out.push_str(word);
        } else if at == 0 {
            let mut characters = lower.chars();
            out.extend(characters.next().into_iter().flat_map(char::to_uppercase));
            out.push_str(characters.as_str());
        } else {
            out.push_str(&lower);
        }
    }
    if out.is_empty() { line(name, 60) } else { line(&out, 60) }
}

/// ASCII letters and digits, beginning with a capital: fit for the name of a component.
pub fn pascal(name: &str) -> String {
    let mut out = String::new();
    for word in split(name) {
        let ascii: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut characters = ascii.chars();
        if let Some(first) = characters.next() {
            out.push(first.to_ascii_uppercase());
            out.push_str(characters.as_str());
        }
        if out.len() > 40 {
            break;
        }
    }
    let name = out.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut characters = name.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}

pub fn singular(word: &str) -> String {
    let lower = word.to_lowercase();
    let cut = |count: usize, add: &str| {
        let keep = word.chars().count().saturating_sub(count);
        let mut out: String = word.chars().take(keep).collect();
        out.push_str(add);
        out
    };
    if lower.chars().count() < 4
        || ["ss", "us", "is", "news", "series", "species", "os"].iter().any(|end| lower.ends_with(end))
    {
        return word.to_owned();
    }
    match lower.as_str() {
        "people" => return format!("{}erson", word.chars().take(1).collect::<String>()),
        "children" => return word.chars().take(5).collect(),
        _ => {}
    }
    if lower.ends_with("ies") {
        cut(3, "y")
    } else if ["ches", "shes", "sses", "xes", "zzes"].iter().any(|end| lower.ends_with(end)) {
        cut(2, "")
    } else if lower.ends_with('s') {
        cut(1, "")
    } else {
        word.to_owned()
    }
}

pub fn plural(word: &str) -> String {
    let lower = word.to_lowercase();
    let unchanged = ["news", "series", "species", "people", "children"];
    if lower.is_empty() || singular(word) != word || unchanged.iter().any(|end| lower.ends_with(end)) {
        return word.to_owned();
    }
    let vowel_before = |count: usize| lower.chars().rev().nth(count).is_some_and(|c| "aeiou".contains(c));
    if lower == "person" {
        format!("{}eople", word.chars().take(1).collect::<String>())
    } else if lower.ends_with('y') && !vowel_before(1) && lower.len() > 1 {
        let keep = word.chars().count() - 1;
        format!("{}ies", word.chars().take(keep).collect::<String>())
    } else if ["s", "x", "ch", "sh"].iter().any(|end| lower.ends_with(end)) {
        format!("{word}es")
    } else if word.chars().last().is_some_and(|c| c.is_ascii_alphabetic()) {
        format!("{word}s")
    } else {
        word.to_owned()
    }
}

/// One line without control characters, at most `limit` characters.
pub fn line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut blank = false;
    let mut count = 0;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            blank = !out.is_empty();
            continue;
        }
        if count >= limit {
            out.push('…');
            break;
        }
        if std::mem::take(&mut blank) {
            out.push(' ');
            count += 1;
        }
        out.push(c);
        count += 1;
    }
    out
}

/// A description as plain words: no tags, headings or link targets, cut at a sentence where possible.
pub fn shorten_note(text: Option<&str>, limit: usize) -> String {
    let Some(text) = text else { return String::new() };
    // Only the beginning matters, and descriptions can be whole books.
    let text: String = text.chars().take(limit * 6).collect();
    let plain = line(&without_markup(&text), limit * 4);
    if plain.chars().count() <= limit {
        return plain;
    }
    let short: String = plain.chars().take(limit).collect();
    match short.rfind(". ").or_else(|| short.rfind("。")) {
        Some(end) if end > limit / 3 => short[..=end].trim_end().to_owned(),
        _ => line(&plain, limit),
    }
}

/// A description with its Markdown, which the page shows; cut at a paragraph or sentence, without tags.
pub fn markdown(text: Option<&str>, limit: usize) -> String {
    let Some(text) = text else { return String::new() };
    let text: String = text.chars().take(limit * 6).filter(|c| *c == '\n' || !c.is_control()).collect();
    let text = without_tags(&text);
    let mut kept = String::with_capacity(text.len().min(limit * 4));
    let mut blanks = 0;
    for one in text.lines().map(str::trim_end) {
        blanks = if one.is_empty() { blanks + 1 } else { 0 };
        if blanks < 2 {
            kept.push_str(one);
            kept.push('\n');
        }
    }
    let kept = kept.trim();
    if kept.chars().count() <= limit {
        return kept.to_owned();
    }
    let mut short: String = kept.chars().take(limit).collect();
    let end = short.rfind("\n\n").or_else(|| short.rfind(". ").map(|at| at + 1));
    match end.filter(|end| *end > limit / 3) {
        Some(end) => short.truncate(end),
        None => {
            short.truncate(short.trim_end().len());
            short.push('…');
        }
    }
    if short.matches("```").count() % 2 == 1 {
        short.push_str("\n```");
    }
    short.trim().to_owned()
}

/// A name for comparison: without case and separators.
pub(crate) fn squeezed(name: &str) -> String {
    split(name).concat().to_lowercase()
}

/// Whether a field or argument of this name probably identifies an item.
pub(super) fn is_key(name: &str) -> bool {
    let lower = name.to_lowercase();
    matches!(
        lower.as_str(),
        "id" | "uuid" | "slug" | "key" | "name" | "login" | "username" | "code" | "number"
    ) || lower.ends_with("id")
}

/// Tags are cut out; addresses in angle brackets stay.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_tag = rest[1..].starts_with(|c: char| c == '/' || c == '!' || c.is_ascii_alphabetic())
            && !rest.starts_with("<http");
        match rest.find('>').filter(|end| is_tag && *end < 300) {
            Some(end) => rest = &rest[end + 1..],
            None => {
                out.push('<');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn without_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '[', '`', '*', '#']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let tag_end = rest
            .strip_prefix('<')
            .filter(|after| after.starts_with(|c: char| c == '/' || c == '!' || c.is_ascii_alphabetic()));
        if let Some(end) = tag_end.and_then(|after| after.find('>')).filter(|end| *end < 300) {
            out.push(' ');
            rest = &rest[end + 2..];
        } else if let Some((label, after)) = link(rest) {
            out.push_str(label);
            rest = after;
        } else {
            let c = &rest[..1];
            if c == "<"
                || c == "["
                || (c == "#" && !out.ends_with(['\n', '#']) && !out.is_empty())
                || (c == "*" && out.ends_with(' ') && rest[1..].starts_with(' '))
            {
                out.push_str(c);
            }
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// `[label](target)` → the label and what follows.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (label.len() < 200 && !label.contains('[')).then_some((label, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_become_labels() {
        for (name, label) in [
            ("createdAt", "Created at"),
            ("petId", "Pet ID"),
            ("photo_urls", "Photo URLs"),
            ("CVEs", "CVEs"),
            ("userIDs", "User IDs"),
            ("IDsOfPDFs", "IDs of PDFs"),
            ("status", "Status"),
            ("isAvailable", "Is available"),
            ("HTTPServer", "HTTP server"),
            ("CVE", "CVE"),
            ("ipv4Address", "IPv4 address"),
            ("publicIPv4", "Public IPv4"),
            ("x-request-id", "X request ID"),
            ("名前", "名前"),
            ("__proto__", "Proto"),
            ("$", "$"),
            ("", ""),
        ] {
            assert_eq!(humanize(name), label, "{name}");
        }
    }

    #[test]
    fn singular_and_plural() {
        for (one, many) in [
            ("pet", "pets"),
            ("category", "categories"),
            ("box", "boxes"),
            ("person", "people"),
            ("branch", "branches"),
            ("key", "keys"),
        ] {
            assert_eq!(singular(many), one);
            assert_eq!(plural(one), many);
        }
        for same in ["status", "news", "address", "series", "bus"] {
            assert_eq!(singular(same), same);
        }
    }

    #[test]
    fn prose_is_shortened_and_without_markup() {
        assert_eq!(
            shorten_note(Some("A <b>bold</b> [link](http://x) to `code`.\n\n# Next"), 100),
            "A bold link to code. Next"
        );
        assert_eq!(
            shorten_note(Some("First sentence. Second sentence that is long."), 20),
            "First sentence."
        );
        assert_eq!(shorten_note(Some("1 < 2 and 3 > 2"), 100), "1 < 2 and 3 > 2");
        assert_eq!(
            markdown(Some("A <b>bold</b> **word**.\r\n\n\n\n- one\n- <https://x.example>"), 100),
            "A bold **word**.\n\n- one\n- <https://x.example>"
        );
        assert_eq!(markdown(Some("```\nlong code\n```"), 9), "```\nlong…\n```");
        assert_eq!(pascal("__proto__ 商品 user-list 2"), "ProtoUserList2");
        assert_eq!(pascal("-5e+299"), "E299");
    }
}
