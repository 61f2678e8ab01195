//! The shape of `chat` and `goal`.

use std::collections::BTreeMap;

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChatSection {
    /// Whether a model gives a new chat its title; otherwise the first words of the first prompt do.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    title: bool,
    /// The model that makes titles; without it a small model of the chat's provider, else the chat's own model. The embedded
    /// model makes none.
    #[schemars(extend("examples" = ["openai/gpt-5-nano"]))]
    title_model: String,
    /// Whether rules and instructions are read anew for each prompt, as `/sync-system-prompt` does once. A change of them
    /// makes the provider read the whole chat again.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    auto_sync_system_prompt: bool,
    /// Whether new chats start trusted: their tool calls run without a question, except where a deny rule forbids them.
    /// It does not hold where nobody can be asked (`dragoman run`, `dragoman threads`); `--approve` is for those.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    default_trust: bool,
    /// Whether a turn that changed files and ran none of the project's checks is asked once to verify before it ends.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    verify_changes: bool,
    /// The colors of `dragoman chat`: `auto` (dark or light, as the terminal says when it is asked), `dark`, `light`,
    /// `high-contrast`, `colorblind`, or the name of a file of yours: `NAME.json` in the folder `themes` beside your settings
    /// (`dragoman docs chat`).
    #[schemars(extend("default" = "auto"), extend("examples" = ["light"]))]
    theme: String,
    /// Whether the input of `dragoman chat` is edited with vi's keys. Esc leaves insert mode first, and stops an answer only then.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    vi_mode: bool,
    /// Whether `dragoman chat` is drawn at the end of the terminal's own text, so that its scrollback and selection keep the
    /// chat, instead of on a screen of its own.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    inline: bool,
    /// Whether the terminal reports the mouse to `dragoman chat`: the wheel scrolls, a click opens a folded entry, a drag
    /// copies. Without it the terminal's own selection works without Shift.
    #[schemars(extend("default" = "on"), extend("examples" = ["off"]))]
    mouse: OnOff,
    /// The last line of `dragoman chat`: a template with `{model}`, `{behavior}`, `{effort}`, `{context}`, `{tokens}`, `{cost}`,
    /// `{folder}`, `{branch}`, `{jobs}`, `{taint}`, `{title}` and `{version}`, or a command after an exclamation mark, whose
    /// first line of output is shown; it gets the same values as JSON on its input.
    #[schemars(extend("examples" = ["{model} · {branch} · {context} · {cost}", "!~/bin/status-line"]))]
    status_line: String,
    /// Whether `dragoman chat` writes text that a screen reader can follow: one line after the other, no frames, nothing that
    /// moves (also `--screen-reader`).
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    screen_reader: bool,
    /// Whether nothing on the screen of `dragoman chat` moves by itself while an answer is made.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    reduced_motion: bool,
    /// How `dragoman chat` calls you when a question waits or a long answer is complete: `bell`, `osc9`, `osc99`, `osc777`,
    /// `desktop` (`notify-send`), or a command after an exclamation mark, which gets the sentence as `$1`. An empty list is
    /// silent.
    #[schemars(extend("default" = ["bell", "osc9"]), extend("examples" = [["bell", "!say"]]))]
    notify: Vec<String>,
    /// Whether it calls only while the terminal does not have the focus (`away`), or `always`.
    #[schemars(extend("default" = "away"), extend("examples" = ["always"]))]
    notify_when: NotifyWhen,
    /// Keys of `dragoman chat`, each with the key or the command that it stands for.
    #[schemars(extend("examples" = [{"ctrl-p": "up", "f5": "/review"}]))]
    keys: BTreeMap<String, String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GoalSection {
    /// Answers of the model until a goal counts as not reached.
    #[schemars(extend("default" = 50), range(min = 1, max = 100_000), extend("examples" = [20]))]
    max_steps: u64,
    /// Minutes until a goal counts as not reached.
    #[schemars(extend("default" = 30), range(min = 1, max = 10_000), extend("examples" = [120]))]
    max_minutes: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum OnOff {
    On,
    Off,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum NotifyWhen {
    Away,
    Always,
}
