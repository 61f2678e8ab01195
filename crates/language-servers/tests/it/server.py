"""A small language server for tests: every line with "error" is one, `def NAME` defines a name."""
import json
import os
import re
import sys
from urllib.parse import unquote

texts = {}
watched = []


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def notify(method, params):
    send({"method": method, "params": params})


def units(text):
    return len(text.encode("utf-16-le")) // 2


def span(line, text, start, end):
    place = lambda at: {"line": line, "character": units(text[:at])}
    return {"start": place(start), "end": place(end)}


def publish(uri):
    found = [
        {"range": span(number, line, 0, len(line)), "severity": 1, "code": "E1", "source": "small", "message": line}
        for number, line in enumerate(texts[uri].splitlines())
        if "error" in line
    ]
    notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": found})


def name_at(params):
    uri, place = params["textDocument"]["uri"], params["position"]
    line = texts[uri].splitlines()[place["line"]]
    before = line.encode("utf-16-le")[: place["character"] * 2].decode("utf-16-le")
    for word in re.finditer(r"\w+", line):
        if word.start() <= len(before) < word.end():
            return word.group()
    return None


def places(name, pattern):
    if name is None:
        return []
    return [
        {"uri": uri, "range": span(number, line, word.start("name"), word.end("name"))}
        for uri, text in sorted(texts.items())
        for number, line in enumerate(text.splitlines())
        for word in re.finditer(pattern % re.escape(name), line)
    ]


def answer(method, params):
    if method == "initialize":
        if os.environ.get("SMALL_SERVER_FAILS"):
            sys.exit("there is no toolchain")
        abilities = {"definitionProvider": True, "referencesProvider": {}, "textDocumentSync": 1}
        return {"capabilities": abilities}
    if method == "textDocument/definition":
        if name_at(params) == "crash":
            sys.exit("it crashed")
        return places(name_at(params), r"def (?P<name>%s)\b")
    if method == "textDocument/references":
        return places(name_at(params), r"\b(?P<name>%s)\b")
    if method == "shutdown":
        return None
    return None


def told(method, params):
    if method == "initialized":
        try:
            with open("stain", "w") as stain:
                stain.write("a language server was here")
        except OSError:
            pass
        with open(os.environ["SMALL_SERVER_LOG"], "a") as log:
            log.write("%d\n" % os.getpid())
        token = {"token": "load", "value": {"kind": "begin", "title": "Loading"}}
        notify("$/progress", token)
        watch = {"id": "1", "method": "workspace/didChangeWatchedFiles"}
        send({"id": 100, "method": "client/registerCapability", "params": {"registrations": [watch]}})
        send({"id": 101, "method": "workspace/configuration", "params": {"items": [{}, {}]}})
    elif method == "textDocument/didOpen":
        texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        publish(params["textDocument"]["uri"])
        notify("$/progress", {"token": "load", "value": {"kind": "end"}})
    elif method == "textDocument/didChange":
        texts[params["textDocument"]["uri"]] = params["contentChanges"][0]["text"]
        publish(params["textDocument"]["uri"])
    elif method == "workspace/didChangeWatchedFiles":
        for change in params["changes"]:
            path = unquote(change["uri"].removeprefix("file://"))
            if change["uri"] not in texts and change["type"] != 3:
                texts[change["uri"]] = open(path).read()
                publish(change["uri"])
    elif method == "exit":
        sys.exit(0)


while True:
    length = 0
    while (header := sys.stdin.buffer.readline().strip()) != b"":
        if header.lower().startswith(b"content-length:"):
            length = int(header.split(b":")[1])
    if length == 0:
        sys.exit(0)
    message = json.loads(sys.stdin.buffer.read(length))
    if "method" not in message:
        continue
    if "id" in message:
        send({"id": message["id"], "result": answer(message["method"], message.get("params"))})
    else:
        told(message["method"], message.get("params"))
