//! What the engine writes into journals and a reader of journals must recognize: its own texts, purposes and marks.

pub use crate::memory::PURPOSE as MEMORY_PURPOSE;
pub use crate::slash::aside::PURPOSE as ASIDE_PURPOSE;
pub use crate::spending::TOOLS as TOOLS_PURPOSE;
pub use crate::subagents::relay::is_relayed;
pub use crate::title::{REQUEST as TITLE_REQUEST, shorten as shorten_title};
pub use crate::tool_calls::input::parse as parse_input;
pub use crate::tool_calls::reviewer::PURPOSE as REVIEWER_PURPOSE;
pub use crate::tool_calls::{REPEATED, STOPPED_BY_USER};
pub use crate::turn::{AGENT_PREFIX, is_of_agent};
pub use crate::web_search::PURPOSE as WEB_SEARCH_PURPOSE;
