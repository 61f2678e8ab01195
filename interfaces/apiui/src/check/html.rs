//! One page that opens in a browser without a build: React's bundle, the module as plain JavaScript, and a policy that
//! lets the page run these two scripts and call the API, nothing else. Owns the page's text and its policy; must not know
//! where the bundle comes from.
//!
//! Invariant: whatever the module or the options hold, it stays within its script or is escaped text, and the policy
//! names the very scripts of the page by their hashes.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::{Checked, Refusal, transform};

/// What a page is made with besides its code.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// The title of the page; text.
    pub title: String,
    /// The language of the page, such as `en`.
    pub language: String,
    /// Addresses besides the servers that the page may call: those that give tokens.
    pub token_urls: Vec<String>,
}

/// Checks the module and makes a page of it. `react_bundle` is what `web/build.mjs` writes.
///
/// The page may connect to the origins of the module's `SERVERS`, to its own if one of them is a path, to those that
/// give tokens, and to the one server that its reader chose and confirmed: a script before the policy reads that choice.
pub fn html_page(code: &str, react_bundle: &str, options: &PageOptions) -> Result<String, Vec<Refusal>> {
    let (checked, program) = transform::page_script(code)?;
    let (bundle, program) = (within_script(react_bundle), within_script(&program));
    let policy = policy(&checked, &options.token_urls, &[&bundle, &program]);
    let chooser = SERVER_CHOICE.replace("{{policy}}", &policy);
    let chooser = within_script(&chooser);
    let title = escape(if options.title.is_empty() { "API" } else { &options.title });
    let language = escape(if options.language.is_empty() { "en" } else { &options.language });
    // The scripts are nearly all of the page; the rest of it is short.
    let mut page = String::with_capacity(bundle.len() + program.len() + 2 * chooser.len() + 2_000);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <script>{chooser}</script>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\"><!-- -->\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>body {{ margin: 0 }}</style>\n</head>\n<body>\n<div id=\"root\"></div>\n\
         <script>{bundle}</script>\n<script type=\"module\">{program}</script>\n</body>\n</html>\n",
    );
    Ok(page)
}

/// Writes another policy where the reader chose a server, and turns the usual one into a comment, which ends behind it.
const SERVER_CHOICE: &str = r#"
try {
  const server = localStorage.getItem(`dragoman ${location.pathname} server`);
  const [origin] = /^https?:\/\/[A-Za-z0-9.:_\[\]-]+/.exec(server ?? "") ?? [];
  if (origin !== undefined) {
    const policy = "{{policy}}".replace("connect-src ", `connect-src ${origin} `).replace(" 'none'; base-uri", "; base-uri");
    document.write(`<meta http-equiv=Content-Security-Policy content="${policy}"><!--`);
  }
} catch {}
"#;

fn policy(checked: &Checked, token_urls: &[String], scripts: &[&str]) -> String {
    let hashes: Vec<String> = scripts
        .iter()
        .map(|script| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script))))
        .collect();
    let is_address = |url: &&String| url.starts_with("https://") || url.starts_with("http://");
    let tokens = token_urls.iter().filter(is_address);
    let mut origins: Vec<String> =
        checked.servers.iter().chain(tokens).map(|server| origin(server)).collect();
    origins.sort();
    origins.dedup();
    if origins.is_empty() {
        origins.push("'none'".to_owned());
    }
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; connect-src {}; base-uri 'none'; \
         form-action 'none'; object-src 'none'; frame-src 'none'; worker-src 'none'; \
         require-trusted-types-for 'script'",
        hashes.join(" "),
        origins.join(" ")
    )
}

/// The origin of an address of `SERVERS`, as a policy names it. The checker has seen that it is empty, a path or http(s).
fn origin(server: &str) -> String {
    let is_plain = |character: &char| {
        character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | ':' | '[' | ']' | '_')
    };
    for scheme in ["https://", "http://"] {
        if let Some(rest) = server.strip_prefix(scheme) {
            let host: String = rest.chars().take_while(is_plain).collect();
            return format!("{scheme}{host}");
        }
    }
    "'self'".to_owned()
}

/// A script must not hold what ends it or changes how its end is found. These letters stand so only within texts,
/// patterns and templates, where the escape means the same.
fn within_script(script: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut written = 0;
    for (at, _) in script.match_indices('<') {
        let rest = &script[at + 1..];
        let starts =
            |word: &str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        if starts("/script") || starts("script") || starts("!--") {
            out.push_str(&script[written..at]);
            out.push_str("\\x3C");
            written = at + 1;
        }
    }
    if written == 0 {
        return Cow::Borrowed(script);
    }
    out.push_str(&script[written..]);
    Cow::Owned(out)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
