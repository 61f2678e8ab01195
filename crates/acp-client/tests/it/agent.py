"""An agent of the Agent Client Protocol, version 1, for tests. The words of a prompt say what it does.

Variables: AGENT_STATE is a folder for its sessions, AGENT_NO_LOAD takes the loading of sessions away, AGENT_AUTH asks for a
login, AGENT_VERSION is the protocol version it answers with, AGENT_LOG is a file with one line for each start, AGENT_OFFERS
gives it modes, options and commands of its own, AGENT_FALSE_RESUME has it name a method that it does not have,
AGENT_LATE_REPLAY has it repeat a loaded session after its answer.
"""
import json
import os
import subprocess
import sys
import threading
import time

state = os.environ.get("AGENT_STATE", "")
write_lock = threading.Lock()
answers, answered = {}, threading.Condition()
cancelled = threading.Event()
logged_in = not os.environ.get("AGENT_AUTH")
next_id = 0
model, mode, effort = "first", "ask", "low"
servers = []

if os.environ.get("AGENT_LOG"):
    with open(os.environ["AGENT_LOG"], "a") as log:
        log.write(f"{os.getpid()}\n")


def send(message):
    message["jsonrpc"] = "2.0"
    with write_lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def call(method, params):
    """A request to the client; gives the whole response."""
    global next_id
    with answered:
        next_id += 1
        number = next_id
    send({"id": number, "method": method, "params": params})
    with answered:
        while number not in answers:
            answered.wait()
        return answers.pop(number)


def update(session, name, /, **members):
    send({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": name, **members}}})


def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def sessions():
    try:
        with open(os.path.join(state, "sessions.json")) as file:
            return json.load(file)
    except OSError:
        return {}


def remember(session, texts):
    known = sessions()
    known.setdefault(session, []).extend(texts)
    if state:
        with open(os.path.join(state, "sessions.json"), "w") as file:
            json.dump(known, file)


def permitted(session, call_id, **members):
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]
    answer = call("session/request_permission", {"sessionId": session, "toolCall": {"toolCallId": call_id, **members}, "options": options})
    return answer.get("result", {}).get("outcome", {}).get("optionId") == "yes"


def edit(session, path, text):
    try:
        with open(path) as file:
            old = file.read()
    except OSError:
        old = None
    diff = [{"type": "diff", "path": path, "oldText": old, "newText": text}]
    update(session, "tool_call", toolCallId="e1", title=f"Edit {path}", kind="edit", status="pending", content=diff, locations=[{"path": path}], rawInput={"file_path": path})
    if permitted(session, "e1", title=f"Edit {path}", kind="edit", content=diff, locations=[{"path": path}]):
        update(session, "tool_call_update", toolCallId="e1", status="in_progress")
        try:
            with open(path, "w") as file:
                file.write(text)
            update(session, "tool_call_update", toolCallId="e1", status="completed")
            say(session, "edited")
        except OSError as error:
            update(session, "tool_call_update", toolCallId="e1", status="failed", rawOutput=str(error))
            say(session, f"failed: {error}")
    else:
        update(session, "tool_call_update", toolCallId="e1", status="failed")
        say(session, "refused")


def run(session, line, asks):
    update(session, "tool_call", toolCallId="r1", title=line, kind="execute", status="pending", rawInput={"command": line})
    if asks and not permitted(session, "r1", title=line, kind="execute", rawInput={"command": line}):
        update(session, "tool_call_update", toolCallId="r1", status="failed")
        return say(session, "refused")
    update(session, "tool_call_update", toolCallId="r1", status="in_progress")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    output = done.stdout + done.stderr
    update(session, "tool_call_update", toolCallId="r1", status="completed" if done.returncode == 0 else "failed",
           content=[{"type": "content", "content": {"type": "text", "text": output}}], rawOutput={"exitCode": done.returncode})
    say(session, f"ran: {output}")


def terminal(session, line):
    created = call("terminal/create", {"sessionId": session, "command": line, "args": []})
    if "error" in created:
        return say(session, f"no terminal: {created['error']['message']}")
    place = {"sessionId": session, "terminalId": created["result"]["terminalId"]}
    update(session, "tool_call", toolCallId="t1", title=line, kind="execute", status="in_progress", content=[{"type": "terminal", "terminalId": place["terminalId"]}])
    end = call("terminal/wait_for_exit", place)["result"]
    output = call("terminal/output", place)["result"]["output"]
    update(session, "tool_call_update", toolCallId="t1", status="completed", content=[{"type": "terminal", "terminalId": place["terminalId"]}])
    call("terminal/release", place)
    say(session, f"exit {end['exitCode']}: {output}")


def offered_modes():
    return {"currentModeId": mode, "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


def offered_options():
    choices = [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]
    return [{"id": "effort", "name": "Effort", "type": "select", "currentValue": effort, "options": choices, "category": "thought_level"}]


def call_tool(session, name, arguments):
    """Starts the first MCP server of the session, calls a tool of it, and says what came."""
    if not servers:
        return say(session, "no server")
    variables = {entry["name"]: entry["value"] for entry in servers[0]["env"]}
    server = subprocess.Popen([servers[0]["command"], *servers[0]["args"]], env={**os.environ, **variables},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(number, method, params):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        server.stdin.flush()
        while True:
            line = server.stdout.readline()
            if not line:
                raise OSError("the server is gone")
            message = json.loads(line)
            if message.get("id") == number:
                return message

    ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "double", "version": "1"}})
    names = [tool["name"] for tool in ask(2, "tools/list", {})["result"]["tools"]]
    answer = ask(3, "tools/call", {"name": name, "arguments": json.loads(arguments or "{}")})
    server.stdin.close()
    server.wait()
    result = answer.get("result", {})
    said = result.get("content", [{}])[0].get("text", answer.get("error", {}).get("message", ""))
    say(session, f"{', '.join(names)}: {'failed' if result.get('isError') else 'done'}: {said}")


def work(session, text):
    """Does what a prompt says; gives the stop reason, or None where no answer follows."""
    word, _, rest = text.partition(" ")
    first, _, second = rest.partition(" ")
    if word == "edit":
        edit(session, first, second)
    elif word == "write":
        answer = call("fs/write_text_file", {"sessionId": session, "path": first, "content": second})
        say(session, "written" if "result" in answer else f"not written: {answer['error']['message']}")
    elif word == "read":
        answer = call("fs/read_text_file", {"sessionId": session, "path": rest})
        say(session, answer["result"]["content"] if "result" in answer else f"not read: {answer['error']['message']}")
    elif word == "run":
        run(session, rest, False)
    elif word == "ask-run":
        run(session, rest, True)
    elif word == "terminal":
        terminal(session, rest)
    elif word == "plan":
        update(session, "plan", entries=[{"content": "look", "status": "completed", "priority": "high"}, {"content": "act", "status": "in_progress", "priority": "low"}])
        update(session, "usage_update", used=1200, size=200000, cost={"amount": 0.25, "currency": "USD"})
        say(session, "planned")
    elif word == "recall":
        say(session, "earlier: " + " | ".join(sessions().get(session, [])[:-1]))
    elif word == "model":
        say(session, f"model {model}, mode {mode}, effort {effort}")
    elif word == "/shout":
        say(session, rest.upper())
    elif word == "tool":
        call_tool(session, first, second)
    elif word == "later":
        # What is left to run between two prompts.
        subprocess.Popen(["sh", "-c", rest], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        say(session, "later")
    elif word == "flood":
        while not cancelled.is_set():
            say(session, "flood " * 2000)
    elif word == "calls":
        number = 0
        while not cancelled.is_set():
            number += 1
            update(session, "tool_call", toolCallId=f"c{number}", title="again", kind="other", status="completed")
    elif word == "silent":
        return None
    elif word == "stubborn":
        say(session, "I go on")
        return None
    elif word == "sleep":
        say(session, "asleep")
        cancelled.wait()
        return "cancelled"
    elif word == "die":
        say(session, "last words")
        time.sleep(0.3)
        sys.stderr.write("the agent is broken\n")
        sys.stderr.flush()
        os._exit(3)
    elif word == "other":
        update("another", "agent_message_chunk", content={"type": "text", "text": "stolen"})
        answer = call("fs/read_text_file", {"sessionId": "another", "path": "/etc/hosts"})
        say(session, "answered " + ("with a file" if "result" in answer else "with an error"))
    elif word == "junk":
        with write_lock:
            sys.stdout.write("Loading...\n{\"jsonrpc\": \"2.0\", \"method\": 5}\n{broken\n[1]\n")
            sys.stdout.flush()
        send({"method": "session/update", "params": {"sessionId": session, "update": "no object"}})
        send({"method": "session/update", "params": 7})
        send({"id": 999999, "result": {}})
        update(session, "tool_call", title="without an id")
        say(session, "after the junk")
    elif word == "huge":
        say(session, "x" * (40 << 20))
        say(session, "after the huge message")
    elif word == "refuse":
        return "refusal"
    else:
        update(session, "agent_thought_chunk", content={"type": "text", "text": "I greet"})
        say(session, "Hello ")
        say(session, "there")
    return "end_turn"


def pursue(session, texts):
    """What the agent does for a goal; gives the stop reason, or None where the prompt is about something else."""
    if texts[-1].startswith("Work until this command succeeds"):
        say(session, "I think it is done.")
    elif texts[-1].startswith("The goal is not reached yet"):
        say(session, f"I was told: {texts[0]}")
        with open("done", "w") as file:
            file.write("done\n")
    elif "GOAL: DONE" in texts[-1]:
        say(session, "All points hold.\nGOAL: DONE")
    else:
        return None
    return "end_turn"


def prompt(number, params):
    session = params["sessionId"]
    texts = [block.get("text", "") for block in params["prompt"]]
    remember(session, texts)
    cancelled.clear()
    try:
        reason = pursue(session, texts) or work(session, texts[-1])
    except Exception as error:
        send({"id": number, "error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}})
        return
    if reason:
        send({"id": number, "result": {"stopReason": reason, "usage": {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}}})


def handle(message):
    global logged_in, model, mode, effort, servers
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        can_load = not os.environ.get("AGENT_NO_LOAD")
        resume = {"resume": {}} if os.environ.get("AGENT_FALSE_RESUME") else {}
        send({"id": number, "result": {"protocolVersion": int(os.environ.get("AGENT_VERSION", "1")),
              "agentInfo": {"name": "double", "title": "Test Double", "version": "1.0"},
              "agentCapabilities": {"loadSession": can_load, "promptCapabilities": {"image": True}, "sessionCapabilities": resume},
              "authMethods": [{"id": "token", "name": "Token", "description": "From the environment"}]}})
    elif method == "authenticate":
        logged_in = True
        send({"id": number, "result": {}})
    elif method in ("session/new", "session/load"):
        if not logged_in:
            return send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
        servers = params.get("mcpServers", [])
        offered = {"modes": offered_modes(), "configOptions": offered_options()} if os.environ.get("AGENT_OFFERS") else {}
        models = {"currentModelId": "first", "availableModels": [{"modelId": "first", "name": "First"}, {"modelId": "second", "name": "Second"}]}
        if method == "session/new":
            session = f"s{len(sessions()) + 1}-{os.getpid()}"
            remember(session, [])
            send({"id": number, "result": {"sessionId": session, "models": models, **offered}})
            if offered:
                update(session, "available_commands_update", availableCommands=[{"name": "shout", "description": "Says it loudly", "input": {"hint": "what"}}, {"name": "compact", "description": "Its own compaction"}])
            return
        if params["sessionId"] not in sessions():
            return send({"id": number, "error": {"code": -32602, "message": "no such session"}})
        late = os.environ.get("AGENT_LATE_REPLAY")
        if late:
            send({"id": number, "result": {"models": models, **offered}})
            time.sleep(0.05)
        for text in sessions()[params["sessionId"]]:
            update(params["sessionId"], "user_message_chunk", content={"type": "text", "text": text})
            say(params["sessionId"], "replayed")
        if not late:
            send({"id": number, "result": {"models": models, **offered}})
    elif method == "session/set_model":
        model = params["modelId"]
        send({"id": number, "result": {}})
    elif method == "session/set_mode":
        mode = params["modeId"]
        update(params["sessionId"], "current_mode_update", currentModeId=mode)
        send({"id": number, "result": {}})
    elif method == "session/set_config_option":
        effort = params["value"]
        send({"id": number, "result": {"configOptions": offered_options()}})
    elif method == "session/prompt":
        threading.Thread(target=prompt, args=(number, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled.set()
    elif method is None and number is not None:
        with answered:
            answers[number] = message
            answered.notify_all()
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    try:
        handle(json.loads(line))
    except ValueError:
        pass
