//! Credential files in netrc form: `machine`, `login`, `password`, and ECA's `port`. Reads text, no files.

/// What `${netrc:…}` and `keyRc` ask for: `[login@]machine[:port]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetrcQuery<'a> {
    login: Option<&'a str>,
    machine: &'a str,
    port: Option<&'a str>,
}

impl<'a> NetrcQuery<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let (login, rest) = match text.split_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, text),
        };
        let (machine, port) = match rest.split_once(':') {
            Some((machine, port)) => (machine, Some(port)),
            None => (rest, None),
        };
        Self { login, machine, port }
    }
}

/// The password of the first entry that fits.
pub(crate) fn password(text: &str, wanted: &NetrcQuery) -> Option<String> {
    let mut entry = Entry::default();
    let mut words = Words(text);
    while let Some(word) = words.keyword() {
        match word.as_str() {
            "machine" | "default" => {
                if entry.fits(wanted) {
                    return entry.password;
                }
                let machine = if word == "machine" { words.value() } else { None };
                entry = Entry { machine, any: word == "default", ..Entry::default() };
            }
            "login" => entry.login = words.value(),
            "password" => entry.password = words.value(),
            "port" => entry.port = words.value(),
            "account" => drop(words.value()),
            "macdef" => words.skip_macro(),
            _ => {}
        }
    }
    if entry.fits(wanted) { entry.password } else { None }
}

#[derive(Default)]
struct Entry {
    machine: Option<String>,
    any: bool,
    login: Option<String>,
    password: Option<String>,
    port: Option<String>,
}

impl Entry {
    fn fits(&self, wanted: &NetrcQuery) -> bool {
        self.password.is_some()
            && (self.any || self.machine.as_deref() == Some(wanted.machine))
            && wanted.login.is_none_or(|login| self.login.as_deref() == Some(login))
            && (self.any || self.port.as_deref() == wanted.port)
    }
}

/// The words of the text; a value may be in double quotes with backslash escapes, `#` begins a comment.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn keyword(&mut self) -> Option<String> {
        loop {
            self.0 = self.0.trim_start();
            if !self.0.starts_with('#') {
                return self.value();
            }
            self.0 = self.0.find('\n').map_or("", |end| &self.0[end..]);
        }
    }

    /// A value may begin with `#`.
    fn value(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        if self.0.starts_with('"') {
            return Some(self.quoted());
        }
        let end = self.0.find(char::is_whitespace).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// A macro ends at an empty line.
    fn skip_macro(&mut self) {
        self.0 = self.0.find("\n\n").map_or("", |end| &self.0[end..]);
    }

    fn quoted(&mut self) -> String {
        let mut word = String::new();
        let mut characters = self.0[1..].char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 2..];
                    return word;
                }
                '\\' => word.extend(characters.next().map(|(_, escaped)| match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                })),
                other => word.push(other),
            }
        }
        self.0 = "";
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        # machine api.hidden.com password no
        machine api.one.com login me password first
        machine api.one.com login you password second
        macdef init
        machine api.macro.com password no

        machine api.two.com port 8443
            login x
            password "with \"quotes\" and space"
        machine api.empty.com login nobody
        machine api.hash.com password #hash # a comment
        default login any password fallback"#;

    #[test]
    fn the_first_entry_that_fits() {
        let rows = [
            ("api.one.com", Some("first")),
            ("you@api.one.com", Some("second")),
            ("api.two.com:8443", Some("with \"quotes\" and space")),
            ("api.two.com", Some("fallback")),
            ("api.empty.com", Some("fallback")),
            ("api.hash.com", Some("#hash")),
            ("api.hidden.com", Some("fallback")),
            ("api.macro.com", Some("fallback")),
            ("me@api.two.com:8443", None),
        ];
        for (wanted, want) in rows {
            assert_eq!(password(FILE, &NetrcQuery::parse(wanted)).as_deref(), want, "{wanted}");
        }
    }

    #[test]
    fn odd_files_give_nothing() {
        for text in ["", "machine", "machine a", "machine a password", "password x", "machine a password \"x"]
        {
            let got = password(text, &NetrcQuery::parse("a"));
            assert!(got.is_none() || got.as_deref() == Some("x"), "{text}: {got:?}");
        }
    }
}
