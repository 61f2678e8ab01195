//! Resources as a connection knows them: their templates, and what was read a moment ago. Plain data.
//!
//! Invariant: a kept resource is used only as long as its server said, and never after that server said that it changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::Part;
use domain::tool::Resource;

use crate::uri_template::UriTemplate;

const MAX_KEPT: usize = 64;
/// However long a server says, and however large the text.
const MAX_AGE: Duration = Duration::from_secs(3600);
const MAX_KEPT_BYTES: usize = 64 << 10;
/// A template as it is shown and as it is typed.
#[derive(Clone)]
pub(crate) struct ResourceTemplate {
    /// Its `uri` is the template.
    pub resource: Resource,
    /// `None`: the template cannot be completed.
    pub template: Option<Arc<UriTemplate>>,
}

/// What servers of the stateless era allow to be kept (`ttlMs`), for one connection.
#[derive(Default)]
pub(crate) struct ReadCache(Mutex<HashMap<String, (Instant, Vec<Part>)>>);

impl ReadCache {
    pub(crate) fn get(&self, uri: &str) -> Option<Vec<Part>> {
        let kept = self.kept();
        kept.get(uri).filter(|(until, _)| Instant::now() < *until).map(|(_, parts)| parts.clone())
    }

    pub(crate) fn keep(&self, uri: &str, parts: &[Part], fresh_for: Duration) {
        let size = |part: &Part| match part {
            Part::Text { text } => text.len(),
            Part::Image { data, .. } => data.len(),
        };
        if fresh_for.is_zero() || parts.iter().map(size).sum::<usize>() > MAX_KEPT_BYTES {
            return;
        }
        let (mut kept, now) = (self.kept(), Instant::now());
        kept.retain(|_, (until, _)| now < *until);
        if kept.len() < MAX_KEPT {
            kept.insert(uri.to_owned(), (now + fresh_for.min(MAX_AGE), parts.to_vec()));
        }
    }

    /// `None`: any of them may have changed.
    pub(crate) fn forget(&self, uri: Option<&str>) {
        match uri {
            Some(uri) => drop(self.kept().remove(uri)),
            None => self.kept().clear(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, (Instant, Vec<Part>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_kept_as_long_as_its_server_says() {
        let (cache, parts) = (ReadCache::default(), [Part::text("one")]);
        cache.keep("a", &parts, Duration::from_secs(60));
        cache.keep("b", &parts, Duration::ZERO);
        cache.keep("c", &parts, Duration::from_nanos(1));
        cache.keep("d", &[Part::text("x".repeat(MAX_KEPT_BYTES + 1))], Duration::from_secs(60));
        cache.keep("e", &parts, Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
        let kept = |uri: &str| cache.get(uri).is_some();
        assert_eq!(["a", "b", "c", "d", "e"].map(kept), [true, false, false, false, true]);
        cache.forget(Some("a"));
        assert_eq!(["a", "e"].map(kept), [false, true]);
        cache.forget(None);
        assert!(!kept("e"));
    }
}
