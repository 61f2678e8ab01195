//! Chats that another process of this machine holds: how an engine gets a link to that process, and lets others in.
//!
//! Must not know sockets. Invariant: whoever attaches has shown that it may; the engine does not ask again.

use crate::BoxFuture;
use crate::failure::Failure;
use crate::host::Abilities;
use crate::ids::SessionId;
use crate::link::Link;

/// The other processes of the user on this machine.
pub trait Peers: Send + Sync {
    /// Lets other processes attach to the chats that this one holds, from the first call on. Gives the address that a
    /// lease names; `None` where nobody can be let in.
    fn listen(&self) -> Option<String>;

    /// A link to the process that holds the chat. It carries the commands of that chat alone.
    fn attach<'a>(
        &'a self,
        address: &'a str,
        session: &'a SessionId,
        abilities: Abilities,
    ) -> BoxFuture<'a, Result<RemoteChat, Failure>>;

    /// This process for people of other processes: program, process id and folder.
    fn name(&self) -> String;
}

/// A chat that another process holds, seen from here.
pub struct RemoteChat {
    pub link: Link,
    /// The holder for people: program, process id and folder.
    pub holder: String,
}
