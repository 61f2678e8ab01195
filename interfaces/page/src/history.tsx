// The versions of a tab: what each is, how two differ, and the way back to any of them.
import { useEffect, useState } from "preact/hooks";
import { loadVersions, revertTo } from "./actions";
import { call, problemOf } from "./api";
import { pairLines } from "./diff";
import { sizeText, timeText } from "./files";
import { Icon } from "../../../web/common/icons";
import { Badge, Button, Dialog, Empty, Loading, ProblemNote } from "../../../web/common/parts";
import { tell, update } from "./store";
import type { Studio } from "./store";
import type { Problem } from "../../../web/common/problem";
import type { Diff, Tab, Version } from "./types";

const KINDS = { generation: "Generated", customization: "Changed", rollback: "Restored" };

export function History({ studio, tab }: { studio: Studio; tab: Tab }) {
  const [hasMore, setHasMore] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [compared, setCompared] = useState<{ from: number; to: number }>();
  const versions = studio.versions[tab.id];
  const load = async () => {
    setIsBusy(true);
    setHasMore(await loadVersions(tab.id));
    setIsBusy(false);
  };
  useEffect(() => {
    if (versions === undefined) void load();
  }, [tab.id, versions === undefined]);
  const revert = async (version: Version) => {
    const made = await revertTo(tab.id, version.number);
    if (made === undefined) return;
    tell(`Version ${version.number} is back, as version ${made.number}.`);
    update({ panel: undefined });
  };
  return (
    <Dialog title="Version history" kind="sheet" whenClosed={() => update({ panel: undefined })}>
      {versions === undefined ? (
        <Loading text="Loading the versions…" />
      ) : versions.length === 0 ? (
        <Empty icon="history" title="No versions yet" text="Each generation, each change and each way back is kept here." />
      ) : (
        <ol class="versions">
          {versions.map((version) => (
            <VersionRow key={version.number} tab={tab} version={version} compare={(from, to) => setCompared({ from, to })} revert={() => void revert(version)} />
          ))}
        </ol>
      )}
      {hasMore ? <Button label="Older versions" isBusy={isBusy} whenPressed={() => void load()} /> : null}
      {compared === undefined ? null : <Compare tab={tab} versions={versions ?? []} start={compared} whenClosed={() => setCompared(undefined)} />}
    </Dialog>
  );
}

interface RowProps {
  tab: Tab;
  version: Version;
  compare: (from: number, to: number) => void;
  revert: () => void;
}

function VersionRow({ tab, version, compare, revert }: RowProps) {
  const isCurrent = tab.current === version.number;
  return (
    <li class={`version${isCurrent ? " is-current" : ""}`}>
      <div class="row">
        <strong>Version {version.number}</strong>
        <Badge tone={version.kind === "customization" ? "accent" : version.kind === "rollback" ? "warn" : "neutral"}>{KINDS[version.kind]}</Badge>
        {isCurrent ? <Badge tone="good">Shown</Badge> : null}
        <span class="grow" />
        <time class="note" dateTime={new Date(version.time).toISOString()}>
          {timeText(version.time)}
        </time>
      </div>
      <p>{version.description}</p>
      {version.prompt === null ? null : <p class="quote">{version.prompt}</p>}
      {version.missingPlugins.length === 0 ? null : (
        <p class="inline-warning">
          <Icon name="warning" /> Needs tools that are not installed: {version.missingPlugins.join(", ")}
        </p>
      )}
      <div class="row">
        <span class="note code">
          {version.hash.slice(0, 8)} · {sizeText(version.size)}
        </span>
        <span class="grow" />
        {version.parent === null ? null : (
          <Button label="Changes" icon="diff" kind="quiet" hint={`Compare with version ${version.parent}`} whenPressed={() => compare(version.parent ?? 0, version.number)} />
        )}
        {isCurrent ? null : <Button label="Restore" icon="undo" hint={`Go back to version ${version.number}`} whenPressed={revert} />}
      </div>
    </li>
  );
}

interface CompareProps {
  tab: Tab;
  versions: Version[];
  start: { from: number; to: number };
  whenClosed: () => void;
}

function Compare({ tab, versions, start, whenClosed }: CompareProps) {
  const [from, setFrom] = useState(start.from);
  const [to, setTo] = useState(start.to);
  const [diff, setDiff] = useState<Diff>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    let isWanted = true;
    setDiff(undefined);
    setProblem(undefined);
    call<Diff>("GET", `/tabs/${tab.id}/diff?from=${from}&to=${to}`).then(
      (answer) => isWanted && setDiff(answer),
      (error: unknown) => isWanted && setProblem(problemOf(error)),
    );
    return () => {
      isWanted = false;
    };
  }, [from, to]);
  const choice = (label: string, value: number, whenChanged: (number: number) => void) => (
    <label class="inline-field">
      <span>{label}</span>
      <select class="input small" value={String(value)} onChange={(event) => whenChanged(Number(event.currentTarget.value))}>
        {versions.map((version) => (
          <option key={version.number} value={String(version.number)}>
            Version {version.number}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Dialog title="Compare versions" kind="wide" whenClosed={whenClosed}>
      <div class="row">
        {choice("From", from, setFrom)}
        <Icon name="arrow" />
        {choice("To", to, setTo)}
        <span class="grow" />
        {diff === undefined ? null : (
          <p class="diff-figures">
            <span class="tone-good">+{diff.added}</span> <span class="tone-bad">−{diff.removed}</span>
          </p>
        )}
      </div>
      {problem !== undefined ? <ProblemNote problem={problem} /> : diff === undefined ? <Loading text="Comparing…" /> : <Lines diff={diff} from={from} to={to} />}
    </Dialog>
  );
}

function Lines({ diff, from, to }: { diff: Diff; from: number; to: number }) {
  if (diff.hunks.length === 0) return <Empty icon="check" title="No difference" text="Both versions have the same code." />;
  return (
    <>
      {diff.isCut === true ? <p class="note">The versions differ in more than is shown here.</p> : null}
      <div class="diff" tabIndex={0} role="region" aria-label="Differences">
        <table>
          <colgroup>
            <col class="number" />
            <col />
            <col class="number" />
            <col />
          </colgroup>
          <thead>
            <tr>
              <th scope="col" colSpan={2}>
                Version {from}
              </th>
              <th scope="col" colSpan={2}>
                Version {to}
              </th>
            </tr>
          </thead>
          {diff.hunks.map((hunk) => (
            <tbody key={`${hunk.left} ${hunk.right}`}>
              {pairLines(hunk).map((pair) => (
                <tr key={`${pair.left?.number} ${pair.right?.number}`}>
                  <td class="number">{pair.left?.number}</td>
                  <td class={pair.left === undefined ? "is-absent" : pair.isSame ? "" : "is-removed"}>{pair.left?.text}</td>
                  <td class="number">{pair.right?.number}</td>
                  <td class={pair.right === undefined ? "is-absent" : pair.isSame ? "" : "is-added"}>{pair.right?.text}</td>
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </div>
    </>
  );
}
