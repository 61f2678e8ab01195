// MCP servers as plugins: what is there, adding one, removing one with a warning, and the question before each tool call.
import { useState } from "preact/hooks";
import { attempt } from "./actions";
import { call, problemOf } from "./api";
import { Icon } from "../../../web/common/icons";
import { Badge, Button, Confirm, Dialog, Empty, ProblemNote, TextField } from "../../../web/common/parts";
import type { Tone } from "../../../web/common/parts";
import { update } from "./store";
import type { Studio } from "./store";
import type { Problem } from "../../../web/common/problem";
import type { Plugin, ToolCall } from "./types";

const STATES: Record<Plugin["state"], { label: string; tone: Tone }> = {
  installing: { label: "Starting", tone: "accent" },
  installed: { label: "Ready", tone: "good" },
  error: { label: "Failed", tone: "bad" },
  uninstalling: { label: "Removing", tone: "warn" },
};

export function PluginPanel({ studio }: { studio: Studio }) {
  const [removing, setRemoving] = useState<Plugin>();
  const { plugins } = studio.told;
  return (
    <Dialog title="Plugins" kind="sheet" whenClosed={() => update({ panel: undefined })}>
      <p class="soft">The MCP servers of your settings. A wish may ask for a tool of those that were tried; each call is shown to you first.</p>
      {plugins.length === 0 ? (
        <Empty icon="plug" title="No plugins" text="Add an MCP server below." />
      ) : (
        <ul class="plugins">
          {plugins.map((plugin) => (
            <PluginRow key={plugin.name} plugin={plugin} remove={() => setRemoving(plugin)} />
          ))}
        </ul>
      )}
      <AddPlugin />
      {removing === undefined ? null : (
        <Confirm
          title={`Remove ${removing.name}?`}
          text={<Uses plugin={removing} />}
          action="Remove"
          isDangerous
          whenConfirmed={() => void attempt(call("DELETE", `/plugins/${encodeURIComponent(removing.name)}?force=true`))}
          whenClosed={() => setRemoving(undefined)}
        />
      )}
    </Dialog>
  );
}

function Uses({ plugin }: { plugin: Plugin }) {
  if (plugin.usedBy.length === 0) return <p>No interface uses it. It is taken out of your settings.</p>;
  return (
    <>
      <p>These interfaces use it. They are still shown, and name what they miss:</p>
      <ul class="bullets">
        {plugin.usedBy.map((use) => (
          <li key={use.tab}>{use.title}</li>
        ))}
      </ul>
    </>
  );
}

/** A date is the version of the protocol that server and client agreed on. */
const versionText = (version: string) => (/^\d{4}-\d\d-\d\d$/.test(version) ? `MCP ${version}` : version);

function PluginRow({ plugin, remove }: { plugin: Plugin; remove: () => void }) {
  const state = STATES[plugin.state];
  const isBusy = plugin.state === "installing" || plugin.state === "uninstalling";
  return (
    <li class="card">
      <div class="row">
        <Icon name="plug" />
        <strong>{plugin.name}</strong>
        {plugin.version === null ? null : <span class="note">{versionText(plugin.version)}</span>}
        <Badge tone={state.tone}>{state.label}</Badge>
        <span class="grow" />
        <Button
          label={`Try ${plugin.name}`}
          icon="reload"
          kind="quiet"
          isIconOnly
          hint="Start it once, to learn its version and tools"
          isDisabled={isBusy}
          whenPressed={() => void attempt(call("POST", `/plugins/${encodeURIComponent(plugin.name)}/try`, {}))}
        />
        <Button label={`Remove ${plugin.name}`} icon="trash" kind="quiet" isIconOnly isBusy={isBusy} whenPressed={remove} />
      </div>
      {plugin.message === null ? null : <p class="soft">{plugin.message}</p>}
      {plugin.tools.length === 0 ? null : (
        <p class="tools">
          {plugin.tools.map((tool) => (
            <code key={tool} class="code">
              {tool}
            </code>
          ))}
        </p>
      )}
      {plugin.usedBy.length === 0 ? null : <p class="note">Used by {plugin.usedBy.map((use) => use.title).join(", ")}</p>}
    </li>
  );
}

function AddPlugin() {
  const [name, setName] = useState("");
  const [target, setTarget] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const isAddress = /^https?:\/\//.test(target.trim());
  const add = async () => {
    setIsBusy(true);
    setProblem(undefined);
    const [command = "", ...args] = wordsOf(target);
    try {
      await call("POST", "/plugins", isAddress ? { name: name.trim(), url: target.trim() } : { name: name.trim(), command, args });
      setName("");
      setTarget("");
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <form
      class="card stack"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <h3>Add an MCP server</h3>
      <TextField label="Name" value={name} isRequired placeholder="weather" whenChanged={setName} />
      <TextField label="Command or address" value={target} isRequired isCode placeholder="npx -y some-mcp-server" note="A command runs on this machine with your rights." whenChanged={setTarget} />
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      <div class="row end">
        <Button label="Add" icon="plus" kind="primary" type="submit" isBusy={isBusy} isDisabled={name.trim() === "" || target.trim() === ""} />
      </div>
    </form>
  );
}

/** The words of a command line; quotes keep a word together. */
export function wordsOf(line: string): string[] {
  const words = line.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  return words.map((word) => (/^["']/.test(word) ? word.slice(1, -1) : word));
}

/** One call of a tool, to be allowed or not. */
export function ToolQuestion({ toolCall, tab }: { toolCall: ToolCall; tab: string }) {
  const settle = (allow: boolean) => {
    update(({ told }) => ({ told: { ...told, toolCalls: told.toolCalls.filter((one) => one.id !== toolCall.id) } }));
    void attempt(call("POST", `/tool-calls/${encodeURIComponent(toolCall.id)}`, { allow }));
  };
  return (
    <Dialog
      title="Allow this tool call?"
      whenClosed={() => settle(false)}
      foot={
        <>
          <Button label="Deny" whenPressed={() => settle(false)} />
          <Button label="Allow once" kind="primary" whenPressed={() => settle(true)} />
        </>
      }
    >
      <div class="stack">
        <p>
          For a wish in <strong>{tab}</strong> the model wants to call <code class="code">{toolCall.tool}</code> of <strong>{toolCall.plugin}</strong> with these arguments. Text
          of the specification may have led to this call: look at what would be sent.
        </p>
        {toolCall.reason === "" ? null : <p class="quote">{toolCall.reason}</p>}
        <pre class="code box" tabIndex={0} aria-label="Arguments">
          {JSON.stringify(toolCall.arguments, null, 2)}
        </pre>
      </div>
    </Dialog>
  );
}
