//! Stage 5: the checker of generated code. To be written.

pub mod approved;
