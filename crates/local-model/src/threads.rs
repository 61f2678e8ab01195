//! Owns the threads that share one piece of arithmetic. Must not know what is computed.
//! Invariants: a waiting thread looks for work for at most `PATIENCE` and then sleeps in the kernel; `run` returns only
//! when no worker still holds the work it lent them; with no workers nothing is spawned and nothing is locked.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::kernels::attention::Scratch;
use crate::kernels::panel::Panel;

/// The buffers one thread works with.
#[derive(Default)]
pub(crate) struct WorkBuffers {
    pub panel: Panel,
    pub attention: Scratch,
}

/// Work cut into numbered pieces that may be done in any order by any thread.
pub(crate) type Work<'a> = dyn Fn(Range<usize>, &mut WorkBuffers) + Sync + 'a;

/// The calling thread and its workers.
pub(crate) struct ThreadPool {
    buffers: WorkBuffers,
    shared: Arc<PoolShared>,
    handles: Vec<std::thread::JoinHandle<()>>,
    worked: Duration,
    waited: Duration,
    /// Passes for which the workers are left asleep, because the machine is busy.
    resting: u32,
}

struct PoolShared {
    state: Mutex<PoolState>,
    wake: Condvar,
    done: Condvar,
    next: AtomicUsize,
    /// Counts the jobs; changed while the state is locked, read without.
    number: AtomicU64,
    /// Workers that hold the job; changed while the state is locked, read without.
    active: AtomicUsize,
}

#[derive(Default)]
struct PoolState {
    job: Option<Job>,
    closing: bool,
    /// Workers that sleep.
    sleeping: usize,
    /// The caller sleeps until no worker holds the job.
    is_awaited: bool,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const Work<'static>,
    pieces: usize,
    step: usize,
}

// SAFETY: the work is `Sync`, and `run` outlives every use of the pointer.
unsafe impl Send for Job {}

/// How long a thread looks for what it waits for before it sleeps. Being woken takes the kernel longer than most pieces of
/// a pass take to compute, and there are hundreds of them in each token.
const PATIENCE: Duration = Duration::from_micros(300);
/// Looks between two questions for the time.
const LOOKS: u32 = 64;

/// Passes to go alone after one in which the workers were waited for too long.
const REST: u32 = 64;

impl ThreadPool {
    /// `threads` counts the calling one.
    pub(crate) fn new(threads: usize) -> ThreadPool {
        let shared = Arc::new(PoolShared {
            state: Mutex::default(),
            wake: Condvar::new(),
            done: Condvar::new(),
            next: AtomicUsize::new(0),
            number: AtomicU64::new(0),
            active: AtomicUsize::new(0),
        });
        let start = |index: usize| {
            let shared = Arc::clone(&shared);
            // A thread that cannot be had only means less company.
            std::thread::Builder::new()
                .name(format!("local-model-{index}"))
                .spawn(move || shared.run_worker())
                .ok()
        };
        let handles = (1..threads).filter_map(start).collect();
        ThreadPool {
            buffers: WorkBuffers::default(),
            shared,
            handles,
            worked: Duration::ZERO,
            waited: Duration::ZERO,
            resting: 0,
        }
    }

    /// Does all pieces and returns when they are done.
    pub(crate) fn run(&mut self, pieces: usize, work: &Work) {
        if self.handles.is_empty() || self.resting > 0 || pieces < 2 {
            return work(0..pieces, &mut self.buffers);
        }
        let started = Instant::now();
        let step = (pieces / (4 * (self.handles.len() + 1))).max(1);
        // SAFETY: only the lifetime is changed; `withdraw` below waits until no worker holds the pointer.
        let work = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) };
        let job = Job { work, pieces, step };
        self.shared.next.store(0, Ordering::Relaxed);
        {
            let mut state = self.shared.lock();
            state.job = Some(job);
            self.shared.number.fetch_add(1, Ordering::Release);
            if state.sleeping > 0 {
                self.shared.wake.notify_all();
            }
        }
        let withdraw = Withdraw(&self.shared);
        self.shared.help(job, &mut self.buffers);
        let finished = Instant::now();
        drop(withdraw);
        self.waited += finished.elapsed();
        self.worked += started.elapsed();
    }

    /// Called after each pass: when the workers cost more than they bring, go alone for a while.
    pub(crate) fn review(&mut self) {
        self.resting = self.resting.saturating_sub(1);
        if self.waited * 4 > self.worked {
            self.resting = REST;
        }
        self.worked = Duration::ZERO;
        self.waited = Duration::ZERO;
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.closing = true;
            // Those that look for work find that there is something.
            self.shared.number.fetch_add(1, Ordering::Release);
        }
        self.shared.wake.notify_all();
        for handle in self.handles.drain(..) {
            // A worker that panicked has nothing left to say.
            let _ = handle.join();
        }
    }
}

/// Takes the job back and waits for the workers that hold it, also when the caller's piece panics.
struct Withdraw<'a>(&'a PoolShared);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.0.lock().job = None;
        let is_idle = || self.0.active.load(Ordering::Acquire) == 0;
        if look_for(is_idle) {
            return;
        }
        let mut state = self.0.lock();
        state.is_awaited = true;
        while !is_idle() {
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_awaited = false;
    }
}

/// Counts a worker out when it is done, also when its piece panics.
struct Leave<'a>(&'a PoolShared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let state = self.0.lock();
        let before = self.0.active.fetch_sub(1, Ordering::Release);
        if before == 1 && state.is_awaited {
            self.0.done.notify_one();
        }
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_worker(&self) {
        let mut buffers = WorkBuffers::default();
        let mut seen = 0;
        while let Some(job) = self.next_job(&mut seen) {
            let _leave = Leave(self);
            self.help(job, &mut buffers);
        }
    }

    fn next_job(&self, seen: &mut u64) -> Option<Job> {
        look_for(|| self.number.load(Ordering::Acquire) != *seen);
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            let number = self.number.load(Ordering::Acquire);
            let is_new = number != *seen;
            *seen = number;
            if let Some(job) = state.job.filter(|_| is_new) {
                self.active.fetch_add(1, Ordering::Relaxed);
                return Some(job);
            }
            // A job that came and went before it was seen: the next one is near.
            if is_new {
                drop(state);
                look_for(|| self.number.load(Ordering::Acquire) != number);
                state = self.lock();
                continue;
            }
            state.sleeping += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
    }

    fn help(&self, job: Job, buffers: &mut WorkBuffers) {
        loop {
            let first = self.next.fetch_add(job.step, Ordering::Relaxed);
            if first >= job.pieces {
                return;
            }
            // SAFETY: `run` does not return, so the work lives, until this thread has left.
            unsafe { (*job.work)(first..job.pieces.min(first + job.step), buffers) }
        }
    }
}

/// Looks until something is so, for a moment; says whether it is.
fn look_for(is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if is_so() {
                return true;
            }
            std::hint::spin_loop();
        }
        if begun.elapsed() > PATIENCE {
            return false;
        }
    }
}
