//! Damaged files: whatever is in them, they load or are refused, without a panic and without taking memory that
//! the file does not pay for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use local_model::{Engine, Limits, ModelError, Sampling, Session};

use crate::scale;
use crate::synthetic::{Numbers, Toy};

/// Remembers the largest single request for memory.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// More than any real model needs in one piece: the cache page of a large one.
const TOO_MUCH: usize = 256 << 20;

/// Loads a file and, should it load, asks it something.
fn check(bytes: Vec<u8>, what: &str) -> bool {
    let length = bytes.len();
    let result = std::panic::catch_unwind(move || {
        let engine = Arc::new(Engine::read(Arc::new(bytes))?);
        let prompt = engine.encode("the end", false);
        let mut session = Session::new(engine, Limits { window: 64, threads: 1 });
        session.answer(&prompt, 2, Sampling::default(), &AtomicBool::new(false), |_| {})
    });
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < TOO_MUCH, "{what}: {largest} bytes in one piece for a file of {length}");
    match result {
        Ok(Ok(_) | Err(ModelError::EmptyPrompt)) => false,
        Ok(Err(error)) => {
            let message = error.to_string();
            assert!(message.ends_with('.') && message.len() < 600, "{what}: {message}");
            true
        }
        Err(_) => panic!("{what}: a panic"),
    }
}

#[test]
fn truncated_files_are_refused() {
    let whole = Toy { format: 3, ..Toy::default() }.file().bytes();
    assert!(!check(whole.clone(), "the whole file"));
    let steps = 100 * scale();
    for step in 0..steps {
        let length = whole.len() * step / steps;
        assert!(check(whole[..length].to_vec(), &format!("the first {length} bytes")), "{length} bytes load");
    }
}

#[test]
fn mutated_files_never_panic() {
    let whole = Toy { format: 8, ..Toy::default() }.file().bytes();
    // The directory is where a changed byte does harm; it is about a tenth of the file.
    let directory = whole.windows(21).rposition(|window| window == b"blk.1.ffn_down.weight").unwrap() + 64;
    let mut numbers = Numbers(99);
    let mut refused = 0;
    for round in 0..200 * scale() {
        let mut bytes = whole.clone();
        for _ in 0..1 + numbers.next() % 3 {
            let limit = if numbers.next().is_multiple_of(8) { bytes.len() } else { directory };
            let place = numbers.next() as usize % limit;
            match numbers.next() % 4 {
                0 => bytes[place] ^= 1 << (numbers.next() % 8),
                1 => bytes[place] = numbers.next() as u8,
                2 => {
                    // A hostile length: eight bytes of it.
                    let end = bytes.len().min(place + 8);
                    let huge = (u64::MAX >> (numbers.next() % 64)).to_le_bytes();
                    bytes[place..end].copy_from_slice(&huge[..end - place]);
                }
                _ => {
                    let end = bytes.len().min(place + numbers.next() as usize % 16);
                    bytes.drain(place..end);
                }
            }
        }
        refused += usize::from(check(bytes, &format!("mutation {round}")));
    }
    assert!(refused > 20, "only {refused} were refused: the mutations miss");
}

#[test]
fn hostile_headers_are_refused() {
    let header = |version: u32, tensors: u64, values: u64| {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(values.to_le_bytes());
        bytes
    };
    for (version, tensors, values) in [(3, u64::MAX, 0), (3, 0, u64::MAX), (1, 0, 0), (99, 0, 0), (3, 0, 0)] {
        assert!(check(header(version, tensors, values), "a header alone"));
    }
    for kind in [8u32, 9, 0] {
        let mut bytes = header(3, 0, 1);
        bytes.extend(1u64.to_le_bytes());
        bytes.push(b'k');
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(check(bytes, "an array without end"));
    }
    assert!(check(Vec::new(), "nothing"));
    assert!(check(b"GGML".repeat(100), "another format"));
}
