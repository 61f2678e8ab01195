//! The methods of the contract that the host calls.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Initialize,
    Generate,
    Customize,
    Chat,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Initialize => "initialize",
            Method::Generate => "generate",
            Method::Customize => "customize",
            Method::Chat => "chat",
        }
    }
}
