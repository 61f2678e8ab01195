//! The protocol's types: those of the official schema, the names of the methods, the effects of a projection.
//!
//! Knows no engine. Invariant: nothing is sent that is not one of the schema's types, but what
//! the agent behind a proxy describes.

pub(crate) use agent_client_protocol_schema::v1 as acp;

use domain::{AskId, Failure, TurnId};

pub(crate) mod method {
    //! Names of methods, from the schema.
    use super::acp::{
        AGENT_METHOD_NAMES as AGENT, CLIENT_METHOD_NAMES as CLIENT, PROTOCOL_LEVEL_METHOD_NAMES,
    };

    // Clients call these.
    pub(crate) const INITIALIZE: &str = AGENT.initialize;
    pub(crate) const AUTHENTICATE: &str = AGENT.authenticate;
    pub(crate) const LOGOUT: &str = AGENT.logout;
    pub(crate) const SESSION_NEW: &str = AGENT.session_new;
    pub(crate) const SESSION_LOAD: &str = AGENT.session_load;
    pub(crate) const SESSION_RESUME: &str = AGENT.session_resume;
    pub(crate) const SESSION_FORK: &str = AGENT.session_fork;
    pub(crate) const SESSION_LIST: &str = AGENT.session_list;
    pub(crate) const SESSION_CLOSE: &str = AGENT.session_close;
    pub(crate) const SESSION_DELETE: &str = AGENT.session_delete;
    pub(crate) const SESSION_PROMPT: &str = AGENT.session_prompt;
    pub(crate) const SESSION_CANCEL: &str = AGENT.session_cancel;
    pub(crate) const SESSION_SET_MODE: &str = AGENT.session_set_mode;
    pub(crate) const SESSION_SET_CONFIG_OPTION: &str = AGENT.session_set_config_option;
    /// Not of the schema: agents behind a proxy may have it.
    pub(crate) const SESSION_SET_MODEL: &str = "session/set_model";
    pub(crate) const SESSION_SET_TITLE: &str = AGENT.session_set_title;
    pub(crate) const SESSION_STATUS: &str = AGENT.session_status;
    pub(crate) const AUTH_STATUS: &str = AGENT.auth_status;
    pub(crate) const CANCEL_REQUEST: &str = PROTOCOL_LEVEL_METHOD_NAMES.cancel_request;

    // The agent calls these.
    pub(crate) const SESSION_UPDATE: &str = CLIENT.session_update;
    pub(crate) const REQUEST_PERMISSION: &str = CLIENT.session_request_permission;
    pub(crate) const READ_TEXT_FILE: &str = CLIENT.fs_read_text_file;
    pub(crate) const WRITE_TEXT_FILE: &str = CLIENT.fs_write_text_file;
    pub(crate) const TERMINAL_CREATE: &str = CLIENT.terminal_create;
    pub(crate) const TERMINAL_OUTPUT: &str = CLIENT.terminal_output;
    pub(crate) const TERMINAL_WAIT: &str = CLIENT.terminal_wait_for_exit;
    pub(crate) const TERMINAL_KILL: &str = CLIENT.terminal_kill;
    pub(crate) const TERMINAL_RELEASE: &str = CLIENT.terminal_release;
    pub(crate) const ELICITATION: &str = CLIENT.elicitation_create;
}

/// Newer parts of the protocol that a client understands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ClientFeatures {
    /// `notice` updates.
    pub notices: bool,
    /// `compaction_update`.
    pub compaction: bool,
    /// On/off configuration options.
    pub boolean_options: bool,
    /// Elicitations that send the user to an address.
    pub addresses: bool,
    /// The client asks for methods that the schema marks as unstable.
    pub unstable: bool,
    /// The connection speaks version 2.
    pub version_two: bool,
}

/// The effect of an event on the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Update(acp::SessionUpdate),
    /// An update that version 2 alone has.
    VersionTwo(serde_json::Value),
    /// A person must be asked.
    Ask(AskId, Question),
    /// The client cannot show this ask.
    Decline(AskId),
    /// An ask is answered, here or elsewhere.
    Settled(AskId),
    /// A turn begins.
    Started,
    /// A turn is over: the answer to `session/prompt`.
    Ended(TurnId, Result<acp::StopReason, Failure>),
    /// Every turn under way is over.
    Lost(Failure),
}

/// A request to the client that a person answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    Permission(acp::RequestPermissionRequest),
    Elicitation { request: acp::CreateElicitationRequest, answer: AnswerForm },
}

/// What the answer to an elicitation is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerForm {
    /// The text of one of the form's fields.
    Field,
    /// The form's data.
    Data,
    /// The user went to an address: this text.
    Opened(String),
}
