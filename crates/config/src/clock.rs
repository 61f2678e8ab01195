//! The machine's time zone. `jiff` looks a zone up by its name and lists the whole zone database for that, which takes
//! milliseconds of a first prompt; the file that the system's zone leads to says the same.

use jiff::Zoned;
use jiff::tz::TimeZone;

const SYSTEM_ZONE: &str = "/etc/localtime";

/// The time on the machine's clock.
pub fn local_now() -> Zoned {
    jiff::Timestamp::now().to_zoned(local_zone())
}

/// The zone of `TZ`, else of the machine.
#[expect(clippy::disallowed_methods, reason = "the clock is the process's, whatever environment a test has")]
pub fn local_zone() -> TimeZone {
    if platform::System::CURRENT != platform::System::Linux || std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    let file = std::fs::read(SYSTEM_ZONE).ok();
    file.and_then(|bytes| TimeZone::tzif("Local", &bytes).ok()).unwrap_or_else(TimeZone::system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_the_systems() {
        let now = jiff::Timestamp::now();
        assert_eq!(local_zone().to_offset(now), TimeZone::system().to_offset(now));
    }
}
