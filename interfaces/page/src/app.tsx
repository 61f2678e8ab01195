// The whole page: the top bar, the two sides with the line between them, and what lies above them.
import { useEffect } from "preact/hooks";
import { openTab, restartCli, setPreferences } from "./actions";
import { Chat } from "./chat";
import { ConnectionPanel } from "./connection";
import { Divider } from "./divider";
import { dropOtherFrames, isDark, setFrameThemes } from "./frames";
import { History } from "./history";
import { Icon } from "../../../web/common/icons";
import { Notices } from "../../../web/common/notices";
import { Button, Dot, Empty, Loading, Menu } from "../../../web/common/parts";
import type { Tone } from "../../../web/common/parts";
import { PluginPanel, ToolQuestion } from "./plugins";
import { Stage } from "./stage";
import { activeTab, closeNotice, update, useStudio } from "./store";
import type { Studio } from "./store";
import { TabStrip } from "./tabs";
import type { Cli, Theme } from "./types";

export function App() {
  const studio = useStudio();
  const { theme, chatWidth } = studio.told.preferences;
  const tab = activeTab(studio);
  const asked = studio.told.toolCalls[0];
  useEffect(() => {
    const apply = () => {
      document.documentElement.dataset.theme = isDark() ? "dark" : "light";
      setFrameThemes();
    };
    apply();
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", apply);
    return () => media.removeEventListener("change", apply);
  }, [theme]);
  useEffect(() => dropOtherFrames(studio.told.tabs), [studio.told.tabs.length]);
  useEffect(() => {
    document.title = tab === undefined ? "Dragoman Studio" : `${tab.title} – Dragoman Studio`;
  }, [tab?.title]);
  useEffect(() => {
    if (tab !== undefined && studio.told.preferences.activeTab !== tab.id) setPreferences({ activeTab: tab.id });
  }, [tab?.id]);
  // The first time there is nothing: begin with an empty tab.
  const isNew = studio.phase === "ready" && studio.told.tabs.length + studio.told.closed.length === 0;
  useEffect(() => {
    if (isNew) void openTab();
  }, [isNew]);
  if (studio.phase === "no-session") return <NoSession />;
  return (
    <div class="studio" data-view={studio.view}>
      <a class="skip" href="#workspace">
        Skip to the workspace
      </a>
      <TopBar studio={studio} />
      <Banners studio={studio} />
      {studio.phase === "starting" ? (
        <main class="center-page">
          <Loading text="Opening Studio…" />
        </main>
      ) : tab === undefined ? (
        <main class="center-page" id="workspace">
          <Empty icon="layout" title="No interface is open" text="Open a tab and drop an API specification into it.">
            <Button label="New tab" icon="plus" kind="primary" whenPressed={() => void openTab()} />
          </Empty>
        </main>
      ) : (
        <main class="main">
          <div
            class="split"
            id="workspace"
            role="tabpanel"
            aria-labelledby={`tab-${tab.id}`}
            tabIndex={-1}
            ref={(element) => element?.style.setProperty("--chat", `${chatWidth}%`)}
          >
            <Chat studio={studio} tab={tab} />
            <Divider value={chatWidth} />
            <Stage studio={studio} tab={tab} />
          </div>
        </main>
      )}
      <ViewSwitch studio={studio} />
      {tab !== undefined && studio.panel === "history" ? <History key={tab.id} studio={studio} tab={tab} /> : null}
      {tab !== undefined && studio.panel === "connection" ? <ConnectionPanel key={tab.id} studio={studio} tab={tab} /> : null}
      {studio.panel === "plugins" ? <PluginPanel studio={studio} /> : null}
      {asked === undefined ? null : <ToolQuestion key={asked.id} toolCall={asked} tab={studio.told.tabs.find((one) => one.id === asked.tab)?.title ?? ""} />}
      <Notices notices={studio.notices} whenClosed={closeNotice} />
    </div>
  );
}

const CLI_STATES: Record<Cli["state"], { label: string; tone: Tone; isBusy: boolean }> = {
  starting: { label: "Starting", tone: "accent", isBusy: true },
  running: { label: "Running", tone: "good", isBusy: false },
  restarting: { label: "Restarting", tone: "warn", isBusy: true },
  stopped: { label: "Stopped", tone: "neutral", isBusy: false },
  failed: { label: "Failed", tone: "bad", isBusy: false },
};

const THEMES: { theme: Theme; label: string; icon: "auto" | "sun" | "moon" }[] = [
  { theme: "auto", label: "As the system", icon: "auto" },
  { theme: "light", label: "Light", icon: "sun" },
  { theme: "dark", label: "Dark", icon: "moon" },
];

function TopBar({ studio }: { studio: Studio }) {
  const { cli, preferences } = studio.told;
  const state = CLI_STATES[cli.state];
  const theme = THEMES.find((one) => one.theme === preferences.theme) ?? THEMES[0];
  return (
    <header class="top">
      <div class="brand">
        <img src="/assets/icon.svg" alt="" width="24" height="24" />
        <h1>Studio</h1>
      </div>
      {studio.phase === "ready" ? <TabStrip studio={studio} /> : <span class="grow" />}
      <p class="cli" role="status" title={cli.message ?? `dragoman copilot${cli.pid === null ? "" : `, process ${cli.pid}`}`}>
        <Dot tone={state.tone} isBusy={state.isBusy} />
        <span class="hidden">Assistant: </span>
        <span class="cli-label">{state.label}</span>
        {cli.pending > 0 ? <span class="note">{cli.pending} pending</span> : null}
      </p>
      <Button label="Plugins" icon="plug" kind="quiet" isIconOnly whenPressed={() => update({ panel: "plugins" })} />
      <Menu
        label="Theme"
        icon={theme?.icon ?? "auto"}
        items={THEMES.map((one) => ({ label: one.label, icon: one.icon, isChecked: one.theme === preferences.theme, choose: () => setPreferences({ theme: one.theme }) }))}
      />
    </header>
  );
}

function Banners({ studio }: { studio: Studio }) {
  const { cli } = studio.told;
  if (!studio.isLinked)
    return (
      <div class="banner tone-bad" role="alert">
        <Icon name="warning" />
        <p>
          <strong>The studio process does not answer.</strong> Trying again. If you ended it, start <code class="code">dragoman studio</code> again.
        </p>
      </div>
    );
  if (cli.state === "failed" || cli.state === "stopped")
    return (
      <div class="banner tone-bad" role="alert">
        <Icon name="warning" />
        <p>
          <strong>The assistant has stopped.</strong> {cli.message ?? "It failed five times in a row."}
        </p>
        <Button label="Start it again" icon="reload" kind="primary" whenPressed={() => void restartCli()} />
      </div>
    );
  if (cli.state === "restarting")
    return (
      <div class="banner tone-warn" role="status">
        <Icon name="reload" />
        <p>
          <strong>The assistant is being restarted.</strong> What was asked for is sent again{cli.pending > 0 ? ` (${cli.pending})` : ""}.
        </p>
      </div>
    );
  return null;
}

/** On a narrow screen one side is seen at a time. */
function ViewSwitch({ studio }: { studio: Studio }) {
  return (
    <nav class="switch" aria-label="View">
      {(["chat", "interface"] as const).map((view) => (
        <button key={view} type="button" class="segment" aria-pressed={studio.view === view} onClick={() => update({ view })}>
          <Icon name={view === "chat" ? "chat" : "layout"} />
          {view === "chat" ? "Chat" : "Interface"}
        </button>
      ))}
    </nav>
  );
}

function NoSession() {
  return (
    <main class="center-page">
      <h1 class="hidden">Dragoman Studio</h1>
      <Empty
        icon="key"
        title="This page needs its link"
        text="The link that dragoman studio prints works once. Press Enter in its terminal for a new one, or start it again."
      />
    </main>
  );
}
