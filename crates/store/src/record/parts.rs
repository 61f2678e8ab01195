//! The stored form of what messages and tool calls share, version 1.
//!
//! Must not know SQL or files. Invariant: as in `record`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum PartV1<'a> {
    Text {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    Image {
        #[serde(borrow)]
        mime: Cow<'a, str>,
        #[serde(borrow)]
        data: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProviderBlockV1<'a> {
    #[serde(borrow)]
    pub(super) format: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) model: Cow<'a, str>,
    pub(super) data: Cow<'a, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlanEntryV1<'a> {
    #[serde(borrow)]
    pub(super) text: Cow<'a, str>,
    pub(super) status: PlanStatusV1,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<Cow<'a, str>>,
}

/// Stored words for a domain type without data, with both conversions.
macro_rules! words {
    ($($name:ident = $domain:ty { $($word:ident),+ })+) => {$(
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(crate) enum $name {
            $($word),+
        }

        impl From<$domain> for $name {
            fn from(value: $domain) -> Self {
                type Domain = $domain;
                match value {
                    $(Domain::$word => Self::$word),+
                }
            }
        }

        impl From<$name> for $domain {
            fn from(stored: $name) -> Self {
                match stored {
                    $($name::$word => Self::$word),+
                }
            }
        }
    )+};
}

words! {
    ChannelV1 = domain::event::Channel { Text, Reasoning, ToolInput, ToolOutput }
    LevelV1 = domain::Level { Info, Warning, Error }
    FailureKindV1 = domain::FailureKind { User, Taken, Config, Auth, Quota, Provider, Tool, Internal }
    PlanStatusV1 = domain::item::PlanStatus { Pending, InProgress, Done }
    OriginV1 = domain::tool_call::Origin { Native, Mcp }
    RejectedByV1 = domain::tool_call::RejectedBy { User, Policy, Unasked, Hook }
}
