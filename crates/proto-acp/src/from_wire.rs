//! Converts the protocol's types to the domain's. Pure.
//!
//! Invariant: content that cannot be converted is an error with a sentence, never dropped silently.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Abilities;
use domain::command::{Context, ServerSpec, ServerTransport, UserPrompt};
use domain::item::Part;
use rpc::Fault;

use crate::wire::{ClientFeatures, acp};

/// The abilities that the client offers to the engine.
pub(crate) fn abilities(request: &acp::InitializeRequest) -> Abilities {
    let capabilities = &request.client_capabilities;
    let client = request.client_info.as_ref().map_or_else(
        || "acp client".to_owned(),
        |info| format!("{} {}", info.name, info.version).trim().to_owned(),
    );
    let forms = capabilities.elicitation.as_ref().is_some_and(|it| it.form.is_some());
    Abilities {
        client,
        approvals: true,
        questions: forms,
        forms,
        read_text: capabilities.fs.read_text_file,
        write_text: capabilities.fs.write_text_file,
        terminal: capabilities.terminal,
        ..Abilities::default()
    }
}

/// The name of the ability in `_meta`, where clients had it before the schema.
pub(crate) const TERMINAL_AUTH: &str = "terminal-auth";

/// Whether the client starts a login in its terminal.
pub(crate) fn starts_logins(capabilities: &acp::ClientCapabilities) -> bool {
    let in_meta = capabilities.meta.as_ref().and_then(|meta| meta.get(TERMINAL_AUTH));
    capabilities.auth.terminal || in_meta.is_some_and(|wanted| *wanted == true)
}

/// The name in `_meta` of the capabilities by which a client asks for unstable methods.
const UNSTABLE: &str = "unstable";

/// Takes away what the client offers of its own machine: files, terminals, and logins that it would start there.
pub(crate) fn without_machine(capabilities: &mut acp::ClientCapabilities) {
    capabilities.fs = acp::FileSystemCapabilities::new();
    capabilities.terminal = false;
    capabilities.auth.terminal = false;
}

pub(crate) fn features(capabilities: &acp::ClientCapabilities) -> ClientFeatures {
    let session = capabilities.session.as_ref();
    let options = session.and_then(|it| it.config_options.as_ref());
    ClientFeatures {
        notices: session.is_some_and(|it| it.notices.is_some()),
        compaction: session.is_some_and(|it| it.compaction.is_some()),
        boolean_options: options.is_some_and(|it| it.boolean.is_some()),
        addresses: capabilities.elicitation.as_ref().is_some_and(|it| it.url.is_some()),
        unstable: capabilities
            .meta
            .as_ref()
            .and_then(|meta| meta.get(UNSTABLE))
            .is_some_and(|it| *it == true),
        version_two: false,
    }
}

/// The folders of a session: the working directory first.
pub(crate) fn roots(cwd: PathBuf, additional: Vec<PathBuf>) -> Result<Vec<PathBuf>, Fault> {
    let mut roots = vec![cwd];
    roots.extend(additional);
    match roots.iter().find(|root| !root.is_absolute()) {
        Some(root) => Err(invalid(format!("{} is not an absolute path.", root.display()))),
        None => Ok(roots),
    }
}

pub(crate) fn servers(servers: Vec<acp::McpServer>) -> Result<Vec<ServerSpec>, Fault> {
    servers.into_iter().map(server).collect()
}

fn server(server: acp::McpServer) -> Result<ServerSpec, Fault> {
    match server {
        acp::McpServer::Stdio(it) => Ok(ServerSpec {
            name: it.name,
            transport: ServerTransport::Stdio {
                command: text_of(&it.command)?,
                args: it.args,
                env: it.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            },
        }),
        acp::McpServer::Http(it) => Ok(ServerSpec {
            name: it.name,
            transport: ServerTransport::Http {
                url: it.url,
                headers: it.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            },
        }),
        acp::McpServer::Sse(it) => Err(invalid(format!(
            "The MCP server {} uses SSE, which is not supported here; use its HTTP address.",
            it.name
        ))),
        _ => Err(invalid("An MCP server has a transport that is not supported; use stdio or http.")),
    }
}

fn text_of(path: &Path) -> Result<String, Fault> {
    path.to_str().map(str::to_owned).ok_or_else(|| invalid("The command of an MCP server is not UTF-8."))
}

/// The user's message. Links stay visible in its text; their targets are added as contexts.
pub(crate) fn prompt(blocks: Vec<acp::ContentBlock>) -> Result<UserPrompt, Fault> {
    let mut prompt = UserPrompt::default();
    for block in blocks {
        add(&mut prompt, block)?;
    }
    let is_empty = prompt.text.trim().is_empty() && prompt.parts.is_empty() && prompt.contexts.is_empty();
    if is_empty { Err(invalid("The prompt is empty.")) } else { Ok(prompt) }
}

fn add(prompt: &mut UserPrompt, block: acp::ContentBlock) -> Result<(), Fault> {
    match block {
        acp::ContentBlock::Text(it) => prompt.text.push_str(&it.text),
        acp::ContentBlock::Image(it) => {
            prompt.parts.push(Part::Image { mime: it.mime_type, data: it.data.into() });
        }
        acp::ContentBlock::ResourceLink(it) => {
            prompt.text.push_str(&link(&it.name, &it.uri));
            prompt.contexts.extend(link_target(&it.uri));
        }
        acp::ContentBlock::Resource(it) => resource(prompt, it.resource)?,
        acp::ContentBlock::Audio(_) => return Err(invalid("Audio is not supported; send text.")),
        _ => return Err(invalid("The prompt has content of an unknown type.")),
    }
    Ok(())
}

fn resource(prompt: &mut UserPrompt, resource: acp::EmbeddedResourceResource) -> Result<(), Fault> {
    match resource {
        acp::EmbeddedResourceResource::TextResourceContents(it) => {
            prompt.text.push_str(&link(last_segment(&it.uri), &it.uri));
            prompt.contexts.push(Context::Text { name: it.uri, text: it.text });
        }
        acp::EmbeddedResourceResource::BlobResourceContents(it) => {
            prompt.text.push_str(&link(last_segment(&it.uri), &it.uri));
            let mime = it.mime_type.unwrap_or_default();
            if mime.starts_with("image/") {
                prompt.parts.push(Part::Image { mime, data: it.blob.into() });
                return Ok(());
            }
            let bytes = STANDARD
                .decode(it.blob.as_bytes())
                .map_err(|error| invalid(format!("The resource {} is not base64: {error}.", it.uri)))?;
            let text = String::from_utf8(bytes).map_err(|_| {
                invalid(format!("The resource {} is neither text nor an image; attach one of those.", it.uri))
            })?;
            prompt.contexts.push(Context::Text { name: it.uri, text });
        }
        _ => return Err(invalid("The prompt has a resource of an unknown type.")),
    }
    Ok(())
}

fn link(name: &str, uri: &str) -> String {
    format!("[@{name}]({uri})")
}

fn last_segment(uri: &str) -> &str {
    let end = uri.trim_end_matches('/');
    end.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri)
}

/// The target of a link, where the engine can read it.
fn link_target(uri: &str) -> Option<Context> {
    if uri.starts_with("http://") || uri.starts_with("https://") {
        return Some(Context::Web { url: uri.to_owned() });
    }
    let (address, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let (address, _) = address.split_once('?').unwrap_or((address, ""));
    let path = platform::file_uri::to_path_leniently(address)?;
    if address.ends_with('/') {
        return Some(Context::Directory { path: path.components().collect() });
    }
    Some(Context::File { path, lines: lines(fragment) })
}

/// `L10`, `L10-20`, `L10-L20` and `L10:20`.
fn lines(fragment: &str) -> Option<(u32, u32)> {
    let range = fragment.strip_prefix('L')?;
    let (start, end) = range.split_once(['-', ':']).unwrap_or((range, range));
    let start: u32 = start.parse().ok()?;
    let end: u32 = end.strip_prefix('L').unwrap_or(end).parse().ok()?;
    (start > 0 && end >= start).then_some((start, end))
}

/// -32602 with a sentence.
pub(crate) fn invalid(sentence: impl Into<String>) -> Fault {
    Fault::new(Fault::INVALID_PARAMS, sentence)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> Result<UserPrompt, Fault> {
        prompt(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn every_kind_of_content_is_carried_over() {
        let prompt = read(json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a b.rs", "uri": "file:///w/a%20b.rs#L3-L9"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": "file:///w/unsaved.txt", "text": "fresh"}},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "x:/p.png", "mimeType": "image/png", "blob": "BBBB"}},
            {"type": "resource", "resource": {"uri": "x:/t", "blob": STANDARD.encode("plain")}},
        ]))
        .unwrap();
        assert_eq!(
            prompt.text,
            "Look at [@a b.rs](file:///w/a%20b.rs#L3-L9) and [@unsaved.txt](file:///w/unsaved.txt)\
             [@p.png](x:/p.png)[@t](x:/t)"
        );
        assert_eq!(
            prompt.contexts,
            [
                Context::File { path: "/w/a b.rs".into(), lines: Some((3, 9)) },
                Context::Text { name: "file:///w/unsaved.txt".into(), text: "fresh".into() },
                Context::Text { name: "x:/t".into(), text: "plain".into() },
            ]
        );
        let image = |data: &str| Part::Image { mime: "image/png".into(), data: data.into() };
        assert_eq!(prompt.parts, [image("AAAA"), image("BBBB")]);
    }

    #[test]
    fn what_cannot_be_carried_over_is_refused() {
        for (blocks, word) in [
            (json!([]), "empty"),
            (json!([{"type": "text", "text": "  "}]), "empty"),
            (json!([{"type": "audio", "mimeType": "audio/wav", "data": ""}]), "Audio"),
            (json!([{"type": "resource", "resource": {"uri": "x:/b", "blob": "/w=="}}]), "neither text"),
            (json!([{"type": "resource", "resource": {"uri": "x:/b", "blob": "%"}}]), "base64"),
        ] {
            let fault = read(blocks.clone()).unwrap_err();
            assert!(fault.message.contains(word), "{blocks}: {}", fault.message);
        }
    }

    #[test]
    fn links_point_to_what_we_can_read() {
        for (uri, expected) in [
            ("file:///a/b", Some(Context::File { path: "/a/b".into(), lines: None })),
            ("file:///a/b?symbol=f#L5:7", Some(Context::File { path: "/a/b".into(), lines: Some((5, 7)) })),
            ("file:///a/b#L5", Some(Context::File { path: "/a/b".into(), lines: Some((5, 5)) })),
            ("file:///a/b#L0-9", Some(Context::File { path: "/a/b".into(), lines: None })),
            ("file:///a%2", Some(Context::File { path: "/a%2".into(), lines: None })),
            ("file:///a/", Some(Context::Directory { path: "/a".into() })),
            ("file:///", Some(Context::Directory { path: "/".into() })),
            ("https://e.org/x", Some(Context::Web { url: "https://e.org/x".into() })),
            ("zed:///agent/thread/1", None),
        ] {
            assert_eq!(link_target(uri), expected, "{uri}");
        }
    }

    #[test]
    fn servers_and_folders_are_checked() {
        let read: Vec<acp::McpServer> = serde_json::from_value(json!([
            {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "v"}]},
        ]))
        .unwrap();
        let specs = servers(read).unwrap();
        let stdio = ServerTransport::Stdio {
            command: "/bin/a".into(),
            args: vec!["x".into()],
            env: vec![("K".into(), "v".into())],
        };
        let http = ServerTransport::Http { url: "https://b".into(), headers: vec![("H".into(), "v".into())] };
        assert_eq!(specs[0], ServerSpec { name: "a".into(), transport: stdio });
        assert_eq!(specs[1], ServerSpec { name: "b".into(), transport: http });
        let sse: Vec<acp::McpServer> =
            serde_json::from_value(json!([{"type": "sse", "name": "c", "url": "u", "headers": []}])).unwrap();
        assert!(servers(sse).unwrap_err().message.contains("SSE"));
        assert!(roots("relative".into(), Vec::new()).is_err());
        assert_eq!(roots("/a".into(), vec!["/b".into()]).unwrap(), [PathBuf::from("/a"), "/b".into()]);
    }
}
