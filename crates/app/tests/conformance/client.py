"""The client command of the MCP conformance suite: drives the real program as an editor would.

The suite starts it as `client.py URL` and describes the scenario in its environment. It plays the editor (ECA), the model (a
small HTTP server) and, started again as `$BROWSER`, the browser that follows the redirects of a login. It decides nothing
about MCP: it configures the server, logs in when the program says so, and calls every tool it is offered.
"""

import http.server
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import urllib.request

LIMIT = 60
MAX_LOGINS = 3
SKIP = "(leave it out)"


def browse(url):
    with urllib.request.urlopen(url, timeout=LIMIT) as page:
        page.read()


class Model(http.server.ThreadingHTTPServer):
    """Answers with the next tool call, then with a word."""

    def __init__(self):
        self.calls = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply("application/json", b'{"data": []}')

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        delta, reason = {"content": "done"}, "stop"
        if self.server.calls:
            name, arguments = self.server.calls.pop(0)
            function = {"name": name, "arguments": json.dumps(arguments)}
            delta = {"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": function}]}
            reason = "tool_calls"
        chunks = [{"choices": [{"index": 0, "delta": delta}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.reply("text/event-stream", text.encode())

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Editor:
    """One connection to `dragoman server`."""

    def __init__(self, home, config, browser):
        environment = {"PATH": os.environ["PATH"], "HOME": home, "BROWSER": browser, "DRAGOMAN_CONFIG": json.dumps(config)}
        self.child = subprocess.Popen([os.environ["DRAGOMAN"], "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env=environment)
        self.messages, self.last_id, self.server = queue.Queue(), 0, None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        stream = self.child.stdout
        while header := stream.readline():
            length = 0
            while header.strip():
                name, value = header.split(b":", 1)
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            self.messages.put(json.loads(stream.read(length)))
        self.messages.put(None)

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.child.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params):
        self.last_id += 1
        wanted = self.last_id
        self.send({"id": wanted, "method": method, "params": params})
        return self.until(lambda message: message.get("id") == wanted and "method" not in message)

    def until(self, found):
        while True:
            message = self.messages.get(timeout=LIMIT)
            if message is None:
                raise SystemExit("the program ended")
            method, params = message.get("method"), message.get("params", {})
            if method == "tool/serverUpdated" and params.get("name") == "t":
                self.server = params
            if method == "chat/askQuestion":
                labels = [option["label"] for option in params["options"]]
                answer = SKIP if SKIP in labels else (labels or ["x"])[0]
                self.send({"id": message["id"], "result": {"answer": answer, "cancelled": False}})
            if found(message):
                return message

    def settle(self):
        """Waits until the server runs; logs in as often as it is asked to, within bounds."""
        for _ in range(MAX_LOGINS + 1):
            settled = lambda _: self.server and self.server["status"] in ("running", "failed", "requires-auth") and not self.logging_in()
            if not settled(None):
                self.until(settled)
            if self.server["status"] == "running":
                return True
            print(self.server["status"], self.server.get("error"), file=sys.stderr)
            if self.server["status"] == "failed" or "The login to" in (self.server.get("error") or ""):
                return False
            before, self.server = self.server, None
            self.notify("mcp/connectServer", {"name": "t"})
        return False

    def logging_in(self):
        return (self.server.get("error") or "").startswith("Open this address")


def arguments(tool, tools, context):
    for call in context.get("toolCalls", []):
        if call["name"] == tool["name"]:
            return call["arguments"]
    if tool["name"] == "json_schema_echo":
        return {"schema": tools[0]["parameters"]}
    properties = tool["parameters"].get("properties", {})
    examples = {"number": 5, "integer": 3, "boolean": True, "array": [], "object": {}}
    return {name: examples.get(properties.get(name, {}).get("type"), "text") for name in tool["parameters"].get("required", [])}


def entry(url, context):
    entry = {"url": url}
    names = {"client_id": "clientId", "client_secret": "clientSecret", "private_key_pem": "privateKey", "valid_jwt": "assertion",
             "idp_id_token": "identityToken", "idp_token_endpoint": "identityEndpoint", "idp_client_id": "identityClientId"}
    entry.update({ours: context[theirs] for theirs, ours in names.items() if theirs in context})
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if scenario.startswith("auth/client-credentials"):
        entry["grantType"] = "client_credentials"
    if scenario == "auth/wif-jwt-bearer" or "idp_id_token" in context:
        entry["grantType"] = "jwt_bearer"
    return entry


def run(url, home):
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    model = Model()
    browser = os.path.join(home, "browser")
    with open(browser, "w") as file:
        file.write(f"#!/bin/sh\nexec {sys.executable} {os.path.abspath(__file__)} --browse \"$1\"\n")
    os.chmod(browser, 0o755)
    config = {
        "defaultModel": "fake/m",
        "providers": {"fake": {"api": "openai-chat", "url": model.url(), "key": "k", "models": {"m": {}}}},
        "mcpServers": {"t": entry(url, context)},
        "mcpTimeoutSeconds": 20,
        "chat": {"title": False},
    }
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd":
        config["mcpClientMetadataUrl"] = "https://conformance-test.local/client-metadata.json"
    editor = Editor(home, config, browser)
    capabilities = {"codeAssistant": {"chat": True, "chatCapabilities": {"askQuestion": True}}}
    editor.ask("initialize", {"capabilities": capabilities, "workspaceFolders": [{"uri": f"file://{home}", "name": "w"}]})
    editor.notify("initialized", {})
    runs = editor.settle()
    tools = editor.server["tools"] if runs else []
    for tool in tools:
        for _ in range(MAX_LOGINS):
            model.calls = [("t__" + tool["name"], arguments(tool, tools, context))]
            editor.ask("chat/prompt", {"chatId": "c", "message": "go", "trust": True})
            editor.until(lambda message: message.get("method") == "chat/contentReceived" and message["params"]["content"].get("state") == "finished")
            # A refused call is seen as the state of its server.
            if editor.server["status"] == "running" or not editor.settle():
                break
    editor.ask("shutdown", {})
    editor.notify("exit", {})
    editor.child.wait(LIMIT)
    return 0 if runs else 1


if __name__ == "__main__":
    if sys.argv[1] == "--browse":
        browse(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as home:
            sys.exit(run(sys.argv[-1], home))
