//! Watching a process that is not ours, and the signals that ask us to end.

use std::time::Duration;

use process::{ParentEnd, ShutdownSignal, Spawn, shutdown_signal, watch_parent};
use tokio::time::timeout;

#[tokio::test]
async fn the_death_of_a_watched_process_is_noticed() {
    let child = Spawn::new("sleep").arg("60").start().await.unwrap();
    let watch = tokio::spawn(watch_parent(child.pid()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!watch.is_finished());
    child.stop().await;
    assert_eq!(timeout(Duration::from_secs(1), watch).await.unwrap().unwrap(), ParentEnd::Died);
}

#[tokio::test]
async fn the_death_is_noticed_before_anybody_reaps() {
    let mut child = std::process::Command::new("sleep").arg("0.2").spawn().unwrap();
    let watch = timeout(Duration::from_secs(2), watch_parent(child.id())).await;
    assert_eq!(watch, Ok(ParentEnd::Died));
    assert_eq!(timeout(Duration::from_secs(2), watch_parent(child.id())).await, Ok(ParentEnd::NotFound));
    child.wait().unwrap();
}

#[tokio::test]
async fn a_process_that_is_not_there_is_said_so() {
    for pid in [0, u32::MAX, 4_194_305] {
        assert_eq!(
            timeout(Duration::from_secs(1), watch_parent(pid)).await,
            Ok(ParentEnd::NotFound),
            "{pid}"
        );
    }
}

#[tokio::test]
async fn signals_that_ask_us_to_end() {
    let rows = [
        ("TERM", ShutdownSignal::Terminate),
        ("INT", ShutdownSignal::Interrupt),
        ("HUP", ShutdownSignal::HangUp),
    ];
    for (name, want) in rows {
        let asked = shutdown_signal().unwrap();
        let own = std::process::id().to_string();
        Spawn::new("kill").arg(format!("-{name}")).arg(own).start().await.unwrap().wait().await;
        assert_eq!(timeout(Duration::from_secs(2), asked).await, Ok(want));
    }
}
