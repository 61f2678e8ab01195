//! `grep`: lines by regular expression, by ripgrep's own libraries.

use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{CancellationToken, Review, SessionId};
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use platform::project_files;
use schemars::JsonSchema;
use serde::Deserialize;

use super::directory_tree::workspace_folder;
use super::file_search::{self, Enough, FoundInBatch, FoundInFile, WalkedFile};
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
            let search = Search::new(&input, &files.limits, &scope, forbidden)?;
            search.run(path.path(), path.shown(), &files.limits, cancel)
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

/// The lines below a folder that match, with the usual limits and without rules: what the benchmark measures.
pub fn search_folder(folder: &Path, pattern: &str) -> Result<String, String> {
    let scope = Scope {
        session: SessionId::new("search"),
        roots: vec![folder.to_owned()].into(),
        read_only: true,
        remembered: Arc::from([]),
        forbidden_paths: Arc::from([]),
        tainted: false,
        secret_read: false,
    };
    let input = Input {
        pattern: pattern.to_owned(),
        path: workspace_folder(),
        include: None,
        context: None,
        files_only: false,
        max_results: None,
    };
    let (limits, forbidden) = (Limits::default(), ForbiddenPaths::new(&scope)?);
    let search = Search::new(&input, &limits, &scope, forbidden)?;
    search.run(folder, &input.path, &limits, CancellationToken::new()).map(|(text, _)| text)
}

struct Search {
    matcher: RegexMatcher,
    searcher: SearcherBuilder,
    include: Option<GlobMatcher>,
    files_only: bool,
    /// Matches that are told at most.
    most: usize,
    bytes: usize,
    root: Option<PathBuf>,
    forbidden: ForbiddenPaths,
    /// A tainted chat reads files that hold secrets only by their own path.
    leaves_out_secrets: bool,
    /// A search across lines holds a whole file in memory; larger ones are left out.
    max_file: u64,
    notice: Option<String>,
}

/// What is told of all files.
#[derive(Default)]
struct Told {
    text: String,
    matches: usize,
    left_out: usize,
    /// Files with secrets among those that matched.
    secrets: Vec<String>,
    is_full: bool,
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
        let mut searcher = SearcherBuilder::new();
        searcher
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .multi_line(across_lines)
            // A line without end is not kept whole.
            .heap_limit(Some(MAX_HEAP))
            .before_context(context)
            .after_context(context);
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
            most: input.max_results.unwrap_or(limits.matches).clamp(1, 10_000),
            bytes: limits.output_bytes,
            root: scope.roots.first().cloned(),
            forbidden,
            leaves_out_secrets: scope.tainted,
            max_file: if across_lines { limits.file_bytes } else { u64::MAX },
            notice,
        })
    }

    fn run(
        mut self,
        from: &Path,
        shown: &str,
        limits: &Limits,
        cancel: CancellationToken,
    ) -> Result<(String, Vec<String>), String> {
        if from.symlink_metadata().is_err() {
            return Err(format!("There is no {shown}. Look for it with glob or directory_tree."));
        }
        let mut walk = Walk::new(from, limits.walk_time, cancel.clone());
        let files = walk.by_ref().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let files = files.map(|entry| {
            let depth = entry.depth();
            (entry.into_path(), depth)
        });
        let searcher = || {
            // Each thread has buffers of its own.
            let (mut searcher, matcher) = (self.searcher.build(), self.matcher.clone());
            let (search, cancel) = (&self, &cancel);
            move |batch: &[WalkedFile]| search.search_batch(&mut searcher, &matcher, from, batch, cancel)
        };
        let enough = Enough { matches: self.most, bytes: self.bytes };
        let found = file_search::search(files, &enough, searcher);
        if walk.is_stopped() {
            return Err("The call was stopped.".to_owned());
        }
        let mut told = self.join(found);
        if told.text.is_empty() {
            told.text.push_str(NO_MATCH);
            told.text.push_str(" Mind that what git ignores is left out.");
        }
        if told.is_full {
            told.text.push_str("[there may be more; narrow the search or raise max_results]\n");
        }
        if walk.cut_short {
            told.text.push_str("[not everything was searched in the time there is; give a path]\n");
        }
        if told.left_out > 0 {
            let count = told.left_out;
            told.text.push_str(&format!(
                "\n[{count} files that hold secrets were left out; read one by its own path]\n"
            ));
        }
        let text = self.notice.take().map_or(String::new(), |notice| notice + "\n") + told.text.trim_end();
        Ok((text, told.secrets))
    }

    fn search_batch(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        from: &Path,
        batch: &[WalkedFile],
        cancel: &CancellationToken,
    ) -> FoundInBatch {
        let mut found = FoundInBatch::default();
        for (path, depth) in batch {
            if cancel.is_cancelled() {
                break;
            }
            let relative = path.strip_prefix(from).unwrap_or(path);
            if self.include.as_ref().is_some_and(|include| *depth > 0 && !include.is_match(relative)) {
                continue;
            }
            if self.leaves_out_secrets && *depth > 0 && project_files::holds_secrets(path) {
                found.left_out += 1;
                continue;
            }
            found.files.extend(self.search_file(searcher, matcher, path, self.most, self.bytes));
        }
        found
    }

    /// At most that many matches and about that many bytes. A file that cannot be read is left out.
    fn search_file(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        path: &Path,
        most: usize,
        room: usize,
    ) -> Option<FoundInFile> {
        if self.forbidden.contains(path) {
            return None;
        }
        let file = project_files::open_regular(path).ok()?;
        if self.max_file < u64::MAX && file.metadata().map_or(true, |metadata| metadata.len() > self.max_file)
        {
            return None;
        }
        let left = if self.files_only { 1 } else { most };
        let mut lines = MatchLines { out: String::new(), left, room, found: 0, last: None };
        let _ = searcher.search_file(matcher, &file, &mut lines);
        if lines.found == 0 {
            return None;
        }
        let shown =
            self.root.as_ref().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path).display();
        let text = match self.files_only {
            true => format!("{shown}\n"),
            false => format!("{shown}\n{}\n", lines.out),
        };
        Some(FoundInFile { path: path.to_owned(), text, matches: lines.found })
    }

    /// The matches in order, as far as they fit.
    fn join(&self, found: Vec<FoundInBatch>) -> Told {
        let mut told = Told::default();
        for batch in found {
            for file in batch.files {
                let (most, room) = (self.most - told.matches, self.bytes.saturating_sub(told.text.len()));
                let file = if file.matches <= most && file.text.len() <= room {
                    file
                } else {
                    // The last file is searched again, for as many matches as there is room for.
                    let mut searcher = self.searcher.build();
                    let cut = self.search_file(&mut searcher, &self.matcher, &file.path, most, room);
                    let Some(cut) = cut else { continue };
                    cut
                };
                told.text.push_str(&file.text);
                told.matches += file.matches;
                if project_files::is_secret(&file.path) {
                    told.secrets.push(file.path.display().to_string());
                }
                if told.matches >= self.most || told.text.len() > self.bytes {
                    told.is_full = true;
                    return told;
                }
            }
            told.left_out += batch.left_out;
        }
        told
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
