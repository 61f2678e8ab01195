//! `grep`: lines by regular expression, by ripgrep's own libraries.

use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{CancellationToken, Review};
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use platform::project_files;
use schemars::JsonSchema;
use serde::Deserialize;

use super::directory_tree::workspace_folder;
use crate::edit::files::Files;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Limits;
use crate::paths::{ForbiddenPaths, ResolvedPath};
use crate::sealed;
use crate::walk::Walk;

const MAX_LINE: usize = 400;
const MAX_CONTEXT: usize = 20;
const MAX_HEAP: usize = 64 << 20;
const NO_MATCH: &str = "Nothing matches.";

pub struct Grep {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Regular expression
    pattern: String,
    #[serde(default = "workspace_folder", deserialize_with = "lenient::folder")]
    path: String,
    /// Only files with such names: *.{ts,tsx}
    #[serde(default)]
    include: Option<String>,
    /// Lines around each match
    #[serde(default, deserialize_with = "lenient::number")]
    context: Option<usize>,
    #[serde(default, deserialize_with = "lenient::flag")]
    files_only: bool,
    #[serde(default, deserialize_with = "lenient::positive")]
    max_results: Option<usize>,
}

impl BuiltInTool for Grep {
    type Input = Input;

    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "Search file contents. Leaves out what git ignores.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { summary: format!("Searching for {}", input.pattern), ..Review::default() };
        self.files.paths.review_read("path", &input.path, scope, &mut review)?;
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (path, is_output) = self.files.paths.resolve_read(&input.path, &call)?;
        let taint = sealed::taint_of_output(is_output, &call.scope);
        let cancel = call.cancel.clone();
        let scope = call.scope.clone();
        let forbidden = ForbiddenPaths::new(&scope)?;
        let named = named_file(&input.pattern, &scope, &forbidden);
        let search = move |files: &Files, path: ResolvedPath| {
            Search::new(&input, &files.limits, &scope, forbidden)?.run(&path, &files.limits, cancel)
        };
        let (mut text, secrets) = self.files.blocking(&path, search).await?;
        if let Some(name) = named.filter(|_| text.starts_with(NO_MATCH)) {
            text.push_str(&format!(" {name} is a file: read_file shows it."));
        }
        let mut result = ToolResult { taint, ..ToolResult::text(text) };
        secrets.iter().for_each(|secret| result.taint.add_secret(secret));
        Ok(result)
    }
}

/// Small models look for the name of a file where they want to read it.
fn named_file(pattern: &str, scope: &Scope, forbidden: &ForbiddenPaths) -> Option<String> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Path::new(pattern);
    let whole = scope.roots.first()?.join(path);
    let is_named = path.components().all(is_plain) && whole.is_file() && !forbidden.contains(&whole);
    is_named.then(|| pattern.to_owned())
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    include: Option<GlobMatcher>,
    files_only: bool,
    /// Matches that may still be told.
    left: usize,
    bytes: usize,
    root: Option<PathBuf>,
    forbidden: ForbiddenPaths,
    /// A tainted chat reads files that hold secrets only by their own path.
    leaves_out_secrets: bool,
    left_out: usize,
    /// Files with secrets among those that matched.
    secrets: Vec<String>,
    /// A search across lines holds a whole file in memory; larger ones are left out.
    max_file: u64,
    out: String,
    notice: Option<String>,
}

impl Search {
    fn new(input: &Input, limits: &Limits, scope: &Scope, forbidden: ForbiddenPaths) -> Result<Self, String> {
        let across_lines = input.pattern.contains('\n') || input.pattern.contains("\\n");
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).size_limit(10 * 1024 * 1024);
        if !across_lines {
            builder.line_terminator(Some(b'\n'));
        }
        let mut notice = None;
        let matcher = builder.build(&input.pattern).or_else(|error| {
            notice = Some("[the pattern is no regular expression; searched for as it stands]".to_owned());
            builder
                .fixed_strings(true)
                .build(&input.pattern)
                .map_err(|_| format!("The pattern is wrong: {error}."))
        })?;
        let context = input.context.unwrap_or(0).min(MAX_CONTEXT);
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .multi_line(across_lines)
            // A line without end is not kept whole.
            .heap_limit(Some(MAX_HEAP))
            .before_context(context)
            .after_context(context)
            .build();
        let include = input.include.as_deref().filter(|include| !include.is_empty()).map(|include| {
            let full_pattern =
                if include.contains('/') { include.to_owned() } else { format!("**/{include}") };
            let glob = GlobBuilder::new(&full_pattern).literal_separator(true).build();
            Ok::<_, String>(glob.map_err(|error| format!("include is wrong: {error}."))?.compile_matcher())
        });
        Ok(Self {
            matcher,
            searcher,
            include: include.transpose()?,
            files_only: input.files_only,
            left: input.max_results.unwrap_or(limits.matches).clamp(1, 10_000),
            bytes: limits.output_bytes,
            root: scope.roots.first().cloned(),
            forbidden,
            leaves_out_secrets: scope.tainted,
            left_out: 0,
            secrets: Vec::new(),
            max_file: if across_lines { limits.file_bytes } else { u64::MAX },
            out: String::new(),
            notice,
        })
    }

    fn run(
        mut self,
        from: &ResolvedPath,
        limits: &Limits,
        cancel: CancellationToken,
    ) -> Result<(String, Vec<String>), String> {
        if from.path().symlink_metadata().is_err() {
            return Err(format!("There is no {}. Look for it with glob or directory_tree.", from.shown()));
        }
        let mut walk = Walk::new(from.path(), limits.walk_time, cancel);
        let mut full = false;
        for entry in walk.by_ref() {
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let relative = entry.path().strip_prefix(from.path()).unwrap_or(entry.path());
            if self.include.as_ref().is_some_and(|include| entry.depth() > 0 && !include.is_match(relative)) {
                continue;
            }
            if self.leaves_out_secrets && entry.depth() > 0 && project_files::holds_secrets(entry.path()) {
                self.left_out += 1;
                continue;
            }
            self.search_file(entry.path());
            if self.left == 0 || self.out.len() > self.bytes {
                full = true;
                break;
            }
        }
        if walk.is_stopped() {
            return Err("The call was stopped.".to_owned());
        }
        if self.out.is_empty() {
            self.out.push_str(NO_MATCH);
            self.out.push_str(" Mind that what git ignores is left out.");
        }
        if full {
            self.out.push_str("[there may be more; narrow the search or raise max_results]\n");
        }
        if walk.cut_short {
            self.out.push_str("[not everything was searched in the time there is; give a path]\n");
        }
        if self.left_out > 0 {
            let count = self.left_out;
            self.out.push_str(&format!(
                "\n[{count} files that hold secrets were left out; read one by its own path]\n"
            ));
        }
        let text = self.notice.take().map_or(String::new(), |notice| notice + "\n") + self.out.trim_end();
        Ok((text, self.secrets))
    }

    /// A file that cannot be read is left out.
    fn search_file(&mut self, path: &Path) {
        if self.forbidden.contains(path) {
            return;
        }
        let Ok(file) = project_files::open_regular(path) else { return };
        if file.metadata().map_or(true, |metadata| metadata.len() > self.max_file) {
            return;
        }
        let mut lines = MatchLines {
            out: String::new(),
            left: if self.files_only { 1 } else { self.left },
            room: self.bytes.saturating_sub(self.out.len()),
            found: 0,
            last: None,
        };
        let _ = self.searcher.search_file(&self.matcher, &file, &mut lines);
        if lines.found == 0 {
            return;
        }
        if project_files::is_secret(path) {
            self.secrets.push(path.display().to_string());
        }
        let shown =
            self.root.as_ref().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path).display();
        if self.files_only {
            let _ = writeln!(self.out, "{shown}");
            self.left -= 1;
        } else {
            let _ = write!(self.out, "{shown}\n{}\n", lines.out);
            self.left = self.left.saturating_sub(lines.found);
        }
    }
}

/// Collects `12: match` and `13- context`.
struct MatchLines {
    out: String,
    left: usize,
    room: usize,
    found: usize,
    last: Option<u64>,
}

impl MatchLines {
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let number = number.unwrap_or(0);
        if self.last.is_some_and(|last| last + 1 < number) && mark == '-' {
            self.out.push_str("--\n");
        }
        let text = String::from_utf8_lossy(bytes);
        for (number, line) in (number..).zip(text.lines()) {
            let cut = line.floor_char_boundary(MAX_LINE);
            let more = if cut < line.len() { "…" } else { "" };
            let _ = writeln!(self.out, "{number}{mark} {}{more}", &line[..cut]);
            self.last = Some(number);
        }
    }
}

impl Sink for MatchLines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.push(found.line_number(), ':', found.bytes());
        self.found += 1;
        Ok(self.found < self.left && self.out.len() < self.room)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(self.out.len() < self.room)
    }
}
