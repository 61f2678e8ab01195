//! Errors of setting up the sandbox: the step and the kernel's answer.

/// Why the wall could not be built: the step and the kernel's answer.
pub(crate) struct SetupError(pub(crate) String);

pub(crate) type Setup<T> = Result<T, SetupError>;

/// Adds the step to an error of the kernel.
pub(crate) trait Step<T> {
    fn step(self, step: &str) -> Setup<T>;
}

impl<T, E: std::fmt::Display> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Setup<T> {
        self.map_err(|error| SetupError(format!("{step}: {error}")))
    }
}
