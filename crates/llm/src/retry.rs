//! When to try again: what the server asked for, else a growing wait with jitter. Pure; the caller gives the time.
//!
//! Invariant: a wait is never shorter than what the server asked for.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use reqwest::header::HeaderMap;

use crate::provider::RetryPolicy;

/// The wait that the headers of an error response ask for.
pub(crate) fn asked_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return positive(millis / 1000.0);
    }
    if let Some(value) = text("retry-after") {
        return match value.parse::<f64>() {
            Ok(seconds) => positive(seconds),
            Err(_) => jiff::fmt::rfc2822::parse(value).ok().map(|date| until(date.timestamp(), now)),
        };
    }
    let mut exhausted: Option<Duration> = None;
    let mut soonest: Option<Duration> = None;
    for (name, value) in headers {
        let name = name.as_str();
        if !name.contains("ratelimit") || !name.contains("reset") {
            continue;
        }
        let Some(wait) = value.to_str().ok().and_then(|value| reset(value.trim(), now)) else { continue };
        let remaining = text(&name.replace("reset", "remaining"));
        if remaining == Some("0") {
            exhausted = Some(exhausted.map_or(wait, |known| known.max(wait)));
        }
        soonest = Some(soonest.map_or(wait, |known| known.min(wait)));
    }
    exhausted.or(soonest)
}

/// A reset time: RFC 3339, seconds or milliseconds since 1970, seconds from now, or `6m0s`.
fn reset(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(date) = value.parse::<Timestamp>() {
        return Some(until(date, now));
    }
    if let Ok(number) = value.parse::<f64>() {
        return match number {
            n if n > 1e11 => Some(until(Timestamp::from_millisecond(n as i64).ok()?, now)),
            n if n > 1e9 => Some(until(Timestamp::from_second(n as i64).ok()?, now)),
            n => positive(n),
        };
    }
    span(value)
}

/// `1h2m3.5s`, `20ms`.
fn span(mut value: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    while !value.is_empty() {
        let digits = value.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = value[..digits].parse().ok()?;
        let rest = &value[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        seconds += number
            * match &rest[..letters] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return None,
            };
        value = &rest[letters..];
    }
    positive(seconds)
}

fn positive(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

fn until(date: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(date.duration_since(now)).unwrap_or_default()
}

/// The wait before attempt number `attempt` (the second is 2). `random` is in 0..1.
pub(crate) fn wait(
    retry_policy: &RetryPolicy,
    attempt: u32,
    asked: Option<Duration>,
    random: f64,
) -> Duration {
    match asked {
        // A little more than asked, so that many clients with the same wait do not return at once.
        Some(asked) => asked + retry_policy.first_wait.mul_f64(0.25 * random),
        None => {
            let doubled = retry_policy.first_wait.saturating_mul(1 << attempt.saturating_sub(2).min(6));
            doubled.min(Duration::from_secs(60)).mul_f64(0.5 + 0.5 * random)
        }
    }
}

/// `Rate limited by x. Trying again in 12 s, at 14:05:30 CET (attempt 2 of 8).`
pub(crate) fn notice(why: &str, wait: Duration, attempt: u32, attempts: u32) -> String {
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let time = clock(wait).map(|time| format!(", at {time}")).unwrap_or_default();
    format!("{why} Trying again in {seconds} s{time} (attempt {attempt} of {attempts}).")
}

/// The time after a wait with its zone, and with its day where that is not today's. `None`: beyond every calendar.
pub(crate) fn clock(wait: Duration) -> Option<String> {
    let (now, then) = (Zoned::now(), Zoned::now().checked_add(wait).ok()?);
    let form = if now.date() == then.date() { "%H:%M:%S %Z" } else { "%Y-%m-%d %H:%M %Z" };
    Some(then.strftime(form).to_string())
}

/// A number in 0..1 that differs between processes and calls.
pub(crate) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn check(headers: &[(&str, &str)], expected: Option<f64>) {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
            })
            .collect();
        assert_eq!(asked_wait(&map, now).map(|wait| wait.as_secs_f64()), expected, "{headers:?}");
    }

    #[test]
    fn the_wait_that_a_server_asks_for_is_understood() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7.0));
        check(&[("retry-after", "0.5")], Some(0.5));
        check(&[("retry-after", "Sun, 01 Mar 2026 12:00:30 GMT")], Some(30.0));
        check(&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1.5));
        check(&[("x-ratelimit-reset-requests", "6m0s")], Some(360.0));
        check(&[("x-ratelimit-reset-tokens", "2m59.5s")], Some(179.5));
        check(&[("x-ratelimit-reset-tokens", "20ms")], Some(0.02));
        check(&[("x-ratelimit-reset", "1772366405")], Some(5.0));
        check(&[("x-ratelimit-reset", "1772366405000")], Some(5.0));
        check(&[("anthropic-ratelimit-requests-reset", "2026-03-01T12:01:00Z")], Some(60.0));
        check(&[("anthropic-ratelimit-requests-reset", "2026-03-01T11:01:00Z")], Some(0.0));
        // The limit that is used up counts, not the one that is reset first.
        check(
            &[
                ("anthropic-ratelimit-requests-reset", "2026-03-01T12:00:01Z"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-03-01T12:00:40Z"),
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ],
            Some(40.0),
        );
        check(&[("retry-after", "-5")], Some(0.0));
        check(&[("retry-after", "soon"), ("x-ratelimit-reset", "whenever")], None);
    }

    #[test]
    fn waits_grow_and_never_undercut_the_server() {
        let retry_policy = RetryPolicy::default();
        let waits: Vec<_> =
            (2..10).map(|attempt| wait(&retry_policy, attempt, None, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(wait(&retry_policy, 2, Some(Duration::from_secs(9)), 0.0) >= Duration::from_secs(9));
    }
}
