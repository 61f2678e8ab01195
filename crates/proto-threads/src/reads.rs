//! Text files that the client read, as far as they are remembered.

use std::collections::VecDeque;

use crate::wire::ThreadEntry;

/// How many bytes of file text are remembered for the entries of threads.
const REMEMBERED: usize = 8 << 20;

/// Text files that the client read in its threads, for as long as the connection lasts.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) all: VecDeque<Read>,
    pub(crate) bytes: usize,
}

pub(crate) struct Read {
    pub(crate) thread_id: String,
    pub(crate) at: u64,
    pub(crate) path: String,
    pub(crate) content: String,
}

impl Reads {
    pub(crate) fn remember(&mut self, read: Read) {
        self.bytes += read.content.len();
        self.all.push_back(read);
        while self.bytes > REMEMBERED {
            let Some(oldest) = self.all.pop_front() else { return };
            self.bytes -= oldest.content.len();
        }
    }

    /// The entries of a thread and when they came to be, oldest first.
    pub(crate) fn entries_of(&self, thread_id: &str) -> Vec<(u64, ThreadEntry)> {
        let own = self.all.iter().filter(|read| read.thread_id == thread_id);
        own.map(|read| {
            let (path, content) = (read.path.clone(), read.content.clone());
            (read.at, ThreadEntry::ReadFile { path, content })
        })
        .collect()
    }
}
