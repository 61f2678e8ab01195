// The whole page: the top bar, the list of chats, the chat, and what lies above them.
import { useEffect } from "preact/hooks";
import { Icon } from "../../studio/src/icons";
import { Button, Empty, Loading, Menu } from "../../studio/src/parts";
import { newChat, setTheme } from "./actions";
import { ChatPane } from "./chat";
import { ChatList } from "./list";
import { closeNotice, usePage } from "./store";
import type { Page } from "./store";
import type { Theme } from "./types";

const THEMES: { theme: Theme; label: string; icon: "auto" | "sun" | "moon" }[] = [
  { theme: "auto", label: "As the system", icon: "auto" },
  { theme: "light", label: "Light", icon: "sun" },
  { theme: "dark", label: "Dark", icon: "moon" },
];

export function App() {
  const page = usePage();
  useTheme(page.theme);
  const title = page.open?.chat?.title;
  useEffect(() => {
    document.title = page.open === undefined ? "Chats – Dragoman" : `${title ?? "New chat"} – Dragoman`;
  }, [title, page.open === undefined]);
  if (page.phase === "no-session") return <NoSession />;
  return (
    <div class="page" data-view={page.open === undefined ? "list" : "chat"}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the chat
      </a>
      <TopBar page={page} />
      {page.isLinked ? null : (
        <div class="banner tone-bad" role="alert">
          <Icon name="warning" />
          <p>
            <strong>Dragoman does not answer.</strong> Trying again. If you ended it, start <code class="code">dragoman serve</code> again.
          </p>
        </div>
      )}
      {page.phase === "starting" ? (
        <main class="center-page">
          <Loading text="Opening the chats…" />
        </main>
      ) : (
        <main class="columns-page">
          <ChatList page={page} />
          <div id="main" tabIndex={-1} class="main-pane" role="region" aria-label={page.open === undefined ? "Chat" : (title ?? "New chat")}>
            {page.open === undefined ? (
              <Empty icon="chat" title="No chat is open" text={`Choose one from the list, or begin a new one in ${page.about?.folders[0] ?? "this folder"}.`}>
                <Button label="New chat" icon="plus" kind="primary" whenPressed={() => void newChat()} />
              </Empty>
            ) : (
              <ChatPane key={page.open.key} page={page} open={page.open} />
            )}
          </div>
        </main>
      )}
      <p class="hidden" role="status" aria-live="polite">
        {page.said}
      </p>
      <Notices page={page} />
    </div>
  );
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function useTheme(theme: Theme) {
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      document.documentElement.dataset.theme = theme === "dark" || (theme === "auto" && media.matches) ? "dark" : "light";
    };
    apply();
    media.addEventListener("change", apply);
    return () => media.removeEventListener("change", apply);
  }, [theme]);
}

function TopBar({ page }: { page: Page }) {
  const theme = THEMES.find((one) => one.theme === page.theme) ?? THEMES[0];
  return (
    <header>
      <h1 class="hidden">Chats of Dragoman</h1>
      <div class="top">
        <div class="brand">
          <img src="/assets/icon.svg" alt="" width="24" height="24" />
          <span aria-hidden="true">Chats</span>
        </div>
        <span class="grow" />
        <Button label="New chat" icon="plus" kind="plain" whenPressed={() => void newChat()} isDisabled={page.phase !== "ready"} />
        <Menu
          label="Theme"
          icon={theme?.icon ?? "auto"}
          items={THEMES.map((one) => ({ label: one.label, icon: one.icon, isChecked: one.theme === page.theme, choose: () => setTheme(one.theme) }))}
        />
      </div>
    </header>
  );
}

function Notices({ page }: { page: Page }) {
  return (
    <div class="notices" role="status" aria-live="polite">
      {page.notices.map((notice) => (
        <div key={notice.id} class={`notice tone-${notice.tone === "bad" ? "bad" : "neutral"}`}>
          <Icon name={notice.tone === "bad" ? "warning" : "check"} />
          <p>{notice.text}</p>
          <Button label="Dismiss" icon="close" kind="quiet" isIconOnly whenPressed={() => closeNotice(notice.id)} />
        </div>
      ))}
    </div>
  );
}

function NoSession() {
  return (
    <main class="center-page">
      <h1 class="hidden">Dragoman</h1>
      <Empty icon="key" title="This page needs its link" text="The link that dragoman serve prints works once. Press Enter in its terminal for a new one, or start it again." />
    </main>
  );
}
