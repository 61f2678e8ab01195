//! Where lists of servers' tools are kept between processes: the interface, which `app` implements.

/// A place for small texts by key. Errors are its own to report: a list that is lost costs a wait, nothing else.
pub trait ListStore: Send + Sync {
    fn read(&self, key: &str) -> Option<String>;
    fn write(&self, key: &str, text: &str);
    fn remove(&self, key: &str);
}
