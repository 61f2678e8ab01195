//! A search through many files: one thread walks in the order of names, some others search what it found.
//!
//! Must not know tools or their input. Invariants: the outcome is that of one thread, whichever thread ends first; no more
//! files are begun once those that were handed out have enough matches.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Files that a thread takes at once.
const BATCH_FILES: usize = 64;
const MAX_THREADS: usize = 8;
/// Batches that wait for each thread.
const WAITING: usize = 4;

/// What was found in one file.
pub(super) struct FoundInFile {
    pub(super) path: PathBuf,
    /// As it is shown.
    pub(super) text: String,
    pub(super) matches: usize,
}

/// The files of one batch that have matches, and files that were left out.
#[derive(Default)]
pub(super) struct FoundInBatch {
    pub(super) files: Vec<FoundInFile>,
    pub(super) left_out: usize,
}

/// After this much, nobody wants more.
pub(super) struct Enough {
    pub(super) matches: usize,
    pub(super) bytes: usize,
}

/// A file that the walk found, and how deep it lies below the start.
pub(super) type WalkedFile = (PathBuf, usize);

/// Searches the files in their order. `searcher` makes the function of each thread.
pub(super) fn search<S>(
    mut files: impl Iterator<Item = WalkedFile>,
    enough: &Enough,
    searcher: impl Fn() -> S,
) -> Vec<FoundInBatch>
where
    S: FnMut(&[WalkedFile]) -> FoundInBatch + Send,
{
    let first: Vec<WalkedFile> = files.by_ref().take(BATCH_FILES).collect();
    let is_small = first.len() < BATCH_FILES;
    let found = searcher()(&first);
    let shared = Shared::new(enough);
    shared.count(&found);
    if is_small || shared.is_enough() {
        return vec![found];
    }
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS));
    let mut all: Vec<(usize, FoundInBatch)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (shared, searcher) = (&shared, searcher());
                scope.spawn(move || shared.work(searcher))
            })
            .collect();
        for number in 1.. {
            let batch: Vec<WalkedFile> = files.by_ref().take(BATCH_FILES).collect();
            if batch.is_empty() || shared.is_enough() {
                break;
            }
            shared.hand_out(number, batch, threads * WAITING);
        }
        shared.end();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    all.push((0, found));
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, found)| found).collect()
}

struct Shared<'a> {
    queue: Mutex<Queue>,
    changed: Condvar,
    matches: AtomicUsize,
    bytes: AtomicUsize,
    is_enough: AtomicBool,
    enough: &'a Enough,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(usize, Vec<WalkedFile>)>,
    is_ended: bool,
}

impl<'a> Shared<'a> {
    fn new(enough: &'a Enough) -> Self {
        let (matches, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_enough = AtomicBool::new(false);
        Self { queue: Mutex::default(), changed: Condvar::new(), matches, bytes, is_enough, enough }
    }

    fn is_enough(&self) -> bool {
        self.is_enough.load(Ordering::Relaxed)
    }

    /// Everything that was handed out lies before everything that was not, so counting needs no order.
    fn count(&self, found: &FoundInBatch) {
        let add = |counter: &AtomicUsize, more: usize| counter.fetch_add(more, Ordering::Relaxed) + more;
        let matches = add(&self.matches, found.files.iter().map(|file| file.matches).sum());
        let bytes = add(&self.bytes, found.files.iter().map(|file| file.text.len()).sum());
        if matches >= self.enough.matches || bytes > self.enough.bytes {
            self.is_enough.store(true, Ordering::Relaxed);
        }
    }

    fn work(&self, mut search: impl FnMut(&[WalkedFile]) -> FoundInBatch) -> Vec<(usize, FoundInBatch)> {
        let mut all = Vec::new();
        while let Some((number, batch)) = self.next() {
            let found = search(&batch);
            self.count(&found);
            if !found.files.is_empty() || found.left_out > 0 {
                all.push((number, found));
            }
        }
        all
    }

    fn hand_out(&self, number: usize, batch: Vec<WalkedFile>, most: usize) {
        let mut queue = self.lock();
        while queue.waiting.len() >= most {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.waiting.push_back((number, batch));
        drop(queue);
        self.changed.notify_all();
    }

    /// `None`: the walk has ended and nothing waits.
    fn next(&self) -> Option<(usize, Vec<WalkedFile>)> {
        let mut queue = self.lock();
        loop {
            if let Some(batch) = queue.waiting.pop_front() {
                drop(queue);
                self.changed.notify_all();
                return Some(batch);
            }
            if queue.is_ended {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self) {
        self.lock().is_ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third file has one match of ten bytes.
    fn numbers(count: usize, matches: usize, slow: usize) -> (Vec<String>, usize) {
        let begun = AtomicUsize::new(0);
        let files = (0..count).map(|number| (PathBuf::from(format!("{number:05}")), 1));
        let searcher = || {
            |batch: &[WalkedFile]| {
                begun.fetch_add(batch.len(), Ordering::Relaxed);
                if batch.iter().any(|(path, _)| path.to_str() == Some(&format!("{slow:05}"))) {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                let is_third = |path: &PathBuf| path.to_str().unwrap().parse::<usize>().unwrap() % 3 == 0;
                let found = batch.iter().filter(|(path, _)| is_third(path));
                let files = found.map(|(path, _)| FoundInFile {
                    path: path.clone(),
                    text: format!("{:010}", 0),
                    matches: 1,
                });
                FoundInBatch { files: files.collect(), left_out: 1 }
            }
        };
        let found = search(files, &Enough { matches, bytes: 1 << 20 }, searcher);
        let paths = found.iter().flat_map(|batch| &batch.files).map(|file| file.path.display().to_string());
        (paths.collect(), begun.load(Ordering::Relaxed))
    }

    #[test]
    fn the_outcome_is_in_order_and_complete() {
        for count in [0, 1, BATCH_FILES - 1, BATCH_FILES, BATCH_FILES + 1, 5_000] {
            let expected: Vec<String> = (0..count).step_by(3).map(|number| format!("{number:05}")).collect();
            assert_eq!(numbers(count, usize::MAX, 100), (expected, count), "{count}");
        }
    }

    #[test]
    fn the_first_matches_are_there_although_later_files_are_quicker() {
        let (found, begun) = numbers(200_000, 50, 70);
        let expected: Vec<String> = (0..150).step_by(3).map(|number| format!("{number:05}")).collect();
        assert_eq!(found[..50], expected);
        assert!(begun < 50_000, "{begun} files were searched for 50 matches");
    }
}
