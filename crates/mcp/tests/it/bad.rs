//! Servers that misbehave on the wire: their users notice nothing but, at worst, one failed call.

use super::*;

#[tokio::test]
async fn floods_and_garbage_do_no_harm() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("flood", "flood"), ("garbage", "garbage")]);
    for name in ["garbage", "flood"] {
        let running = reaches(&servers, name, ServerStatus::Running).await;
        assert_eq!(running.tools.len(), 18);
        for _ in 0..20 {
            echoes(&servers, name).await;
        }
    }
    assert!(resident() < 400 << 20, "{} bytes are held", resident());
    servers.shutdown().await;
    assert!(["flood", "garbage"].iter().flat_map(|name| bench.pids(name)).all(is_gone));
}

#[tokio::test]
async fn a_message_over_the_limit_fails_its_call_alone() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "good")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    let result = call(&servers, "s__giant", json!({})).await;
    assert!(result.error && said(&result.parts).contains("is too large"), "{:.300}", said(&result.parts));
    echoes(&servers, "s").await;
}

/// Memory of this process, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}
