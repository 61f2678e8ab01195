//! The protocol's words: the official schema's types, the names of the methods, and what a projection says.
//!
//! Knows no engine. Invariant: nothing is sent that is not one of the schema's types.

pub use agent_client_protocol_schema::v1 as acp;

use domain::{AskId, Failure, TurnId};

pub mod method {
    //! Names of methods, from the schema.
    use super::acp::{
        AGENT_METHOD_NAMES as AGENT, CLIENT_METHOD_NAMES as CLIENT, PROTOCOL_LEVEL_METHOD_NAMES,
    };

    // What clients call.
    pub const INITIALIZE: &str = AGENT.initialize;
    pub const AUTHENTICATE: &str = AGENT.authenticate;
    pub const LOGOUT: &str = AGENT.logout;
    pub const SESSION_NEW: &str = AGENT.session_new;
    pub const SESSION_LOAD: &str = AGENT.session_load;
    pub const SESSION_RESUME: &str = AGENT.session_resume;
    pub const SESSION_LIST: &str = AGENT.session_list;
    pub const SESSION_CLOSE: &str = AGENT.session_close;
    pub const SESSION_DELETE: &str = AGENT.session_delete;
    pub const SESSION_PROMPT: &str = AGENT.session_prompt;
    pub const SESSION_CANCEL: &str = AGENT.session_cancel;
    pub const SESSION_SET_MODE: &str = AGENT.session_set_mode;
    pub const SESSION_SET_CONFIG_OPTION: &str = AGENT.session_set_config_option;
    pub const CANCEL_REQUEST: &str = PROTOCOL_LEVEL_METHOD_NAMES.cancel_request;

    // What we call.
    pub const SESSION_UPDATE: &str = CLIENT.session_update;
    pub const REQUEST_PERMISSION: &str = CLIENT.session_request_permission;
    pub const READ_TEXT_FILE: &str = CLIENT.fs_read_text_file;
    pub const WRITE_TEXT_FILE: &str = CLIENT.fs_write_text_file;
    pub const TERMINAL_CREATE: &str = CLIENT.terminal_create;
    pub const TERMINAL_OUTPUT: &str = CLIENT.terminal_output;
    pub const TERMINAL_WAIT: &str = CLIENT.terminal_wait_for_exit;
    pub const TERMINAL_KILL: &str = CLIENT.terminal_kill;
    pub const TERMINAL_RELEASE: &str = CLIENT.terminal_release;
    pub const ELICITATION: &str = CLIENT.elicitation_create;
}

/// What of the protocol's newer parts a client understands.
#[derive(Clone, Copy, Default, Debug)]
pub struct Extras {
    /// `notice` updates.
    pub notices: bool,
    /// `compaction_update`.
    pub compaction: bool,
    /// On/off configuration options.
    pub boolean_options: bool,
}

/// What an event becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Update(acp::SessionUpdate),
    /// A person must be asked.
    Ask(AskId, Question),
    /// Nobody can be asked this.
    Decline(AskId),
    /// An ask is answered, here or elsewhere.
    Settled(AskId),
    /// A turn is over: what `session/prompt` is answered with.
    Ended(TurnId, Result<acp::StopReason, Failure>),
    /// Every turn under way is over.
    Lost(Failure),
}

/// A request to the client that a person answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Permission(acp::RequestPermissionRequest),
    /// `form`: the answer is the form's data, else the text of one of its fields.
    Elicitation {
        request: acp::CreateElicitationRequest,
        form: bool,
    },
}
