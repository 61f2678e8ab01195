//! Real children, watched from outside by /proc. Every wait has a deadline, so a hang is a failure.
#![allow(clippy::disallowed_methods, reason = "tests start and watch processes of their own")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![cfg(target_os = "linux")]

mod ends;
mod outlive;
mod runs;
mod watch;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Nobody stops it.
fn unstopped() -> CancellationToken {
    CancellationToken::new()
}

/// The state letter of a process, or `None` when there is no such process.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

/// Neither running nor waiting to be reaped by us; an orphan's zombie is init's affair.
fn is_gone(pid: u32) -> bool {
    match state(pid) {
        None => true,
        Some('Z') => parents(pid).is_none_or(|parent| parent != std::process::id()),
        Some(_) => false,
    }
}

fn parents(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

async fn within(limit: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if happened() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The process ids that a script wrote into a file, one a line, once there are `count`.
async fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter_map(|line| line.trim().parse().ok()).collect()
    };
    assert!(within(Duration::from_secs(5), || read().len() >= count).await, "the script named its processes");
    read()
}

/// Our own children that wait to be reaped.
fn zombies() -> Vec<u32> {
    let own = std::process::id();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| state(*pid) == Some('Z') && parents(*pid) == Some(own))
        .collect()
}
