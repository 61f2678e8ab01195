"""An MCP server that requires a login, with its own authorization server. Prints its port. `oauth.py --browse URL` is a browser."""

import json
import sys
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "token-of-the-login"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, value=None, **headers):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        base = f"http://127.0.0.1:{self.server.server_address[1]}"
        path, _, query = self.path.partition("?")
        if path.startswith("/.well-known/oauth-protected-resource"):
            return self.reply(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        if path.startswith("/.well-known/oauth-authorization-server"):
            return self.reply(200, {
                "issuer": base, "authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register", "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            })
        if path == "/authorize":
            asked = dict(urllib.parse.parse_qsl(query))
            return self.reply(302, Location=f"{asked['redirect_uri']}?code=c&state={asked['state']}")
        return self.reply(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/register":
            return self.reply(201, {"client_id": "registered"})
        if self.path == "/token":
            return self.reply(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.reply(401, WWW_Authenticate="Bearer")
        message = json.loads(body)
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        }
        if message["method"] in results:
            return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})
        return self.reply(202 if "id" not in message else 404)


if sys.argv[1:2] == ["--browse"]:
    with urllib.request.urlopen(sys.argv[2], timeout=30) as page:
        page.read()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
