//! How long each method may take and how often it is tried again: the table of the contract.

use std::time::Duration;

use super::method::Method;

pub(crate) struct Policy {
    pub timeout: Duration,
    /// The pause before each further try.
    pub pauses: &'static [Duration],
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const INITIALIZE: Policy = Policy { timeout: seconds(10), pauses: &[seconds(2), seconds(5), seconds(10)] };
const GENERATE: Policy = Policy { timeout: seconds(60), pauses: &[Duration::ZERO] };
const CUSTOMIZE: Policy = Policy { timeout: seconds(30), pauses: &[Duration::ZERO] };
const CHAT: Policy = Policy { timeout: seconds(15), pauses: &[seconds(3), seconds(6)] };

pub(crate) fn of(method: Method) -> &'static Policy {
    match method {
        Method::Initialize => &INITIALIZE,
        Method::Generate => &GENERATE,
        Method::Customize => &CUSTOMIZE,
        Method::Chat => &CHAT,
    }
}

/// Failures in a row after which the child is given up.
pub(crate) const MOST_FAILURES: u32 = 5;

/// A child that ran so long has not failed in a row with the one before.
pub(crate) const STABLE: Duration = seconds(60);

/// The pause before a child is started again.
pub(crate) fn restart_pause(failures: u32) -> Duration {
    match failures {
        0 | 1 => seconds(5),
        2 => seconds(10),
        _ => seconds(30),
    }
}

/// How long a child may take to end after `exit`.
pub(crate) const EXIT_GRACE: Duration = seconds(1);

/// A pipe that stays full so long belongs to a child that hangs.
pub(crate) const WRITE_TIMEOUT: Duration = seconds(60);
