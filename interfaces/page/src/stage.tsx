// The right side: the toolbar, what has to be decided before the interface may call the API, the frame, and the console.
import { useEffect, useRef, useState } from "preact/hooks";
import { attempt, buildAgain } from "./actions";
import { CallError } from "../../../web/common/problem";
import { call, fetchFile, problemOf } from "./api";
import { Console } from "./console";
import { saveBlob } from "./files";
import { reloadFrame, setFramePlace, showFrame } from "./frames";
import { Icon } from "../../../web/common/icons";
import { Intake, SupplyDialog } from "./intake";
import { Badge, Button, Confirm, Dot, Empty, Loading, Menu, ProblemNote } from "../../../web/common/parts";
import type { Tone } from "../../../web/common/parts";
import { tell, tellProblem, update } from "./store";
import type { Studio } from "./store";
import type { Connection, Tab } from "./types";

export const STATES: Record<Connection["state"], { label: string; tone: Tone }> = {
  disconnected: { label: "Not connected", tone: "neutral" },
  connecting: { label: "Connecting", tone: "accent" },
  connected: { label: "Connected", tone: "good" },
  degraded: { label: "Degraded", tone: "warn" },
  expired: { label: "Sign-in expired", tone: "warn" },
  unreachable: { label: "Unreachable", tone: "bad" },
};

export const connectionOf = (studio: Studio, tab: Tab) => studio.told.connections.find((one) => one.key === tab.connection);

export function Stage({ studio, tab }: { studio: Studio; tab: Tab }) {
  const place = useRef<HTMLDivElement>(null);
  const frame = studio.frames[tab.id];
  const hasInterface = tab.current !== null;
  useEffect(() => {
    if (place.current !== null) setFramePlace(place.current);
  }, []);
  useEffect(() => showFrame(tab), [tab.id, tab.current]);
  return (
    <section class="stage" aria-label="Interface">
      <Toolbar studio={studio} tab={tab} />
      {hasInterface ? <Banners studio={studio} tab={tab} /> : null}
      <div class="stage-body">
        <div ref={place} class="frames" hidden={!hasInterface || frame?.phase === "failed"} />
        {hasInterface && (frame === undefined || frame.phase === "loading") ? (
          <div class="cover">
            <Loading text="Starting the interface…" />
          </div>
        ) : null}
        {hasInterface && frame?.phase === "failed" ? <FrameFailed tab={tab} message={frame.message ?? ""} /> : null}
        {hasInterface ? null : tab.state === "generating" ? <Building tab={tab} /> : tab.state === "spec-loaded" ? <NotBuilt tab={tab} /> : <Intake key={tab.id} tab={tab} />}
      </div>
      {studio.isConsoleShown ? <Console studio={studio} tab={tab} /> : null}
    </section>
  );
}

function Toolbar({ studio, tab }: { studio: Studio; tab: Tab }) {
  const connection = connectionOf(studio, tab);
  const state = STATES[connection?.state ?? "disconnected"];
  const hasInterface = tab.current !== null;
  const [isExporting, setIsExporting] = useState(false);
  const save = async (format: "vite" | "html" | "jsx") => {
    setIsExporting(true);
    try {
      const { blob, name } = await fetchFile(`/tabs/${tab.id}/export`, { format });
      saveBlob(blob, name);
      tell(`Saved ${name}.`);
    } catch (error) {
      tellProblem(problemOf(error));
    } finally {
      setIsExporting(false);
    }
  };
  return (
    <div class="pane-head toolbar" role="toolbar" aria-label="Interface tools">
      <button type="button" class="button button-quiet tool" disabled={!hasInterface} onClick={() => update({ panel: "history" })}>
        <Icon name="history" />
        <span>{hasInterface ? `Version ${tab.current}` : "History"}</span>
      </button>
      <button type="button" class="button button-quiet tool" disabled={tab.specification === null} onClick={() => update({ panel: "connection" })}>
        <Dot tone={state.tone} isBusy={connection?.state === "connecting"} />
        <span>{state.label}</span>
      </button>
      <span class="grow" />
      <Button
        label="Console"
        icon="terminal"
        kind="quiet"
        isPressed={studio.isConsoleShown}
        whenPressed={() => update({ isConsoleShown: !studio.isConsoleShown })}
      />
      <Menu
        label="Export"
        text={isExporting ? "Exporting…" : "Export"}
        icon="download"
        isDisabled={!hasInterface || isExporting}
        items={[
          { label: "Vite project", note: "A zip with TypeScript sources", choose: () => void save("vite") },
          { label: "One HTML file", note: "Opens without a build", choose: () => void save("html") },
          { label: "JSX module", note: "The code of this version", choose: () => void save("jsx") },
        ]}
      />
    </div>
  );
}

function Building({ tab }: { tab: Tab }) {
  return (
    <div class="cover">
      <div class="skeleton" aria-hidden="true">
        <span />
        <span />
        <span />
        <span />
      </div>
      <Loading text={`Building an interface for ${tab.specification?.title ?? "the specification"}…`} />
      <p class="note">{tab.specification === null ? "" : `${tab.specification.operations} operations. The code shows in the chat as it comes.`}</p>
    </div>
  );
}

/** Studio ended before the interface was made. */
function NotBuilt({ tab }: { tab: Tab }) {
  return (
    <div class="cover">
      <Empty icon="layout" title="No interface yet" text={`${tab.specification?.title ?? "The specification"} is here, its interface is not.`}>
        <Button label="Build the interface" icon="spark" kind="primary" whenPressed={() => void buildAgain(tab.id)} />
      </Empty>
    </div>
  );
}

function FrameFailed({ tab, message }: { tab: Tab; message: string }) {
  return (
    <div class="cover">
      <Empty icon="warning" title="This version could not be shown" text={message}>
        <Button label="Try again" icon="reload" kind="primary" whenPressed={() => reloadFrame(tab)} />
        <Button label="Other versions" icon="history" whenPressed={() => update({ panel: "history" })} />
      </Empty>
    </div>
  );
}

function Banners({ studio, tab }: { studio: Studio; tab: Tab }) {
  return (
    <>
      <MissingBanner tab={tab} />
      <MissingToolsBanner tab={tab} />
      <ConnectionBanner studio={studio} tab={tab} />
    </>
  );
}

function MissingBanner({ tab }: { tab: Tab }) {
  const [isOpen, setIsOpen] = useState(false);
  const missing = tab.specification?.missing ?? [];
  if (missing.length === 0) return null;
  const [first] = missing;
  return (
    <div class="banner tone-warn" role="status">
      <Icon name="file" />
      <p>
        <strong>Parts of the specification are missing:</strong> {first?.location}
        {missing.length === 1 ? "" : ` and ${missing.length - 1} more`}
      </p>
      <Button label="Supply them" whenPressed={() => setIsOpen(true)} />
      {isOpen ? <SupplyDialog tab={tab} whenClosed={() => setIsOpen(false)} /> : null}
    </div>
  );
}

/** The interface is shown all the same: it holds what the tools answered, and only making it anew needs them. */
function MissingToolsBanner({ tab }: { tab: Tab }) {
  if (tab.missingTools.length === 0) return null;
  return (
    <div class="banner tone-warn" role="status">
      <Icon name="plug" />
      <p>
        <strong>Tools that this version was made with are not installed:</strong> {tab.missingTools.join(", ")}
      </p>
      <Button label="Open plugins" whenPressed={() => update({ panel: "plugins" })} />
    </div>
  );
}

function ConnectionBanner({ studio, tab }: { studio: Studio; tab: Tab }) {
  const connection = connectionOf(studio, tab);
  const openConnection = () => update({ panel: "connection" });
  if (tab.baseUrl === null)
    return (
      <div class="banner tone-warn" role="status">
        <Icon name="link" />
        <p>The specification names no server. Say where the API is to use live data.</p>
        <Button label="Set the address" kind="primary" whenPressed={openConnection} />
      </div>
    );
  if (!tab.baseUrl.isConfirmed) return <ConfirmBaseUrl tab={tab} />;
  if (tab.problem !== null)
    return (
      <div class="banner-wrap">
        <ProblemNote problem={tab.problem}>
          <Button label="Build again" icon="reload" whenPressed={() => void buildAgain(tab.id)} />
        </ProblemNote>
      </div>
    );
  if (connection?.state === "expired")
    return (
      <div class="banner tone-warn" role="alert">
        <Icon name="key" />
        <p>
          <strong>Your sign-in is not accepted any more.</strong> Sign in again; nothing on the page is lost.
        </p>
        <Button label="Sign in again" kind="primary" whenPressed={openConnection} />
      </div>
    );
  if (connection?.state === "unreachable")
    return (
      <div class="banner tone-bad" role="alert">
        <Icon name="warning" />
        <p>{connection.message ?? `${connection.key} does not answer.`}</p>
        <Button label="Check the connection" whenPressed={openConnection} />
      </div>
    );
  const needsSignIn = (tab.specification?.schemes.length ?? 0) > 0 && (connection === undefined || connection.kind === "none");
  if (needsSignIn && connection?.state !== "connected")
    return (
      <div class="banner tone-accent" role="status">
        <Icon name="key" />
        <p>
          <strong>Authentication required.</strong> Connect to see live data.
        </p>
        <Button label="Connect" kind="primary" whenPressed={openConnection} />
      </div>
    );
  return null;
}

/** Confirms where requests may go; asks once more about a private address that came from a specification. */
export function useBaseUrl(tab: Tab) {
  const [asked, setAsked] = useState<string>();
  const confirm = async (url: string, allowPrivate?: true): Promise<boolean> => {
    try {
      await call("PUT", `/tabs/${tab.id}/base-url`, { url, allowPrivate });
      return true;
    } catch (error) {
      const data = error instanceof CallError ? (error.problem.data as { private?: string } | undefined) : undefined;
      if (data?.private !== undefined) setAsked(url);
      else tellProblem(problemOf(error));
      return false;
    }
  };
  const question =
    asked === undefined ? null : (
      <Confirm
        title="Send requests to a private address?"
        text={
          <>
            <p class="address code">{asked}</p>
            <p>
              It is on your machine or in a private network{tab.baseUrl?.from === "specification" ? ", and the specification named it" : ""}. The
              interface will be able to call everything below this address.
            </p>
          </>
        }
        action="Allow"
        whenConfirmed={() => void confirm(asked, true)}
        whenClosed={() => setAsked(undefined)}
      />
    );
  return { confirm, question };
}

function ConfirmBaseUrl({ tab }: { tab: Tab }) {
  const { confirm, question } = useBaseUrl(tab);
  const [isBusy, setIsBusy] = useState(false);
  const url = tab.baseUrl?.url ?? "";
  const accept = () => {
    setIsBusy(true);
    void confirm(url).finally(() => setIsBusy(false));
  };
  return (
    <div class={`banner tone-${tab.baseUrl?.isPrivate === true ? "warn" : "accent"}`} role="status">
      <Icon name="shield" />
      <p>
        Send requests to <strong class="code">{url}</strong>? {tab.baseUrl?.isPrivate === true ? <Badge tone="warn">Private address</Badge> : null}
      </p>
      <Button label="Change" whenPressed={() => update({ panel: "connection" })} />
      <Button label="Confirm" kind="primary" isBusy={isBusy} whenPressed={accept} />
      {question}
    </div>
  );
}

export const testConnection = (tab: Tab, path?: string) => attempt(call<Connection>("POST", `/tabs/${tab.id}/connection/test`, { path }));
