//! A fetched body as text a model can read: HTML loses its markup, other text stays as it is.

use super::fetch::Fetched;

const WIDTH: usize = 120;

pub fn text_of(fetched: &Fetched) -> Result<String, String> {
    let text = decode(&fetched.bytes, fetched.charset.as_deref());
    if !matches!(fetched.kind.as_str(), "text/html" | "application/xhtml+xml") {
        return Ok(text);
    }
    let page = html2text::config::plain()
        .no_table_borders()
        .allow_width_overflow()
        .string_from_read(text.as_bytes(), WIDTH)
        .map_err(|error| format!("{} cannot be read as a page: {error}.", fetched.url))?;
    Ok(tidy(&page))
}

fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let named = charset
        .or_else(|| declared(bytes))
        .and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
    let fallback =
        if std::str::from_utf8(bytes).is_ok() { encoding_rs::UTF_8 } else { encoding_rs::WINDOWS_1252 };
    named.unwrap_or(fallback).decode(bytes).0.into_owned()
}

/// `<meta charset=…>` near the beginning.
fn declared(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(1_024)];
    let at = head.windows(8).position(|window| window.eq_ignore_ascii_case(b"charset="))?;
    let rest = &head[at + 8..];
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte))?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// At most one blank line in a row, none at the ends.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = true;
    for line in text.lines() {
        let line = line.trim_end();
        if line.is_empty() && blank {
            continue;
        }
        blank = line.is_empty();
        out.push_str(line);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: &str, bytes: &[u8]) -> String {
        let fetched = Fetched {
            url: "http://x".to_owned(),
            kind: kind.to_owned(),
            charset: None,
            bytes: bytes.to_vec(),
            cut: false,
        };
        text_of(&fetched).unwrap()
    }

    #[test]
    fn pages_become_text() {
        let html = "<html><head><title>t</title><script>evil()</script><style>a{}</style></head><body><h1>Head</h1>\
                    <p>One <b>two</b> <a href='http://y'>link</a></p><ul><li>a</li><li>b</li></ul>\
                    <pre>  x\n  y</pre></body></html>";
        let text = page("text/html", html.as_bytes());
        for part in ["# Head", "One **two** [link][1]", "* a", "* b", "  x\n  y", "[1]: http://y"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("evil") && !text.contains("a{}"), "{text}");
        assert_eq!(page("text/plain", b"<b>as it is</b>\n"), "<b>as it is</b>\n");
        assert_eq!(page("text/html", b"<meta charset='iso-8859-1'><p>caf\xe9"), "caf\u{e9}");
        assert_eq!(page("text/plain", b"caf\xe9"), "caf\u{e9}");
    }

    #[test]
    fn a_page_cannot_break_the_reader() {
        let deep = "<div>".repeat(50_000) + "x";
        assert_eq!(page("text/html", deep.as_bytes()).trim(), "x");
        let lists = "<ul><li>".repeat(2_000) + "y";
        page("text/html", lists.as_bytes());
        let tables = "<table><tr><td>".repeat(500) + "z";
        page("text/html", tables.as_bytes());
        page("text/html", b"\0\xff<![CDATA[ <p <<a href=");
    }
}
