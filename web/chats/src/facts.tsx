// The task list and the cost of a chat.
import { Icon } from "../../common/icons";
import { Badge } from "../../common/parts";
import type { OpenChat } from "./store";
import type { CallItem, Task, Usage } from "./types";
import { costText, countText } from "./words";

/** The newest task list of the chat. */
export function tasksOf(open: OpenChat): Task[] {
  const call = open.entries.findLast((entry): entry is CallItem => "item" in entry && entry.type === "call" && entry.details?.type === "tasks");
  return call?.details?.type === "tasks" ? call.details.tasks : [];
}

export function Facts({ open }: { open: OpenChat }) {
  return (
    <div class="stack facts">
      <Tasks tasks={tasksOf(open)} />
      {open.usage === undefined ? null : <Cost usage={open.usage} />}
    </div>
  );
}

const STATUS = { pending: { label: "To do", icon: "clock" }, inProgress: { label: "In progress", icon: "arrow" }, done: { label: "Done", icon: "check" } } as const;

function Tasks({ tasks }: { tasks: Task[] }) {
  const done = tasks.filter((task) => task.status === "done").length;
  return (
    <section class="stack" aria-label="Tasks">
      <h3>
        Tasks {tasks.length === 0 ? null : <Badge tone={done === tasks.length ? "good" : "neutral"}>{`${done} of ${tasks.length} done`}</Badge>}
      </h3>
      {tasks.length === 0 ? (
        <p class="note">No task list yet.</p>
      ) : (
        <ul class="tasks">
          {tasks.map((task) => (
            <li key={task.text} class={`task is-${task.status}`}>
              <Icon name={STATUS[task.status].icon} />
              <span>
                <span class="hidden">{STATUS[task.status].label}: </span>
                {task.text}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Cost({ usage }: { usage: Usage }) {
  const share = usage.contextLimit === null || usage.contextLimit === 0 ? undefined : Math.min(100, Math.round((usage.contextTokens / usage.contextLimit) * 100));
  return (
    <section class="stack" aria-label="Cost">
      <h3>Cost</h3>
      <p class="cost">{costText(usage.costUsd)}</p>
      <dl class="figures">
        <div>
          <dt>Read</dt>
          <dd>
            {countText(usage.inputTokens)} tokens{usage.cachedTokens === 0 ? "" : `, ${countText(usage.cachedTokens)} from the cache`}
          </dd>
        </div>
        <div>
          <dt>Written</dt>
          <dd>{countText(usage.outputTokens)} tokens</dd>
        </div>
        <div>
          <dt>Context</dt>
          <dd>
            {countText(usage.contextTokens)}
            {usage.contextLimit === null ? " tokens" : ` of ${countText(usage.contextLimit)} tokens`}
          </dd>
        </div>
      </dl>
      {share === undefined ? null : <progress class="meter" aria-label="Context used" max={100} value={share} />}
      {usage.spent.length < 2 ? null : (
        <ul class="note spent">
          {usage.spent.map((one) => (
            <li key={`${one.purpose} ${one.model}`}>
              {one.purpose}, {one.model}: {one.calls === 1 ? "1 call" : `${one.calls} calls`}, {costText(one.costUsd)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
