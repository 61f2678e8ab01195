"""A whole session through the official Python client. Prints one line of JSON: what the client saw.

Environment: AGENT (the program), WORKSPACE (the session's folder).
"""

import asyncio
import json
import os
import sys

import acp
from acp import schema

AGENT = os.environ["AGENT"]
WORKSPACE = os.environ["WORKSPACE"]

seen = {"stops": [], "permissions": [], "reads": [], "writes": [], "texts": {}, "loaded": []}
unsaved = {os.path.join(WORKSPACE, "hello.txt"): "the unsaved word is plover\n"}
answers = ["allow_once", "reject_once", "allow_always"]


class Client:
    def __init__(self):
        self.updates = []
        self.first_text = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        if update.session_update == "agent_message_chunk":
            self.first_text.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        option = answers.pop(0)
        seen["permissions"].append(
            {"title": tool_call.title, "kinds": [it.kind for it in options], "optionId": option}
        )
        outcome = {"outcome": "selected", "optionId": option}
        return schema.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        seen["reads"].append(path)
        if path not in unsaved:
            raise acp.RequestError(-32002, "There is no such file.")
        return schema.ReadTextFileResponse(content=unsaved[path])

    async def write_text_file(self, session_id, path, content, **_):
        seen["writes"].append(path)
        unsaved[path] = content
        with open(path, "w") as file:
            file.write(content)
        return schema.WriteTextFileResponse()

    def text(self, kind):
        return "".join(it.content.text for it in self.updates if it.session_update == kind)

    def calls(self):
        calls = [it for it in self.updates if it.session_update in ("tool_call", "tool_call_update")]
        return [it.status or "pending" for it in calls]


async def initialize(agent):
    return await agent.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_capabilities=schema.ClientCapabilities.model_validate(
            {"fs": {"readTextFile": True, "writeTextFile": True}}
        ),
        client_info=schema.Implementation(name="sdk-test", version="1"),
    )


async def first():
    client = Client()
    async with acp.spawn_agent_process(client, AGENT, "acp", env=dict(os.environ), cwd=WORKSPACE) as (agent, program):
        answer = await initialize(agent)
        seen["initialize"] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        session = await agent.new_session(cwd=WORKSPACE, mcp_servers=[])
        seen["session"] = session.session_id
        seen["modes"] = [it.id for it in session.modes.available_modes]

        async def say(words):
            return await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(words)])

        for words in ["read", "write", "run", "make"]:
            client.updates.clear()
            seen["stops"].append((await say(words)).stop_reason)
            seen["texts"][words] = client.text("agent_message_chunk")
            seen["texts"][f"{words} thought"] = client.text("agent_thought_chunk")
            seen["texts"][f"{words} calls"] = client.calls()
        client.first_text.clear()
        stopped = asyncio.create_task(say("count"))
        await client.first_text.wait()
        await agent.cancel(session_id=session.session_id)
        seen["stops"].append((await stopped).stop_reason)
        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        listed = await agent.list_sessions(cwd=WORKSPACE)
        seen["listed"] = [[it.session_id, it.title] for it in listed.sessions]
    seen["firstExit"] = program.returncode


async def second():
    client = Client()
    async with acp.spawn_agent_process(client, AGENT, "acp", env=dict(os.environ), cwd=WORKSPACE) as (agent, program):
        await initialize(agent)
        session_id = seen["session"]
        loaded = await agent.load_session(cwd=WORKSPACE, session_id=session_id, mcp_servers=[])
        seen["loadedMode"] = loaded.modes.current_mode_id
        seen["loaded"] = [it.session_update for it in client.updates]
        seen["loadedUser"] = client.text("user_message_chunk")
        await agent.close_session(session_id=session_id)
    seen["secondExit"] = program.returncode


async def main():
    await first()
    await second()
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
