//! The prompt of `dragoman run`: its words, the text that is piped in, files and images.
//!
//! Invariant: input above a limit is rejected with a sentence, never cut.

use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use base64::Engine;
use domain::Failure;
use domain::command::Context;

/// The largest prompt, with the text from stdin.
const MAX_PROMPT_BYTES: usize = 16 << 20;
pub(crate) const MAX_IMAGE_BYTES: u64 = 20 << 20;
/// After this time without the end of stdin, a line says what the run waits for.
const STDIN_NOTICE_DELAY: Duration = Duration::from_secs(3);

/// Lines of a conversation that wait to be read.
const WAITING_LINES: usize = 64;

pub(super) struct Input {
    pub(super) prompt: String,
    /// The part of it that the user wrote: piped text beside a prompt may be anyone's, and its `@` means nothing.
    pub(super) written: String,
}

/// The words of the command line with the text of stdin, or one of them.
pub(super) fn prompt(words: &[String], timeout: Option<Duration>) -> Result<Input, Failure> {
    let from_stdin = words.is_empty() || words == ["-"];
    let words = if from_stdin { String::new() } else { words.join(" ") };
    let piped = if std::io::stdin().is_terminal() { String::new() } else { read_stdin(timeout)? };
    let (prompt, written) = match (words.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => {
            return Err(Failure::user("There is no prompt.").hint("Give it as an argument or on stdin."));
        }
        (true, false) => (piped.clone(), piped),
        (false, true) => (words.clone(), words),
        (false, false) => (format!("{words}\n\n<stdin>\n{}\n</stdin>", piped.trim_end_matches('\n')), words),
    };
    Ok(Input { prompt, written })
}

/// A prompt that is no command of a chat, whatever it begins with.
pub(super) fn text_alone(prompt: String) -> String {
    if prompt.trim_start().starts_with('/') { format!("Task: {prompt}") } else { prompt }
}

/// The lines of stdin as they come, from a thread of their own. A line above the limit ends the conversation.
pub(super) fn lines() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(WAITING_LINES);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(MAX_PROMPT_BYTES as u64 + 1).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) || line.len() > MAX_PROMPT_BYTES {
                return;
            }
            if sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads stdin to its end, on a thread of its own so that the wait has a deadline.
fn read_stdin(timeout: Option<Duration>) -> Result<String, Failure> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = MAX_PROMPT_BYTES as u64 + 1;
        let read = std::io::stdin().lock().take(limit).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let first = timeout.map_or(STDIN_NOTICE_DELAY, |timeout| timeout.min(STDIN_NOTICE_DELAY));
    let read = match receiver.recv_timeout(first) {
        Err(RecvTimeoutError::Timeout) => {
            crate::output::note(
                "dragoman: waiting for the end of stdin; use </dev/null if there is no input.",
            );
            match timeout {
                Some(timeout) => receiver.recv_timeout(timeout.saturating_sub(first)).ok(),
                None => receiver.recv().ok(),
            }
        }
        received => received.ok(),
    };
    let Some(read) = read else { return Err(Failure::user("Stdin did not end in time.")) };
    let bytes = read.map_err(|error| Failure::user(format!("Stdin cannot be read: {error}.")))?;
    if bytes.len() > MAX_PROMPT_BYTES {
        let mebibytes = MAX_PROMPT_BYTES >> 20;
        return Err(Failure::user(format!("The text on stdin is larger than {mebibytes} MiB."))
            .hint("Pipe a part of it, or let the model read a file."));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::user("The text on stdin is not UTF-8.").hint("Attach other files with --image.")
    })
}

/// Files and folders that `@path` words of the prompt name. A word without such a file stays plain text.
pub(super) fn mentioned(prompt: &str, folder: &Path) -> Vec<Context> {
    let words = prompt.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let mut contexts: Vec<Context> = Vec::new();
    for word in words {
        let bare = word.trim_end_matches([',', '.', '?', '!', ':', ';', ')']);
        let path = [word, bare].into_iter().map(|name| folder.join(name)).find(|path| path.exists());
        let context = match path {
            Some(path) if path.is_dir() => Context::Directory { path },
            Some(path) => Context::File { path, lines: None },
            None => continue,
        };
        if !contexts.contains(&context) {
            contexts.push(context);
        }
    }
    contexts
}

/// `@path` words that look like a path and name nothing.
pub(super) fn missing(prompt: &str, folder: &Path) -> Vec<String> {
    let words = prompt.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let bare = words.map(|word| word.trim_end_matches([',', '.', '?', '!', ':', ';', ')']));
    let is_missing = |word: &&str| word.contains(['/', '.']) && !folder.join(word).exists();
    bare.filter(is_missing).map(str::to_owned).collect()
}

/// A file that the command line names: an image, or text.
pub(super) fn attachment(path: &PathBuf) -> Result<Context, Failure> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| Failure::user(format!("{shown} cannot be read: {error}."));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(Failure::user(format!("{shown} is larger than {} MiB.", MAX_IMAGE_BYTES >> 20)));
    }
    if let Some(image) = image(&bytes) {
        return Ok(image);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Context::Text { name: shown.to_string(), text }),
        Err(_) => Err(Failure::user(format!("{shown} is neither text nor a PNG, JPEG, GIF or WebP image."))),
    }
}

/// The bytes of an image that models read.
pub(super) fn image(bytes: &[u8]) -> Option<Context> {
    let mime = image_type(bytes).filter(|_| bytes.len() as u64 <= MAX_IMAGE_BYTES)?.to_owned();
    let data = base64::engine::general_purpose::STANDARD.encode(bytes).into();
    Some(Context::Image { mime, data })
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
