//! A fetched body as text a model can read: HTML as a plain kind of markdown, other text as it is.

use super::fetch::FetchedPage;
use super::html::{Token, tokens};

pub fn page_text(fetched: &FetchedPage) -> String {
    let text = decode(&fetched.bytes, fetched.charset.as_deref());
    if matches!(fetched.kind.as_str(), "text/html" | "application/xhtml+xml") {
        let base = reqwest::Url::parse(&fetched.url).ok();
        return Page { base, ..Page::default() }.render(&text);
    }
    text
}

fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let named = charset
        .or_else(|| find_declared_charset(bytes))
        .and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
    let fallback =
        if std::str::from_utf8(bytes).is_ok() { encoding_rs::UTF_8 } else { encoding_rs::WINDOWS_1252 };
    named.unwrap_or(fallback).decode(bytes).0.into_owned()
}

/// `<meta charset=…>` near the beginning.
fn find_declared_charset(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(1_024)];
    let at = head.windows(8).position(|window| window.eq_ignore_ascii_case(b"charset="))?;
    let rest = &head[at + 8..];
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte))?;
    std::str::from_utf8(&rest[..end]).ok()
}

const MAX_LIST_DEPTH: usize = 12;
const MAX_LINK: usize = 300;

#[derive(Default)]
struct Page {
    base: Option<reqwest::Url>,
    out: String,
    /// Line ends that are due before the next text.
    line_breaks_pending: usize,
    /// A blank is due before the next text of the line.
    space_pending: bool,
    preformatted: usize,
    /// Numbers of the items so far; `None` for lists without numbers.
    lists: Vec<Option<usize>>,
    /// Where the links that are open lead; `None` for those that are not shown.
    links: Vec<Option<String>>,
}

impl Page {
    fn render(mut self, html: &str) -> String {
        for token in tokens(html) {
            match token {
                Token::Text(text) if self.preformatted > 0 => self.push_preformatted(&text),
                Token::Text(text) => self.text(&text),
                Token::Open { name, attributes } => self.open(&name, &attributes),
                Token::Close { name } => self.close(&name),
            }
        }
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    fn open(&mut self, name: &str, attributes: &[(String, String)]) {
        let attribute = |wanted: &str| {
            attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_lines(2);
                self.push_text(&"#".repeat(usize::from(name.as_bytes()[1] - b'0')));
                self.space_pending = true;
            }
            "br" => self.end_lines(1),
            "hr" => {
                self.end_lines(2);
                self.push_text("---");
                self.end_lines(2);
            }
            "pre" => {
                self.end_lines(2);
                self.push_text("```");
                self.end_lines(1);
                self.preformatted += 1;
            }
            "ul" | "menu" => self.list(None),
            "ol" => self.list(Some(attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1))),
            "li" => self.item(),
            "a" => {
                let link = attribute("href").and_then(|href| self.link(href));
                if link.is_some() {
                    self.push_text("[");
                }
                self.links.push(link);
            }
            "img" => {
                if let Some(alt) = attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => self.push_text("`"),
            "b" | "strong" if self.preformatted == 0 => self.push_text("**"),
            "td" | "th" => self.text(" | "),
            _ => self.end_lines(lines_around(name)),
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "pre" if self.preformatted > 0 => {
                self.preformatted -= 1;
                self.end_lines(1);
                self.push_text("```");
                self.end_lines(2);
            }
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.end_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "a" => {
                if let Some(Some(link)) = self.links.pop() {
                    self.push_attached(&format!("]({link})"));
                }
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => self.push_attached("`"),
            "b" | "strong" if self.preformatted == 0 => self.push_attached("**"),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_lines(2),
            _ => self.end_lines(lines_around(name)),
        }
    }

    fn list(&mut self, first: Option<usize>) {
        self.end_lines(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(first);
    }

    fn item(&mut self) {
        self.end_lines(1);
        let depth = self.lists.len().clamp(1, MAX_LIST_DEPTH);
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "*".to_owned(),
        };
        self.push_text(&format!("{}{sign}", "  ".repeat(depth - 1)));
        self.space_pending = true;
    }

    /// Text in which blank space is one blank.
    fn text(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.space_pending = true;
        }
        for word in text.split_whitespace() {
            self.push_text(word);
            self.space_pending = true;
        }
        if !text.ends_with(char::is_whitespace) && !text.is_empty() {
            self.space_pending = false;
        }
    }

    fn push_preformatted(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush_spacing();
            self.out.push_str(text);
        }
    }

    /// Text with the blanks and line ends that are due before it.
    fn push_text(&mut self, text: &str) {
        self.flush_spacing();
        self.out.push_str(text);
    }

    /// Text that belongs to what is before it; a blank that is due comes after it.
    fn push_attached(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn flush_spacing(&mut self) {
        if self.line_breaks_pending > 0 {
            self.out.truncate(self.out.trim_end_matches([' ', '\n']).len());
            if !self.out.is_empty() {
                self.out.extend(std::iter::repeat_n('\n', self.line_breaks_pending));
            }
        } else if self.space_pending && !self.out.is_empty() && !self.out.ends_with([' ', '\n', '[']) {
            self.out.push(' ');
        }
        (self.line_breaks_pending, self.space_pending) = (0, false);
    }

    fn end_lines(&mut self, count: usize) {
        self.line_breaks_pending = self.line_breaks_pending.max(count);
        if count > 0 {
            self.space_pending = false;
        }
    }

    fn link(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href).ok()?,
            None => reqwest::Url::parse(href).ok()?,
        };
        let text = url.to_string();
        (matches!(url.scheme(), "http" | "https" | "mailto") && text.len() <= MAX_LINK).then_some(text)
    }
}

/// How many line ends are before and after an element.
fn lines_around(name: &str) -> usize {
    match name {
        "p" | "blockquote" | "table" | "section" | "article" | "figure" | "dl" | "fieldset" | "details" => 2,
        "div" | "header" | "footer" | "main" | "nav" | "aside" | "form" | "tr" | "thead" | "tbody"
        | "caption" | "li" | "dt" | "dd" | "figcaption" | "summary" | "address" | "title" | "option"
        | "body" | "head" | "legend" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: &str, bytes: &[u8]) -> String {
        let fetched = FetchedPage {
            url: "http://x.org/a/".to_owned(),
            kind: kind.to_owned(),
            charset: None,
            bytes: bytes.to_vec(),
            cut: false,
        };
        page_text(&fetched)
    }

    #[test]
    fn pages_become_text() {
        let rows: &[(&str, &str)] = &[
            ("<h1>Head</h1><p>One <b>two</b>\n three</p>", "# Head\n\nOne **two** three"),
            (
                "<p>See <a href='b.html'>the link</a>, or <a href='#top'>here</a>.",
                "See [the link](http://x.org/a/b.html), or here.",
            ),
            ("<a href='javascript:x()'>x</a> <a href=http://y.org>y</a>", "x [y](http://y.org/)"),
            ("<ul><li>a<li>b<ol><li>c</li><li>d</li></ol></ul>end", "* a\n* b\n  1. c\n  2. d\n\nend"),
            ("<pre>  x &lt; 1\n  y</pre>after", "```\n  x < 1\n  y\n```\n\nafter"),
            ("a<script>evil('</p>')</script>b<STYLE>a{}</style>c<!-- no <p> -->d", "abcd"),
            ("<title>T</title><body><div>a</div><div>b<br>c</div>", "T\na\nb\nc"),
            ("<table><tr><td>1<td>2</tr><tr><th>3</th></tr></table>", "| 1 | 2\n| 3"),
            ("&amp;&#65;&#x42;&nbsp;&unknown; & &#0; &", "&AB &unknown; & \u{fffd} &"),
            ("&Eacute;t&eacute &CounterClockwiseContourIntegral;&#x80;", "Été ∳€"),
            ("a<template>b</template><svg/>c<svg><text>d</text></svg>e<noscript>f</noscript>", "acef"),
            ("x < y <3 <", "x < y <3 <"),
            ("use <code>a b</code> now <img alt='pic' src=x>", "use `a b` now [image: pic]"),
            ("<p a='>' b = \"x>\" / c>t</p", "t"),
            ("<script>never ends", ""),
            ("<h2> spaced  <em>out</em> </h2>", "## spaced out"),
        ];
        for (html, text) in rows {
            assert_eq!(page("text/html", html.as_bytes()), *text, "{html}");
        }
        assert_eq!(page("text/plain", b"<b>as it is</b>\n"), "<b>as it is</b>\n");
        assert_eq!(page("text/html", b"<meta charset='iso-8859-1'><p>caf\xe9"), "caf\u{e9}");
        assert_eq!(page("text/plain", b"caf\xe9"), "caf\u{e9}");
    }

    #[test]
    fn a_page_cannot_break_the_reader() {
        let attributes: String = (0..200_000).map(|number| format!(" a{number}")).collect();
        for hard in [
            "<div>".repeat(200_000) + "x",
            "<ul><li>".repeat(100_000) + "x",
            "<table><tr><td>".repeat(50_000) + "x",
            "<a href=y>".repeat(5_000) + "x",
            format!("<p{attributes}>x"),
            "<script></".repeat(50_000),
            "&".repeat(500_000),
            "<!--".repeat(200_000),
            "<p a='".repeat(100_000),
            "</".repeat(300_000),
        ] {
            page("text/html", hard.as_bytes());
        }
        page("text/html", b"\0\xff<![CDATA[ <p <<a href=");
    }
}
