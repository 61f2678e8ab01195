//! What commands print: both ends in memory for the model, everything else in a private file of the chat.
//!
//! Owns the folder of such files. Must not know commands or jobs. Invariants: memory is bounded; a file is for its owner
//! alone, belongs to one chat and goes with it; no two chats share a folder.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use domain::{ItemId, SessionId};
use platform::OpenOptionsExt;

/// Bytes of one output that are kept in its file.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes of all files of a chat; the oldest make room.
const CHAT_BYTES: u64 = 256 << 20;
/// Longer names of folders are not possible everywhere.
const LONGEST_NAME: usize = 200;

/// Where the outputs of chats are kept.
#[derive(Clone, Debug, Default)]
pub struct OutputFolder(Option<PathBuf>);

impl OutputFolder {
    /// The folder is made when it is first needed.
    pub fn new(folder: PathBuf) -> Self {
        Self(Some(folder))
    }

    /// The folder of one chat; `None` where nothing is kept.
    pub fn of(&self, session: &SessionId) -> Option<PathBuf> {
        let name = folder_name(session.as_str());
        Some(self.0.as_ref()?.join(name?))
    }

    /// Deletes what was kept for a chat.
    pub fn forget(&self, session: &SessionId) -> io::Result<()> {
        let Some(folder) = self.of(session) else { return Ok(()) };
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// The file for the output of a call.
    pub(crate) fn file_of(&self, session: &SessionId, call: ItemId) -> Option<PathBuf> {
        Some(self.of(session)?.join(format!("call-{}.txt", call.0)))
    }
}

/// Letters that a file system could take for others are written as numbers.
fn folder_name(id: &str) -> Option<String> {
    let mut name = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(name, "_{byte:02x}")),
        }
    }
    (!name.is_empty() && name.len() <= LONGEST_NAME).then_some(name)
}

/// The output of one command.
#[derive(Debug)]
pub(crate) struct Output {
    /// Bytes that one result may hold.
    limit: usize,
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
    /// How far the model has read.
    read: u64,
    place: Option<PathBuf>,
    kept: Kept,
    /// Bytes in the file.
    stored: u64,
}

#[derive(Debug)]
enum Kept {
    /// Everything fits into a result.
    Nothing,
    Open(File),
    /// The file takes no more.
    Full,
}

impl Output {
    pub(crate) fn new(limit: usize, place: Option<PathBuf>) -> Self {
        let (first, last) = (Vec::new(), VecDeque::new());
        Self { limit, first, last, total: 0, read: 0, place, kept: Kept::Nothing, stored: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.first.len()).min(bytes.len());
        self.first.extend_from_slice(&bytes[..room]);
        let skipped = bytes.len().saturating_sub(self.limit);
        self.last.extend(&bytes[skipped..]);
        let over = self.last.len().saturating_sub(self.limit);
        self.last.drain(..over);
        self.total += bytes.len() as u64;
        if self.total > self.limit as u64 {
            self.store(&bytes[room..]);
        }
    }

    /// Everything so far, as a result shows it; the model has read it then.
    pub(crate) fn whole(&mut self) -> String {
        self.read = self.total;
        self.text()
    }

    /// The same for people; the model has not read it.
    pub(crate) fn text(&self) -> String {
        if self.total <= self.first.len() as u64 {
            return String::from_utf8_lossy(&self.first).into_owned();
        }
        let half = self.limit / 2;
        let head = &self.first[..whole_characters(&self.first[..half])];
        let tail = self.last_bytes(half as u64);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let lines = head.iter().filter(|byte| **byte == b'\n').count();
        let place = self.describe_file(Some(lines));
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(&tail));
        format!("{head}\n[… {left_out} bytes left out{place} …]\n{tail}")
    }

    /// What came since the model last read.
    pub(crate) fn take_new(&mut self) -> String {
        let new = self.total - self.read;
        self.read = self.total;
        let shown = self.last_bytes(new.min(self.limit as u64));
        let left_out = new - shown.len() as u64;
        let text = String::from_utf8_lossy(&shown).into_owned();
        if left_out == 0 {
            return text;
        }
        format!("[{left_out} bytes left out{}]\n{text}", self.describe_file(None))
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The newest bytes, without half a character at their beginning.
    fn last_bytes(&self, count: u64) -> Vec<u8> {
        let from = self.last.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        let is_cut = self.total > (self.last.len() - from) as u64;
        let bytes = self.last.iter().skip(from).copied();
        let continuation = |byte: &u8| byte & 0xC0 == 0x80;
        let cut = if is_cut { bytes.clone().take(3).take_while(continuation).count() } else { 0 };
        bytes.skip(cut).collect()
    }

    fn describe_file(&self, lines: Option<usize>) -> String {
        let (Some(path), Kept::Open(_) | Kept::Full) = (&self.place, &self.kept) else {
            return String::new();
        };
        let how_much = if self.stored == self.total {
            format!("all {} bytes are", self.total)
        } else {
            format!("the first {} of {} bytes are", self.stored, self.total)
        };
        let from = lines.map(|lines| format!(" from line_offset {lines} on")).unwrap_or_default();
        format!("; {how_much} in {}: read_file{from}, or grep", path.display())
    }

    /// Writes bytes that no longer fit into memory.
    fn store(&mut self, rest: &[u8]) {
        if let (Kept::Nothing, Some(place)) = (&self.kept, &self.place) {
            match create(place) {
                Ok(file) => self.kept = Kept::Open(file),
                // The result then says how much is left out, as it does where nothing is kept.
                Err(_) => {
                    self.place = None;
                    return;
                }
            }
            let first = std::mem::take(&mut self.first);
            self.append(&first);
            self.first = first;
        }
        self.append(rest);
    }

    fn append(&mut self, bytes: &[u8]) {
        let Kept::Open(file) = &mut self.kept else { return };
        let room = usize::try_from(FILE_BYTES - self.stored).unwrap_or(0).min(bytes.len());
        let is_written = file.write_all(&bytes[..room]).is_ok();
        if is_written {
            self.stored += room as u64;
        }
        // Nothing follows a gap. A full disk keeps what is there.
        if !is_written || room < bytes.len() {
            self.kept = Kept::Full;
        }
    }
}

/// A new file in the folder of its chat, with room for it.
fn create(place: &Path) -> io::Result<File> {
    let folder = place.parent().unwrap_or(Path::new("/"));
    platform::create_private_folder(folder)?;
    make_room(folder);
    OpenOptions::new().write(true).create(true).truncate(true).private().no_follow().open(place)
}

/// Deletes the oldest files of a chat that has too many.
fn make_room(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total + FILE_BYTES <= CHAT_BYTES {
            break;
        }
        total -= size;
        let _ = fs::remove_file(path);
    }
}

/// The length of `bytes` without a character that the end cuts in two.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(limit: usize, place: Option<PathBuf>, pieces: &[&str]) -> Output {
        let mut output = Output::new(limit, place);
        pieces.iter().for_each(|piece| output.push(piece.as_bytes()));
        output
    }

    #[test]
    fn both_ends_are_shown_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        for (limit, pieces, shown) in [
            (8, &["ab"][..], "ab"),
            (8, &["abcd", "efgh"], "abcdefgh"),
            (8, &["abcdefghi"], "abcd\n[… 1 bytes left out …]\nfghi"),
            (8, &["ab", "cdefgh", "ijk", "l"], "abcd\n[… 4 bytes left out …]\nijkl"),
            (8, &["aäöüßxyéz"], "aä\n[… 7 bytes left out …]\nyéz"),
        ] {
            assert_eq!(printed(limit, None, pieces).text(), shown);
            let file = folder.path().join(format!("{}.txt", pieces.len()));
            let output = printed(limit, Some(file.clone()), pieces);
            let whole = pieces.concat();
            let is_kept = whole.len() > limit;
            assert_eq!(fs::read_to_string(&file).ok(), is_kept.then_some(whole.clone()), "{shown}");
            assert_eq!(output.text().contains(&format!("all {} bytes are in", whole.len())), is_kept);
            let _ = fs::remove_file(file);
        }
    }

    #[test]
    fn what_was_read_is_not_read_again() {
        let mut output = printed(8, None, &["one\n"]);
        assert_eq!((output.take_new().as_str(), output.take_new().as_str()), ("one\n", ""));
        output.push(b"two\nthree\n");
        assert_eq!(output.take_new(), "[2 bytes left out]\no\nthree\n");
        output.push(b"x");
        output.whole();
        assert_eq!(output.take_new(), "");
    }

    #[test]
    fn no_two_chats_share_a_folder() {
        let folder = OutputFolder::new("/data/outputs".into());
        let ids = ["c", "C", "_43", "../c", "a/b", "a_b", "a-b", "."];
        let folders: std::collections::HashSet<_> =
            ids.iter().filter_map(|id| folder.of(&SessionId::new(*id))).collect();
        assert_eq!(folders.len(), ids.len());
        assert!(folders.iter().all(|path| path.parent() == Some(Path::new("/data/outputs"))));
        assert_eq!(folder.of(&SessionId::new("x".repeat(300))), None);
        assert_eq!(OutputFolder::default().of(&SessionId::new("c")), None);
    }

    #[test]
    fn the_oldest_files_of_a_chat_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..4 {
            let file = File::create(folder.path().join(format!("call-{number}.txt"))).unwrap();
            // Without blocks on the disk.
            file.set_len(FILE_BYTES).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number)).unwrap();
        }
        drop(printed(1, Some(folder.path().join("call-9.txt")), &["more"]));
        let left = |number: u32| folder.path().join(format!("call-{number}.txt")).exists();
        assert!(!left(0) && left(1) && left(2) && left(3) && left(9));
    }
}
