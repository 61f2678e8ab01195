//! How an answer of a model ended, and the tokens that it used. Plain data.

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    Done,
    ToolCalls,
    MaxTokens,
    Refused {
        reason: String,
    },
    /// The connection broke after output had begun; what came stands.
    Cut {
        message: String,
    },
}

/// Token counts of calls. The four input kinds do not overlap; `reasoning` is a part of `output`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tokens {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Tokens {
    /// Everything the call read and wrote: what the context window holds after it.
    pub fn all(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.output
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}
