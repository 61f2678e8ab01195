//! Colors code by token: comments, strings, numbers, keywords and called names of common languages.
//!
//! A small line scanner; only an open comment or string carries over to the next line. It never fails: unknown text
//! stays plain.

use ratatui::text::Span;

use super::theme::Theme;

struct Language {
    names: &'static [&'static str],
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Characters that open and close a string in one line.
    quotes: &'static str,
    /// Strings over several lines.
    long_quote: Option<&'static str>,
    keywords: &'static str,
}

const C_KEYWORDS: &str = "auto break case char class const continue default delete do double else enum extern false \
    float for goto if inline int long namespace new nullptr private protected public return short signed sizeof \
    static struct switch template this throw true try typedef union unsigned using virtual void volatile while bool";
const JS_KEYWORDS: &str = "as async await break case catch class const continue debugger default delete do else \
    enum export extends false finally for from function if implements import in instanceof interface let new null of \
    return static super switch this throw true try type typeof undefined var void while yield readonly declare";

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"",
        long_quote: None,
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop \
            match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Language {
        names: &["python", "py", "python3"],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        long_quote: Some("\"\"\""),
        keywords: "and as assert async await break class continue def del elif else except False finally for from \
            global if import in is lambda None nonlocal not or pass raise return True try while with yield match case",
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        long_quote: Some("`"),
        keywords: JS_KEYWORDS,
    },
    Language {
        names: &["go", "golang"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        long_quote: Some("`"),
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import \
            interface map nil package range return select struct switch true type var",
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "hpp", "cxx", "objc", "cuda"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        long_quote: None,
        keywords: C_KEYWORDS,
    },
    Language {
        names: &["java", "kotlin", "kt", "scala", "csharp", "cs", "c#", "swift", "dart", "php", "zig"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"'",
        long_quote: Some("\"\"\""),
        keywords: "abstract as async await break case catch class const continue def default defer do else enum \
            extends extension false final finally for foreach fun func function guard if implements import in init \
            interface internal is let match namespace new nil null object override package private protected public \
            record return sealed self static struct super switch this throw throws trait true try type using val var \
            void when where while yield int long double float boolean bool string char byte echo",
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "dockerfile", "makefile", "make"],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        long_quote: None,
        keywords: "case do done elif else esac exit export fi for function if in local return set source then until \
            while FROM RUN COPY CMD ENV WORKDIR ENTRYPOINT ARG EXPOSE",
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: "\"",
        long_quote: None,
        keywords: "true false null",
    },
    Language {
        names: &[
            "toml",
            "yaml",
            "yml",
            "ini",
            "conf",
            "properties",
            "nix",
            "elixir",
            "ex",
            "ruby",
            "rb",
            "perl",
            "r",
        ],
        line_comment: &["#"],
        block_comment: None,
        quotes: "\"'",
        long_quote: Some("\"\"\""),
        keywords: "true false null nil yes no begin class def defmodule defp do else elsif end ensure false fn if in \
            include inherit let module my next not or redo require rescue retry return self sub super then true \
            unless until use when while with yield and",
    },
    Language {
        names: &["sql", "postgresql", "mysql", "sqlite"],
        line_comment: &["--"],
        block_comment: Some(("/*", "*/")),
        quotes: "'\"",
        long_quote: None,
        keywords: "select from where insert into values update set delete create table index view drop alter add \
            join left right inner outer on as and or not null primary key foreign references group by order having \
            limit offset union all distinct case when then else end begin commit rollback with exists in is like \
            SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER ADD JOIN LEFT \
            RIGHT INNER OUTER ON AS AND OR NOT NULL PRIMARY KEY FOREIGN REFERENCES GROUP BY ORDER HAVING LIMIT \
            OFFSET UNION ALL DISTINCT CASE WHEN THEN ELSE END BEGIN COMMIT ROLLBACK WITH EXISTS IN IS LIKE",
    },
    Language {
        names: &["html", "xml", "svg", "vue", "css", "scss", "less"],
        line_comment: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: "\"'",
        long_quote: None,
        keywords: "",
    },
    Language {
        names: &["lisp", "clojure", "clj", "cljs", "edn", "elisp", "emacs-lisp", "scheme"],
        line_comment: &[";"],
        block_comment: None,
        quotes: "\"",
        long_quote: None,
        keywords: "def defn defmacro defun defvar fn if let loop recur when cond do lambda nil true false require ns \
            setq progn",
    },
    Language {
        names: &["lua", "haskell", "hs", "elm", "ada"],
        line_comment: &["--"],
        block_comment: None,
        quotes: "\"",
        long_quote: None,
        keywords: "and break case class data deriving do else elseif end false for function if import in instance \
            let local module newtype nil not of or repeat return then true type until where while",
    },
];

/// Colors the lines of one block of code in order.
pub(crate) struct Highlighter {
    language: Option<&'static Language>,
    /// The end mark of the open comment or string.
    open: Option<(&'static str, Kind)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
    Name,
}

impl Highlighter {
    /// Finds the language by the word after the fence, or by a file name.
    pub(crate) fn new(hint: &str) -> Self {
        let word = hint.split([',', ' ', '{']).next().unwrap_or_default();
        let word = word.rsplit(['.', '/']).next().unwrap_or_default().to_ascii_lowercase();
        Self { language: LANGUAGES.iter().find(|it| it.names.contains(&word.as_str())), open: None }
    }

    pub(crate) fn knows_language(&self) -> bool {
        self.language.is_some()
    }

    pub(crate) fn line(&mut self, text: &str, theme: &Theme) -> Vec<Span<'static>> {
        let Some(language) = self.language else { return vec![Span::styled(text.to_owned(), theme.text)] };
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, length) = self.next(language, rest);
            let (piece, after) = rest.split_at(length);
            let style = match kind {
                Kind::Plain => theme.text,
                Kind::Comment => theme.comment,
                Kind::Text => theme.string,
                Kind::Number => theme.number,
                Kind::Keyword => theme.keyword,
                Kind::Name => theme.name,
            };
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push_str(piece),
                None => spans.push(Span::styled(piece.to_owned(), style)),
            }
            rest = after;
        }
        spans
    }

    /// The kind and length of the next token; the length is at least one character.
    fn next(&mut self, language: &'static Language, rest: &str) -> (Kind, usize) {
        if let Some((end, kind)) = self.open {
            return match rest.find(end) {
                Some(at) => {
                    self.open = None;
                    (kind, at + end.len())
                }
                None => (kind, rest.len()),
            };
        }
        if language.line_comment.iter().any(|mark| rest.starts_with(mark)) {
            return (Kind::Comment, rest.len());
        }
        if let Some((begin, end)) = language.block_comment.filter(|(begin, _)| rest.starts_with(begin)) {
            return self.opened(rest, begin, end, Kind::Comment);
        }
        if let Some(quote) = language.long_quote.filter(|quote| rest.starts_with(quote)) {
            return self.opened(rest, quote, quote, Kind::Text);
        }
        // `rest` is not empty.
        let first = rest.chars().next().unwrap_or(' ');
        if language.quotes.contains(first) {
            return (Kind::Text, string_length(rest, first));
        }
        if first.is_ascii_digit() {
            let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'));
            return (Kind::Number, length.unwrap_or(rest.len()));
        }
        if first.is_alphabetic() || first == '_' {
            return word(language, rest);
        }
        (Kind::Plain, first.len_utf8())
    }

    fn opened(&mut self, rest: &str, begin: &str, end: &'static str, kind: Kind) -> (Kind, usize) {
        match rest[begin.len()..].find(end) {
            Some(at) => (kind, begin.len() + at + end.len()),
            None => {
                self.open = Some((end, kind));
                (kind, rest.len())
            }
        }
    }
}

fn word(language: &Language, rest: &str) -> (Kind, usize) {
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (word, after) = rest.split_at(length);
    let kind = if language.keywords.split_whitespace().any(|keyword| keyword == word) {
        Kind::Keyword
    } else if after.starts_with('(') || after.starts_with("!(") {
        Kind::Name
    } else {
        Kind::Plain
    };
    (kind, length)
}

/// The string with its quotes; an unclosed string ends with the line.
fn string_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            character if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::super::theme::Palette;
    use super::*;

    #[test]
    fn code_is_colored_and_whole() {
        let theme = Theme::new(Palette::Dark);
        let mut rust = Highlighter::new("rust");
        let spans = rust.line("let x = f(\"a \\\" b\", 42); // done", &theme);
        let styled = |text: &str| spans.iter().find(|span| span.content == text).map(|span| span.style);
        assert_eq!(styled("let"), Some(theme.keyword));
        assert_eq!(styled("f"), Some(theme.name));
        assert_eq!(styled("\"a \\\" b\""), Some(theme.string));
        assert_eq!(styled("42"), Some(theme.number));
        assert_eq!(styled("// done"), Some(theme.comment));
        for (language, line) in [("rs", "/* open"), ("rs", "é*/ fn"), ("py", "x = '日本"), ("??", "as it is")]
        {
            let spans = Highlighter::new(language).line(line, &theme);
            assert_eq!(spans.iter().map(|span| span.content.as_ref()).collect::<String>(), line);
        }
    }

    #[test]
    fn a_comment_goes_on_in_the_next_line() {
        let theme = Theme::new(Palette::Dark);
        let mut rust = Highlighter::new("src/main.rs");
        rust.line("/* a", &theme);
        assert_eq!(rust.line("fn", &theme)[0].style, theme.comment);
        assert_eq!(rust.line("*/ fn", &theme)[1].style, theme.text);
    }
}
