//! The names of all files of a workspace, for completing them as the user types.
//!
//! Owns walking in the background, keeping and dropping what was found. Knows nothing of contexts. Invariants: a query
//! never waits for a walk once there has been one; the levels of a large tree are there one by one, the top first; what
//! nobody asks for is not kept.

mod ranking;
mod snapshot;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

pub use snapshot::Snapshot;

/// How old the index may be when a query comes.
const MAX_AGE: Duration = Duration::from_secs(3);
/// How long a query without any answer waits for the first walk.
const FIRST_WALK: Duration = Duration::from_secs(5);
/// How long the first query of a large tree takes where the levels found so far hold its text; the next key finds more.
const FIRST_ANSWER: Duration = Duration::from_millis(5);
/// The same where they hold only its letters.
const FIRST_GUESS: Duration = Duration::from_millis(35);
/// How long nobody must have asked for it to be dropped.
const IDLE: Duration = Duration::from_secs(600);

/// A file or folder that a query found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundPath {
    pub path: PathBuf,
    pub folder: bool,
}

/// The indexes of all workspaces, shared by everybody who asks.
#[derive(Default)]
pub struct Indexes {
    known: Mutex<Vec<Arc<FileIndex>>>,
}

impl Indexes {
    /// The index of these folders; nothing is walked yet.
    pub fn get_or_create(&self, roots: &[PathBuf]) -> Arc<FileIndex> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = known.iter().find(|index| *index.roots == *roots) {
            return index.clone();
        }
        known.retain(|index| !index.is_idle());
        let index = FileIndex::new(roots.into());
        known.push(index.clone());
        index
    }
}

pub struct FileIndex {
    roots: Arc<[PathBuf]>,
    state: Mutex<IndexState>,
    walks: watch::Sender<u64>,
    times: IndexTimes,
    this: Weak<FileIndex>,
}

struct IndexState {
    snapshot: Option<Arc<Snapshot>>,
    /// The snapshot has all of the tree, not only its top.
    is_whole: bool,
    walked_at: Instant,
    used_at: Instant,
    walking: bool,
    watched: bool,
}

/// The times above, shorter in tests.
#[derive(Clone, Copy)]
struct IndexTimes {
    max_age: Duration,
    first_walk: Duration,
    idle: Duration,
}

impl FileIndex {
    pub fn new(roots: Arc<[PathBuf]>) -> Arc<Self> {
        Self::with_times(roots, IndexTimes { max_age: MAX_AGE, first_walk: FIRST_WALK, idle: IDLE })
    }

    fn with_times(roots: Arc<[PathBuf]>, times: IndexTimes) -> Arc<Self> {
        let now = Instant::now();
        let state = IndexState {
            snapshot: None,
            is_whole: false,
            walked_at: now,
            used_at: now,
            walking: false,
            watched: false,
        };
        Arc::new_cyclic(|this| Self {
            roots,
            state: Mutex::new(state),
            walks: watch::Sender::new(0),
            times,
            this: this.clone(),
        })
    }

    /// Starts the first walk, in the background.
    pub fn warm(&self) {
        drop(self.current());
    }

    /// The best matches, best first; the same for the same tree. Empty text: what is nearest to the top.
    pub async fn query(&self, text: &str, limit: usize) -> Vec<FoundPath> {
        let began = Instant::now();
        let mut walks = self.walks.subscribe();
        drop(self.current());
        let mut is_named = text.contains(std::path::is_separator);
        loop {
            walks.mark_unchanged();
            let is_whole = self.lock().is_whole;
            let (mut found, literal) = self.search(text, limit).await;
            if !is_whole && literal < limit && std::mem::take(&mut is_named) {
                let named = self.search_named(text, limit).await;
                if !named.is_empty() {
                    found.retain(|other| !named.contains(other));
                    return named.into_iter().chain(found).take(limit).collect();
                }
            }
            // The better the levels found so far answer, the shorter the wait for the rest.
            let longest = match (literal, found.is_empty()) {
                _ if is_whole || literal >= limit => return found,
                (1.., _) => FIRST_ANSWER,
                (0, false) => FIRST_GUESS,
                (0, true) => self.times.first_walk,
            };
            let rest = longest.saturating_sub(began.elapsed());
            if rest.is_zero() {
                return found;
            }
            let _ = tokio::time::timeout(rest, walks.changed()).await;
        }
    }

    /// The matches so far, and how many of them hold the text as it is.
    async fn search(&self, text: &str, limit: usize) -> (Vec<FoundPath>, usize) {
        let Some(snapshot) = self.lock().snapshot.clone() else { return (Vec::new(), 0) };
        let text = text.to_owned();
        let search = move || snapshot.search_and_count(&text, limit);
        tokio::task::spawn_blocking(search).await.unwrap_or_default()
    }

    /// The matches in the folder that the text names, which the levels found so far may not reach.
    async fn search_named(&self, text: &str, limit: usize) -> Vec<FoundPath> {
        let (roots, text) = (self.roots.clone(), text.to_owned());
        let search = tokio::task::spawn_blocking(move || {
            let (mut found, literal) = Snapshot::walk_named(&roots, &text).search_and_count(&text, limit);
            found.truncate(literal);
            found
        });
        let found = tokio::time::timeout(self.times.first_walk, search).await;
        found.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// What there is now; walks again where it is old or missing.
    fn current(&self) -> Option<Arc<Snapshot>> {
        let mut state = self.lock();
        state.used_at = Instant::now();
        let old = state.snapshot.is_none() || state.walked_at.elapsed() > self.times.max_age;
        if old && !state.walking {
            state.walking = true;
            self.walk();
        }
        if !state.watched {
            state.watched = true;
            tokio::spawn(drop_when_idle(self.this.clone(), self.times.idle));
        }
        state.snapshot.clone()
    }

    fn walk(&self) {
        let this = self.this.clone();
        let roots = self.roots.clone();
        tokio::task::spawn_blocking(move || {
            let has_any = this.upgrade().is_some_and(|index| index.lock().snapshot.is_some());
            if !has_any {
                let publish = |snapshot, is_whole| {
                    let index = this.upgrade();
                    index.map(|index| index.publish(snapshot, is_whole)).is_some()
                };
                if Snapshot::walk_top(&roots, publish) {
                    return;
                }
            }
            let snapshot = Snapshot::walk(&roots);
            let Some(index) = this.upgrade() else { return };
            index.publish(snapshot, true);
        });
    }

    fn publish(&self, snapshot: Snapshot, is_whole: bool) {
        let mut state = self.lock();
        state.snapshot = Some(Arc::new(snapshot));
        state.is_whole = is_whole;
        state.walked_at = Instant::now();
        state.walking = !is_whole;
        drop(state);
        self.walks.send_modify(|count| *count += 1);
    }

    fn is_idle(&self) -> bool {
        let state = self.lock();
        state.snapshot.is_none() && !state.walking
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn drop_when_idle(index: Weak<FileIndex>, idle: Duration) {
    let mut rest = idle;
    loop {
        tokio::time::sleep(rest).await;
        let Some(index) = index.upgrade() else { return };
        let mut state = index.lock();
        rest = idle.saturating_sub(state.used_at.elapsed());
        if rest.is_zero() && !state.walking {
            state.snapshot = None;
            state.is_whole = false;
            state.watched = false;
            return;
        }
        rest = rest.max(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(idle: u64) -> (tempfile::TempDir, Arc<FileIndex>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one.rs"), "").unwrap();
        let times = IndexTimes {
            max_age: Duration::from_millis(50),
            first_walk: Duration::from_secs(5),
            idle: Duration::from_millis(idle),
        };
        let index = FileIndex::with_times(vec![folder.path().to_owned()].into(), times);
        (folder, index)
    }

    #[tokio::test]
    async fn the_first_query_waits_and_later_ones_see_new_files() {
        let (folder, index) = index(60_000);
        assert_eq!(index.query("one", 5).await.len(), 1);
        std::fs::write(folder.path().join("two.rs"), "").unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while index.query("two", 5).await.is_empty() {
            assert!(Instant::now() < deadline, "the new file is never found");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A tree of more files than are found at once: its top is there first, then all of it.
    #[tokio::test]
    async fn the_top_of_a_large_tree_comes_first() {
        let (folder, index) = index(60_000);
        for number in 0..50 {
            let inner = folder.path().join(format!("a/b/c{number:02}"));
            std::fs::create_dir_all(&inner).unwrap();
            (0..60).for_each(|file| std::fs::write(inner.join(format!("f{number}_{file}.rs")), "").unwrap());
        }
        let mut levels = Vec::new();
        let is_whole = Snapshot::walk_top(&index.roots, |level, is_whole| {
            levels.push((level, is_whole));
            true
        });
        assert!(!is_whole && levels.iter().all(|(_, is_whole)| !is_whole), "it is too large for that");
        let lengths: Vec<usize> = levels.iter().map(|(level, _)| level.len()).collect();
        assert_eq!(lengths[..3], [2, 3, 53], "one level after the other");
        assert!(levels.iter().all(|(level, _)| level.search("one.rs", 5).len() == 1), "the top is in each");
        assert_eq!(index.query("one.rs", 5).await.len(), 1);
        assert_eq!(index.query("f49_59.rs", 5).await.len(), 1, "a miss waits for the rest");
        assert_eq!(index.query("nothing_like_it", 5).await.len(), 0);
    }

    /// A path that is typed from its root on is found although the walk has not come there.
    #[tokio::test]
    async fn a_named_folder_is_read_before_the_walk_reaches_it() {
        let (folder, index) = index(60_000);
        let write = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        (0..30).for_each(|number| write(&format!("part_{number}/Deep/file_{number}.rs")));
        write("part_29/Deep/file_290.rs");
        write("part_29/Deep/build/file_29.o");
        write(".gitignore");
        std::fs::write(folder.path().join(".gitignore"), "build/\n").unwrap();
        // No walk ends: only the first level is there.
        {
            let mut state = index.lock();
            let top = Snapshot::from_paths(folder.path().to_owned(), vec![("part_29".to_owned(), true)]);
            (state.snapshot, state.walking) = (Some(Arc::new(top)), true);
        }
        let root = folder.path().to_str().unwrap();
        for (text, expected) in [
            ("part_29/deep/file_29", &["part_29/Deep/file_29.rs", "part_29/Deep/file_290.rs"][..]),
            ("./part_3/Deep/", &["part_3/Deep/file_3.rs"]),
            (&format!("{root}/part_7/deep/F"), &["part_7/Deep/file_7.rs"]),
            ("part_29/", &["part_29/Deep"]),
        ] {
            let found = index.query(text, 10).await;
            let expected: Vec<PathBuf> = expected.iter().map(|path| folder.path().join(path)).collect();
            let paths: Vec<PathBuf> = found.into_iter().map(|found| found.path).collect();
            assert_eq!(paths, expected, "{text}");
        }
        for text in ["part_29/deep/build/file", "../", "part_29/../part_29/d", "//", "/"] {
            assert!(Snapshot::walk_named(&index.roots, text).is_empty(), "{text}");
        }
    }

    #[tokio::test]
    async fn what_is_idle_is_dropped_and_comes_back() {
        let (_folder, index) = index(100);
        assert_eq!(index.query("one", 5).await.len(), 1);
        let deadline = Instant::now() + Duration::from_secs(10);
        while index.lock().snapshot.is_some() {
            assert!(Instant::now() < deadline, "it is never dropped");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(index.query("one", 5).await.len(), 1);
    }

    #[tokio::test]
    async fn the_same_folders_share_one_index() {
        let indexes = Indexes::default();
        let (one, other) = (indexes.get_or_create(&["/a".into()]), indexes.get_or_create(&["/a".into()]));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &indexes.get_or_create(&["/b".into()])));
    }
}
