//! The kinds of elements that have handlers.

/// What the element of a handler is, as far as it decides what its event may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// `event.target` is the element itself.
    Control,
    /// The properties of a form are its controls.
    Form,
    Other,
}
