//! Servers that misbehave on the wire: their users notice nothing but, at worst, one failed call.

use super::*;

#[tokio::test]
async fn floods_and_garbage_do_no_harm() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("flood", "flood"), ("garbage", "garbage")]);
    for name in ["garbage", "flood"] {
        let running = reaches(&servers, name, ServerStatus::Running).await;
        assert_eq!(running.tools.len(), 19);
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

/// Answers that are nearly right: bytes are changed, cut out and repeated.
#[tokio::test]
async fn random_answers_end_every_call_and_leak_nothing() {
    let bench = Bench::new();
    let short = Duration::from_millis(1500);
    let options = Options {
        start_timeout: short,
        probe_timeout: short,
        call_timeout: Duration::from_millis(300),
        ..bench.options()
    };
    let names: Vec<(String, String)> =
        (0..8).map(|seed| (format!("f{seed}"), format!("fuzz-{seed}"))).collect();
    let modes: Vec<(&str, &str)> = names.iter().map(|(name, mode)| (name.as_str(), mode.as_str())).collect();
    let servers = bench.with_options(&modes, options);
    let is_settled = || servers.servers().iter().all(|server| server.status != ServerStatus::Starting);
    assert!(within(LONG, is_settled).await, "each has answered or failed");
    for tool in servers.tools() {
        let name = tool.spec().offered_name();
        if ["echo", "structured", "ask", "sample", "read_mcp_resource"]
            .iter()
            .all(|known| !name.ends_with(known))
        {
            continue;
        }
        let port = Port::new(Some(Answer::Cancelled));
        let run = tool.run(invocation(json!({"uri": "note://1"}), port.clone(), CancellationToken::new()));
        let result = tokio::time::timeout(LONG, run).await.unwrap_or_else(|_| panic!("{name} ends"));
        let shown = format!("{}{}", said(&result.parts), port.output.lock().unwrap());
        assert!(!shown.contains("very-secret-value") && shown.len() < 100_000, "{name}");
    }
    for prompt in servers.prompts() {
        let _ = tokio::time::timeout(LONG, servers.prompt(&prompt.name, json!({"who": "x"}))).await.unwrap();
    }
    for server in servers.servers() {
        assert!(!server.error.unwrap_or_default().contains("very-secret-value"), "{}", server.name);
    }
    servers.shutdown().await;
    assert!(names.iter().flat_map(|(name, _)| bench.pids(name)).all(is_gone));
}

/// Memory of this process, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}
