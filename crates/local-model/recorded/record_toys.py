"""Records what llama.cpp makes of the toy files of tests/it/toys.rs.

    DRAGOMAN_TOYS=FOLDER cargo test -p dragoman-local-model --test it -- --ignored write_toys
    python3 -m pip install xllamacpp jinja2      # llama.cpp as a library, with its server
    python3 record_toys.py FOLDER > toys.json

For each file and text: the tokens of the text, and the tokens chosen greedily after it, each with the logarithm of its
probability and its lead over the second choice. Then the tokens of a chat with tools, rendered by the engine that chat
templates are written for.
"""

import json
import pathlib
import sys
import urllib.request

import jinja2
import xllamacpp

STEPS = 12
TEXTS = ["the other one", "I'm 12 and the sky is blue.", "fn main() {\n    let x = 42;\n}\n"]

CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a.txt, then b.txt."},
        {"role": "assistant", "content": "First both.", "tool_calls": [
            {"type": "function", "function": {"name": "eca__read_file", "arguments": {"path": "a.txt", "limit": 3}}},
            {"type": "function", "function": {"name": "eca__read_file", "arguments": {"path": "b.txt"}}}]},
        {"role": "tool", "content": "line \"one\""},
        {"role": "tool", "content": "zwei <ü>"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"type": "function", "function": {
        "name": "eca__read_file", "description": "Reads a file's text.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
                       "required": ["path"]}}}],
}


def chat_tokens(server):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string((pathlib.Path(__file__).parent / "tools.jinja").read_text())
    text = template.render(**CHAT, add_generation_prompt=True, enable_thinking=False)
    return post(server, "tokenize", {"content": text, "parse_special": True})["tokens"]


def start(path):
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.warmup = False
    # The plain CPU kernels, which are the same on every machine.
    params.no_extra_bufts = True
    return xllamacpp.Server(params)


def post(server, method, body):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.listening_address}/{method}", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))


def record(server, text):
    tokens = post(server, "tokenize", {"content": text, "parse_special": False})["tokens"]
    chosen = post(server, "completion", {"prompt": tokens, "n_predict": STEPS, "temperature": 0, "return_tokens": True})
    steps = []
    for count, token in enumerate(chosen["tokens"]):
        # One token at a time: the server gives no odds for a token that is a part of a letter.
        asked = {"prompt": tokens + chosen["tokens"][:count], "n_predict": 1, "temperature": 0, "n_probs": 2}
        odds = post(server, "completion", asked).get("completion_probabilities")
        if odds and odds[0]["id"] == token:
            first, second = odds[0]["top_logprobs"][:2]
            lead = round(first["logprob"] - second["logprob"], 4)
            steps.append({"token": token, "logprob": round(first["logprob"], 4), "lead": lead})
        else:
            steps.append({"token": token})
    return {"text": text, "tokens": tokens, "steps": steps}


def main():
    print('{"engine": "llama.cpp by xllamacpp %s", "toys": {' % xllamacpp.__version__)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.gguf"))
    for path in paths:
        server = start(path)
        cases = ",\n ".join(json.dumps(record(server, text), separators=(",", ":")) for text in TEXTS)
        print(f'"{path.stem}": [\n {cases}]' + ("," if path != paths[-1] else ""))
    print('},\n"chat": ' + json.dumps(chat_tokens(server), separators=(",", ":")) + "}")


main()
