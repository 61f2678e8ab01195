//! Hosts that the administrator of the machine permits, as a question that `app` answers.

use std::fmt;
use std::sync::Arc;

/// Whether a host may be reached at a port, whatever is granted.
#[derive(Clone)]
pub struct HostFilter(Arc<Permits>);

/// Whether a host and port may be reached.
type Permits = dyn Fn(&str, u16) -> bool + Send + Sync;

impl HostFilter {
    pub fn new(permits: impl Fn(&str, u16) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(permits))
    }

    pub(crate) fn permits(&self, host: &str, port: u16) -> bool {
        (self.0)(host, port)
    }
}

impl fmt::Debug for HostFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFilter")
    }
}
