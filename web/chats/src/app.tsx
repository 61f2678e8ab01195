// The whole page: the top bar, the list of chats, the chat, and what lies above them.
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../../common/icons";
import { Notices } from "../../common/notices";
import { Badge, Button, Empty, Loading, Menu, ProblemNote, TextField } from "../../common/parts";
import { newChat, setTheme } from "./actions";
import { isServer, logIn, logOut } from "./api";
import { ChatPane } from "./chat";
import { ChatList } from "./list";
import { closeNotice, mayDrive, usePage } from "./store";
import type { Page } from "./store";
import type { Problem } from "../../common/problem";
import type { Theme } from "./types";
import { folderText } from "./words";

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
  if (page.phase === "no-session") return isServer() ? <LogIn farewell={page.farewell} /> : <NoSession />;
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
      {page.about?.sharing === undefined ? null : (
        <section class="banner tone-warn sharing" aria-label="About this server">
          <Icon name="info" />
          <p>{page.about.sharing}</p>
        </section>
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
              <Empty icon="chat" title="No chat is open" text={mayDrive() ? `Choose one from the list, or begin a new one in ${page.about?.folders[0] ?? "this folder"}.` : "Choose one from the list."}>
                {mayDrive() ? <Button label="New chat" icon="plus" kind="primary" whenPressed={() => void newChat(page.about?.account === undefined ? undefined : page.about.folders[0])} /> : null}
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
      <Notices notices={page.notices} whenClosed={closeNotice} />
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
        <Account page={page} />
        <NewChat page={page} />
        <Menu
          label="Theme"
          icon={theme?.icon ?? "auto"}
          items={THEMES.map((one) => ({ label: one.label, icon: one.icon, isChecked: one.theme === page.theme, choose: () => setTheme(one.theme) }))}
        />
      </div>
    </header>
  );
}

function NewChat({ page }: { page: Page }) {
  if (!mayDrive()) return null;
  const folders = page.about?.account === undefined ? [] : page.about.folders;
  if (folders.length > 1)
    return <Menu label="New chat" icon="plus" text="New chat" kind="plain" items={folders.map((folder) => ({ label: folderText(folder) || folder, icon: "plus" as const, note: folder, choose: () => void newChat(folder) }))} />;
  return <Button label="New chat" icon="plus" kind="plain" whenPressed={() => void newChat(folders[0])} isDisabled={page.phase !== "ready"} />;
}

/** On a server: who this is and what that account may do. */
function Account({ page }: { page: Page }) {
  const account = page.about?.account;
  if (account === undefined) return null;
  const budget = account.budgetUsd === null ? "" : ` · $${account.spentUsd.toFixed(2)} of $${account.budgetUsd.toFixed(2)}`;
  return (
    <>
      <Badge>
        {account.name} ({account.role}){budget}
      </Badge>
      <Button label="Log out" kind="quiet" whenPressed={() => void logOut()} />
    </>
  );
}

function LogIn({ farewell }: { farewell: string }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [isSent, setIsSent] = useState(false);
  const send = async () => {
    setIsSent(true);
    const failed = await logIn(token.trim()).catch(() => ({ kind: "unavailable", message: "The server does not answer." }));
    setIsSent(false);
    if (failed === undefined) location.reload();
    setProblem(failed);
  };
  return (
    <main class="center-page">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") void send();
        }}
      >
        <h1>Log in to Dragoman</h1>
        {farewell === "" ? null : <p role="alert">{farewell}</p>}
        <TextField label="Token" kind="password" value={token} note="The administrator of this server gave it to you. It is not stored in this browser." isRequired whenChanged={setToken} />
        {problem === undefined ? null : <ProblemNote problem={problem} />}
        <Button label="Log in" kind="primary" type="submit" isBusy={isSent} isDisabled={token.trim() === ""} />
        <p class="note">All users of one server share its operating-system account.</p>
      </form>
    </main>
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
