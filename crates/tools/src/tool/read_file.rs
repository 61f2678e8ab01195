//! `read_file`: lines of a text file, as the editor has them where it can tell, or an image.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Location;
use domain::{HostCall, HostReply, Part, Review, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::documents;
use crate::edit::disk;
use crate::edit::document::Document;
use crate::edit::files::{Files, unless_cancelled};
use crate::edit::line_ends::NormalizedText;
use crate::edit::line_numbers::numbered;
use crate::edit::seen::{SeenVia, TextStamp};
use crate::editor;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Limits;
use crate::paths::ResolvedPath;
use crate::sealed;

const MAX_LINE: usize = 2_000;
/// Bytes of a PDF file or notebook.
const MAX_DOCUMENT: u64 = 50 << 20;
/// A file up to this size is read before it is known what it is.
const SMALL_FILE: u64 = 1 << 20;

pub struct ReadFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "file_path")]
    path: String,
    /// Lines to skip
    #[serde(default, alias = "offset", deserialize_with = "lenient::number")]
    line_offset: Option<usize>,
    #[serde(default, deserialize_with = "lenient::positive")]
    limit: Option<usize>,
}

impl BuiltInTool for ReadFile {
    type Input = Input;

    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Read a text file, with line numbers, or look at an image.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review::default();
        let path = self.files.paths.review_read("path", &input.path, scope, &mut review)?;
        let line = input.line_offset.and_then(|offset| u32::try_from(offset + 1).ok());
        review.locations.push(Location { path: path.path().to_owned(), line });
        review.summary = match (input.line_offset.unwrap_or(0), input.limit) {
            (0, None) => format!("Reading {}", path.shown()),
            (offset, None) => format!("Reading {} from line {}", path.shown(), offset + 1),
            (offset, Some(limit)) => {
                format!("Reading {} lines {}-{}", path.shown(), offset + 1, offset.saturating_add(limit))
            }
        };
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (path, is_output) = self.files.paths.resolve_read(&input.path, &call)?;
        let taint = sealed::taint_of_output(is_output, &call.scope);
        let window = LineWindow::new(&input, &self.files.limits);
        // No editor has an output open.
        if !is_output && let Some(read) = self.read_from_editor(&path, &input, window, &call).await? {
            return Ok(read);
        }
        let in_client = if !is_output && call.context.abilities().read_text {
            self.files.client_text(&path, &call).await?
        } else {
            None
        };
        let session = call.scope.session.clone();
        let read =
            move |files: &Files, path: ResolvedPath| read_disk(files, &path, &session, in_client, window);
        Ok(ToolResult { taint, ..self.files.blocking(&path, read).await? })
    }
}

impl ReadFile {
    /// What the editor gives without the whole text; `None` where it gives nothing so.
    async fn read_from_editor(
        &self,
        path: &ResolvedPath,
        input: &Input,
        window: LineWindow,
        call: &Invocation,
    ) -> Result<Option<ToolResult>, String> {
        if let Some(refused) = editor::check_readable(path, call, &self.files).await {
            return Err(refused);
        }
        if let Some(image) = self.read_image_from_editor(path, call).await {
            return Ok(Some(ToolResult { parts: vec![image], ..ToolResult::default() }));
        }
        Ok(self.read_lines_from_editor(path, input, window, call).await?.map(ToolResult::text))
    }

    /// The lines that were asked for, where the editor can give just these. One more tells whether there are others.
    async fn read_lines_from_editor(
        &self,
        path: &ResolvedPath,
        input: &Input,
        window: LineWindow,
        call: &Invocation,
    ) -> Result<Option<String>, String> {
        let is_part = input.line_offset.is_some() || input.limit.is_some();
        if !is_part || !call.context.abilities().read_lines {
            return Ok(None);
        }
        let (skip, limit) = (window.skip as u64, window.lines.saturating_add(1) as u64);
        let read = HostCall::ReadLines { path: path.path().to_owned(), skip, limit };
        match unless_cancelled(&call.cancel, call.context.host(read, self.files.limits.host_time)).await? {
            Ok(HostReply::Text(text)) => Ok(Some(window.select_from_part(NormalizedText::new(&text).text()))),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// An image as the editor has it. Other files are asked for as text.
    async fn read_image_from_editor(&self, path: &ResolvedPath, call: &Invocation) -> Option<Part> {
        let ending = path.path().extension()?.to_str()?.to_ascii_lowercase();
        if !["png", "jpg", "jpeg", "gif", "webp"].contains(&ending.as_str()) {
            return None;
        }
        let bytes = editor::read_bytes(path, self.files.limits.image_bytes, call, &self.files).await?;
        let mime = mime_of(bytes.first_chunk()?)?;
        Some(Part::Image { mime: mime.to_owned(), data: STANDARD.encode(bytes).into() })
    }
}

/// What the file is; `in_client` is the text that the editor has of it.
fn read_disk(
    files: &Files,
    path: &ResolvedPath,
    session: &SessionId,
    in_client: Option<String>,
    window: LineWindow,
) -> Result<ToolResult, String> {
    let show = |document: &Document| {
        files.seen.record(session, path.path(), TextStamp::from_text(document.text()), SeenVia::Disk);
        ToolResult::text(window.select_from_text(NormalizedText::new(&document.shown()).text()))
    };
    if in_client.is_none()
        && let Some(document) = load_small_text(path, &files.limits)
    {
        return Ok(show(&document));
    }
    if let Some(image) = load_image(path, files.limits.image_bytes)? {
        return Ok(ToolResult { parts: vec![image], ..ToolResult::default() });
    }
    if let Some(text) = load_document(path, in_client.as_deref())? {
        // A notebook is edited as the JSON that it is.
        let unsaved = in_client.map(|text| (TextStamp::from_text(&text), SeenVia::Client));
        let on_disk =
            || Some((TextStamp::from_text(load_text(path, &files.limits).ok()?.text()), SeenVia::Disk));
        if let Some((stamp, via)) = unsaved.or_else(on_disk) {
            files.seen.record(session, path.path(), stamp, via);
        }
        // Numbers of these lines are not those of the file.
        let window = LineWindow { is_numbered: false, ..window };
        return Ok(ToolResult::text(window.select_from_text(&text)));
    }
    if let Some(text) = in_client {
        files.seen.record(session, path.path(), TextStamp::from_text(&text), SeenVia::Client);
        return Ok(ToolResult::text(window.select_from_text(NormalizedText::new(&text).text())));
    }
    if let Some(text) = window.select_from_large_file(path, files.limits.file_bytes)? {
        return Ok(ToolResult::text(text));
    }
    Ok(show(&load_text(path, &files.limits)?))
}

/// A small text file, which most are: it is opened once. `None`: it is something else, or cannot be read.
fn load_small_text(path: &ResolvedPath, limits: &Limits) -> Option<Document> {
    if documents::may_be_document(path.path()) {
        return None;
    }
    let loaded = disk::load(path, limits.file_bytes.min(SMALL_FILE)).ok()??;
    let is_image = loaded.bytes.first_chunk().is_some_and(|head| mime_of(head).is_some());
    if is_image { None } else { Document::read(loaded.bytes).ok() }
}

/// A text file, whole.
pub fn load_text(path: &ResolvedPath, limits: &Limits) -> Result<Document, String> {
    let shown = path.shown();
    let loaded = disk::load(path, limits.file_bytes)?
        .ok_or_else(|| format!("There is no {shown}. Look for it with glob or directory_tree."))?;
    Document::read(loaded.bytes).map_err(|_| format!("{shown} is a binary file and cannot be read as text."))
}

/// A PDF file or a notebook as text; `unsaved` is what the editor has of it. `None`: another file, or a notebook that is
/// broken and is shown as it is.
pub fn load_document(path: &ResolvedPath, unsaved: Option<&str>) -> Result<Option<String>, String> {
    if !documents::may_be_document(path.path()) {
        return Ok(None);
    }
    let text = match unsaved
        .filter(|_| !path.path().extension().is_some_and(|it| it.eq_ignore_ascii_case("pdf")))
    {
        Some(unsaved) => documents::text_of(path.path(), unsaved.as_bytes()),
        None => disk::load(path, MAX_DOCUMENT)?.and_then(|file| documents::text_of(path.path(), &file.bytes)),
    };
    match text {
        Some(Err(_)) if path.path().extension().is_some_and(|it| it.eq_ignore_ascii_case("ipynb")) => {
            Ok(None)
        }
        text => text.transpose(),
    }
}

/// The file as an image, where it is one that models take.
pub fn load_image(path: &ResolvedPath, max: u64) -> Result<Option<Part>, String> {
    let mut head = [0; 12];
    let Ok(mut file) = path.open() else { return Ok(None) };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) || file.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let Some(mime) = mime_of(&head) else { return Ok(None) };
    let most = if mime == "image/gif" { max } else { MAX_DOCUMENT.max(max) };
    let Some(loaded) = disk::load(path, most)? else { return Ok(None) };
    let (mime, bytes) = match documents::fitted_image(&loaded.bytes, max) {
        Some(fitted) => (fitted.mime, fitted.bytes),
        None => (mime, loaded.bytes),
    };
    if bytes.len() as u64 > max {
        return Err(format!("{} is too large for a model; make it smaller first.", path.shown()));
    }
    Ok(Some(Part::Image { mime: mime.to_owned(), data: STANDARD.encode(bytes).into() }))
}

fn mime_of(head: &[u8; 12]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        _ => None,
    }
}

/// Which lines are shown, and how many bytes at most.
#[derive(Clone, Copy, Debug)]
pub struct LineWindow {
    pub skip: usize,
    pub lines: usize,
    pub bytes: usize,
    /// Each line has its number before it.
    pub is_numbered: bool,
}

impl LineWindow {
    fn new(input: &Input, limits: &Limits) -> Self {
        Self {
            skip: input.line_offset.unwrap_or(0),
            lines: input.limit.unwrap_or(limits.read_lines).max(1),
            bytes: limits.output_bytes,
            is_numbered: true,
        }
    }

    /// The lines and a note how to get the others.
    pub fn select_from_text(&self, text: &str) -> String {
        let total = text.lines().count();
        if total == 0 {
            return "(The file is empty.)".to_owned();
        }
        if self.skip >= total {
            return format!("(The file has only {total} lines.)");
        }
        let mut out = String::new();
        let mut shown = 0;
        for line in text.split_inclusive('\n').skip(self.skip).take(self.lines) {
            if !self.push(&mut out, self.skip + shown, line) {
                break;
            }
            shown += 1;
        }
        let end = self.skip + shown;
        if end < total {
            self.push_notice(&mut out, end, &format!(" of {total}"));
        }
        out
    }

    /// The same for a text that begins with the first line to show.
    fn select_from_part(&self, text: &str) -> String {
        if text.is_empty() {
            return "(The file has fewer lines.)".to_owned();
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut out = String::new();
        let numbered = lines.iter().take(self.lines).enumerate();
        let shown = numbered.take_while(|(at, line)| self.push(&mut out, self.skip + at, line)).count();
        if shown < lines.len() {
            self.push_notice(&mut out, self.skip + shown, "");
        }
        out
    }

    /// For files too large to be taken whole: the lines by streaming.
    fn select_from_large_file(&self, path: &ResolvedPath, max: u64) -> Result<Option<String>, String> {
        let describe_error = |error: std::io::Error| format!("{} cannot be read: {error}.", path.shown());
        let Ok(file) = path.open() else { return Ok(None) };
        let metadata = file.metadata().map_err(describe_error)?;
        if !metadata.is_file() || metadata.len() <= max {
            return Ok(None);
        }
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        for _ in 0..self.skip {
            if reader.skip_until(b'\n').map_err(describe_error)? == 0 {
                return Ok(Some("(The file has fewer lines.)".to_owned()));
            }
        }
        let mut out = String::new();
        let mut end = self.skip;
        let mut line = Vec::new();
        while end < self.skip + self.lines {
            line.clear();
            let read =
                (&mut reader).take(1024 * 1024).read_until(b'\n', &mut line).map_err(describe_error)?;
            if read == 0 {
                return Ok(Some(out));
            }
            if line.contains(&0) {
                return Err(format!("{} is a binary file and cannot be read as text.", path.shown()));
            }
            if !self.push(&mut out, end, &String::from_utf8_lossy(&line)) {
                break;
            }
            end += 1;
        }
        self.push_notice(&mut out, end, "");
        Ok(Some(out))
    }

    /// Adds the line at `at`, counted from 0. False when there is no more room; the first line always finds some.
    fn push(&self, out: &mut String, at: usize, line: &str) -> bool {
        let cut = line.floor_char_boundary(MAX_LINE);
        if !out.is_empty() && out.len() + cut > self.bytes {
            return false;
        }
        match self.is_numbered {
            true => out.push_str(&numbered(at + 1, &line[..cut])),
            false => out.push_str(&line[..cut]),
        }
        if cut < line.trim_end_matches('\n').len() {
            out.push_str(&format!("… [{} more bytes in this line]\n", line.len() - cut));
        }
        true
    }

    fn push_notice(&self, out: &mut String, end: usize, of: &str) {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!("[lines {}-{end}{of}; read on with line_offset {end}]", self.skip + 1));
    }
}
