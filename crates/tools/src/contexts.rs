//! What the user adds to a prompt: which there are, and the text or image each stands for.
//!
//! Also plain reads of the workspace for front-ends. Knows no MCP: a resource is read by its server. Invariant: the
//! path policy of the tools holds and nothing outside the workspace is read; every context is bounded.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::command::{Context, ContextQuery, FileContent, FileStat};
use domain::host::Position;
use domain::tool::{Scope, ToolContext};
use domain::{BoxFuture, CancellationToken, Failure, HostCall, HostReply, Part, SessionId};
use platform::project_files;

use crate::documents::fitted_image;
use crate::edit::disk;
use crate::edit::files::{Files, blocking};
use crate::edit::line_ends::NormalizedText;
use crate::edit::seen::{SeenVia, TextStamp};
use crate::glob_search;
use crate::index::Indexes;
use crate::options::Limits;
use crate::paths::{ForbiddenPaths, ResolvedPath};
use crate::tool::directory_tree::{map, tree};
use crate::tool::fetch_url::{page, window};
use crate::tool::read_file::{LineWindow, load_document, load_image, load_text};
use crate::walk::Walk;
use crate::web::fetch::Fetcher;

/// How many files a query names.
const MAX_FOUND: usize = 100;
/// Of each file of a folder that was added as a whole.
const FILE_OF_FOLDER: usize = 8 * 1024;

/// The files of a workspace outside of tool calls.
pub struct Contexts {
    pub(crate) files: Arc<Files>,
    pub(crate) indexes: Indexes,
    pub(crate) fetcher: Arc<Fetcher>,
}

impl domain::files::Files for Contexts {
    fn query<'a>(
        &'a self,
        roots: &'a [PathBuf],
        text: &'a str,
        kind: ContextQuery,
    ) -> BoxFuture<'a, Vec<Context>> {
        Box::pin(async move {
            let mut found = if kind == ContextQuery::All { special_contexts(text) } else { Vec::new() };
            let files = self.indexes.get_or_create(roots).query(text, MAX_FOUND).await;
            found.extend(files.into_iter().filter_map(|one| match (one.folder, kind) {
                (false, _) => Some(Context::File { path: one.path, lines: None }),
                (true, ContextQuery::All) => Some(Context::Directory { path: one.path }),
                (true, ContextQuery::Files) => None,
            }));
            found
        })
    }

    fn expand<'a>(
        &'a self,
        context: &'a Context,
        scope: &'a Scope,
        port: Arc<dyn ToolContext>,
    ) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(
            async move { self.expand_context(context, scope, port.as_ref()).await.map_err(Failure::user) },
        )
    }

    fn repo_map<'a>(&'a self, roots: &'a [PathBuf]) -> BoxFuture<'a, String> {
        Box::pin(async move {
            let scope = workspace_scope(roots);
            let mut maps = Vec::new();
            for root in roots {
                let limits = self.files.limits.clone();
                let map = match self.resolve_inside(root, &scope) {
                    Ok(path) => blocking(move || map(&path, &limits)).await,
                    Err(problem) => Err(problem),
                };
                maps.push(map.unwrap_or_else(|problem| problem));
            }
            maps.join("\n\n")
        })
    }

    fn read<'a>(
        &'a self,
        roots: &'a [PathBuf],
        path: PathBuf,
    ) -> BoxFuture<'a, Result<FileContent, Failure>> {
        Box::pin(async move {
            let path = self.resolve_inside(&path, &workspace_scope(roots)).map_err(Failure::user)?;
            let most = self.files.limits.file_bytes;
            let loaded = blocking(move || {
                disk::load(&path, most)?.ok_or_else(|| format!("There is no {}.", path.shown()))
            });
            let bytes = loaded.await.map_err(Failure::user)?.bytes;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            Ok(FileContent { version: hasher.finish() & ((1 << 53) - 1), bytes })
        })
    }

    fn stat<'a>(&'a self, roots: &'a [PathBuf], path: PathBuf) -> BoxFuture<'a, Result<FileStat, Failure>> {
        Box::pin(async move {
            let path = self.resolve_inside(&path, &workspace_scope(roots)).map_err(Failure::user)?;
            let metadata = path.path().symlink_metadata().ok();
            Ok(FileStat {
                exists: metadata.is_some(),
                directory: metadata.is_some_and(|found| found.is_dir()),
            })
        })
    }

    fn glob<'a>(
        &'a self,
        roots: &'a [PathBuf],
        pattern: String,
    ) -> BoxFuture<'a, Result<Vec<PathBuf>, Failure>> {
        Box::pin(async move {
            let scope = workspace_scope(roots);
            let mut paths = Vec::new();
            for root in roots {
                let (root, pattern) =
                    (self.resolve_inside(root, &scope).map_err(Failure::user)?, pattern.clone());
                let limits = self.files.limits.clone();
                let find = blocking(move || {
                    glob_search::find_files(&root, &pattern, &limits, CancellationToken::new())
                });
                paths.extend(find.await.map_err(Failure::user)?.paths);
            }
            Ok(paths)
        })
    }

    fn warm(&self, roots: &[PathBuf]) {
        self.indexes.get_or_create(roots).warm();
    }
}

impl Contexts {
    async fn expand_context(
        &self,
        context: &Context,
        scope: &Scope,
        port: &dyn ToolContext,
    ) -> Result<Vec<Part>, String> {
        match context {
            Context::File { path, lines } => self.expand_file(path, *lines, scope, port).await,
            Context::Directory { path } => self.expand_folder(path, scope).await,
            Context::Web { url } => {
                let text = page(&self.fetcher, url, &CancellationToken::new()).await?;
                let text = window(&text, 0, self.files.limits.output_bytes);
                Ok(wrap_in_tag("web", &format!("url=\"{url}\""), &text))
            }
            Context::RepoMap => {
                let map = domain::files::Files::repo_map(self, &scope.roots).await;
                Ok(wrap_in_tag("repoMap", "", &map))
            }
            Context::Cursor { path, start, end } => Ok(vec![Part::text(describe_cursor(path, *start, *end))]),
            Context::McpResource(resource) => {
                Err(format!("{} of {} can only be read by its server.", resource.uri, resource.server))
            }
            Context::Code { content, language, description } => {
                let about = description.as_deref().unwrap_or_default();
                let text = format!("```{language}\n{}\n```", self.truncate(content).trim_end());
                Ok(wrap_in_tag("code", &format!("about=\"{about}\""), &text))
            }
            Context::Text { name, text } => {
                Ok(wrap_in_tag("text", &format!("name=\"{name}\""), &self.truncate(text)))
            }
            Context::Image { mime, data } => {
                let (mime, data, max) = (mime.clone(), data.clone(), self.files.limits.image_bytes);
                blocking(move || {
                    let bytes = STANDARD.decode(data.as_bytes()).ok();
                    let (mime, data) = match bytes.and_then(|bytes| fitted_image(&bytes, max)) {
                        Some(fitted) => (fitted.mime.to_owned(), STANDARD.encode(fitted.bytes).into()),
                        None => (mime, data),
                    };
                    Ok(vec![Part::Image { mime, data }])
                })
                .await
            }
        }
    }

    async fn expand_file(
        &self,
        path: &Path,
        lines: Option<(u32, u32)>,
        scope: &Scope,
        port: &dyn ToolContext,
    ) -> Result<Vec<Part>, String> {
        let path = self.resolve_inside(path, scope)?;
        if ForbiddenPaths::new(scope)?.contains(path.path()) {
            return Err(format!("A rule forbids reading {}.", path.shown()));
        }
        let max = self.files.limits.image_bytes;
        if let Some(image) = self.files.blocking(&path, move |_, path| load_image(&path, max)).await? {
            return Ok(vec![Part::text(format!("The image {}:", path.shown())), image]);
        }
        let unsaved = client_text(&path, port, &self.files.limits).await;
        let of_editor = unsaved.clone();
        let document = self.files.blocking(&path, move |_, path| load_document(&path, of_editor.as_deref()));
        if let Some(document) = document.await? {
            return Ok(self.wrap_lines(&path, lines, &document));
        }
        let (text, how) = match unsaved {
            Some(text) => (text, SeenVia::Client),
            None => {
                let document =
                    self.files.blocking(&path, |files, path| load_text(&path, &files.limits)).await?;
                self.files.seen.record(
                    &scope.session,
                    path.path(),
                    TextStamp::from_text(document.text()),
                    SeenVia::Disk,
                );
                (document.shown(), SeenVia::Disk)
            }
        };
        if how == SeenVia::Client {
            self.files.seen.record(&scope.session, path.path(), TextStamp::from_text(&text), how);
        }
        Ok(self.wrap_lines(&path, lines, NormalizedText::new(&text).text()))
    }

    /// The lines of a text that were asked for, named by the file.
    fn wrap_lines(&self, path: &ResolvedPath, lines: Option<(u32, u32)>, text: &str) -> Vec<Part> {
        let (first, last) = lines.unwrap_or((1, u32::MAX));
        let skip = first.max(1) as usize - 1;
        let count = (last as usize).saturating_sub(skip).min(self.files.limits.read_lines).max(1);
        let window =
            LineWindow { skip, lines: count, bytes: self.files.limits.output_bytes, is_numbered: false };
        let range = lines.map_or(String::new(), |(first, last)| format!(" lines=\"{first}-{last}\""));
        let shown = window.select_from_text(text);
        // The user asked for these lines; where the others are is no news.
        let shown = if lines.is_some() { without_notice(&shown) } else { &shown };
        wrap_in_tag("file", &format!("path=\"{}\"{range}", path.path().display()), shown)
    }

    /// The tree of a folder, and as many of its files as there is room for.
    async fn expand_folder(&self, path: &Path, scope: &Scope) -> Result<Vec<Part>, String> {
        let path = self.resolve_inside(path, scope)?;
        let scope = scope.clone();
        let forbidden = ForbiddenPaths::new(&scope)?;
        let list = move |files: &Files, path: ResolvedPath| {
            let mut text = tree(&path, usize::MAX, &files.limits, CancellationToken::new())?;
            let walk = Walk::new(path.path(), files.limits.walk_time, CancellationToken::new());
            let mut left_out = 0;
            for entry in walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
                let Some(name) = entry.path().to_str() else { continue };
                let Ok(file) = files.paths.resolve(name, &scope) else { continue };
                if forbidden.contains(file.path()) || project_files::holds_secrets(file.path()) {
                    continue;
                }
                let Ok(document) = load_text(&file, &files.limits) else { continue };
                if text.len() > files.limits.output_bytes {
                    left_out += 1;
                    continue;
                }
                let window = LineWindow {
                    skip: 0,
                    lines: files.limits.read_lines,
                    bytes: FILE_OF_FOLDER,
                    is_numbered: false,
                };
                let shown = window.select_from_text(NormalizedText::new(&document.shown()).text());
                text.push_str(&format!(
                    "\n\n<file path=\"{}\">\n{}\n</file>",
                    file.shown(),
                    shown.trim_end()
                ));
            }
            if left_out > 0 {
                text.push_str(&format!("\n\n[{left_out} more files; read them with read_file]"));
            }
            Ok(text)
        };
        let text = self.files.blocking(&path, list).await?;
        Ok(wrap_in_tag("directory", &format!("path=\"{}\"", path.path().display()), &text))
    }

    fn resolve_inside(&self, path: &Path, scope: &Scope) -> Result<ResolvedPath, String> {
        let text = path.to_str().ok_or("The path is no text.")?;
        let resolved = self.files.paths.resolve(text, scope)?;
        if resolved.is_inside() {
            return Ok(resolved);
        }
        // As it was written: where a link outside the workspace leads is not the asker's to know.
        Err(format!("{text} is outside the workspace, so it is not read. Open its folder too."))
    }

    fn truncate(&self, text: &str) -> String {
        let most = self.files.limits.output_bytes;
        if text.len() <= most {
            return text.to_owned();
        }
        format!("{}\n[{} more bytes]", &text[..text.floor_char_boundary(most)], text.len() - most)
    }
}

/// What else can be added, where the query fits.
fn special_contexts(query: &str) -> Vec<Context> {
    let lower = query.trim().to_lowercase();
    let mut found = Vec::new();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        found.push(Context::Web { url: query.trim().to_owned() });
    }
    if "repomap".contains(&lower) {
        found.push(Context::RepoMap);
    }
    if "cursor".contains(&lower) {
        let nowhere = Position { line: 1, character: 1 };
        found.push(Context::Cursor { path: PathBuf::new(), start: nowhere, end: nowhere });
    }
    found
}

async fn client_text(path: &ResolvedPath, port: &dyn ToolContext, limits: &Limits) -> Option<String> {
    if !port.abilities().read_text {
        return None;
    }
    let call = HostCall::ReadText { path: path.path().to_owned() };
    match port.host(call, limits.host_time).await {
        Ok(HostReply::Text(text)) => Some(text),
        _ => None,
    }
}

fn describe_cursor(path: &Path, start: Position, end: Position) -> String {
    let path = path.display();
    if start == end {
        return format!(
            "<cursor path=\"{path}\" line=\"{}\" character=\"{}\"/>",
            start.line, start.character
        );
    }
    format!(
        "<cursor path=\"{path}\" selection=\"{}:{}-{}:{}\"/>",
        start.line, start.character, end.line, end.character
    )
}

fn wrap_in_tag(tag: &str, attributes: &str, text: &str) -> Vec<Part> {
    let open = if attributes.is_empty() { format!("<{tag}>") } else { format!("<{tag} {attributes}>") };
    vec![Part::text(format!("{open}\n{}\n</{tag}>", text.trim_end()))]
}

fn without_notice(shown: &str) -> &str {
    match shown.rfind("[lines ") {
        Some(at) if shown.ends_with(']') => &shown[..at],
        _ => shown,
    }
}

pub(crate) fn workspace_scope(roots: &[PathBuf]) -> Scope {
    Scope {
        session: SessionId::new(""),
        roots: roots.into(),
        read_only: false,
        remembered: Arc::new([]),
        forbidden_paths: Arc::new([]),
        tainted: false,
        secret_read: false,
    }
}
