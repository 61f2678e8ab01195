//! Owns the threads that share one piece of arithmetic. Must not know what is computed.
//! Invariants: a waiting thread sleeps in the kernel and never spins; `run` returns only when no worker still
//! holds the work it lent them; with no workers nothing is spawned and nothing is locked.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
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
}

#[derive(Default)]
struct PoolState {
    job: Option<Job>,
    number: u64,
    active: usize,
    closing: bool,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const Work<'static>,
    pieces: usize,
    step: usize,
}

// SAFETY: the work is `Sync`, and `run` outlives every use of the pointer.
unsafe impl Send for Job {}

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
            state.number += 1;
        }
        self.shared.wake.notify_all();
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
        self.shared.lock().closing = true;
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
        let mut state = self.0.lock();
        state.job = None;
        while state.active > 0 {
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Counts a worker out when it is done, also when its piece panics.
struct Leave<'a>(&'a PoolShared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        if state.active == 0 {
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
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            if let Some(job) = state.job.filter(|_| state.number != *seen) {
                *seen = state.number;
                state.active += 1;
                return Some(job);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
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
