//! Files with instructions: AGENTS.md, or that of another assistant where there is none.

use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};

#[tokio::test]
async fn the_instructions_of_other_assistants_count_where_there_are_no_own_ones() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let ask = async || {
        fake.answer(Answer::text("ok"));
        let mut command: tokio::process::Command = home.command(&["run", "hello"]).into();
        command.current_dir(home.workspace()).env("DRAGOMAN_CONFIG", config.to_string());
        let output = command.output().await.expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fake.last_request().body.to_string()
    };
    home.write(
        "work/.cursor/rules/a.mdc",
        "---\ndescription: x\nalwaysApply: true\n---\nSpeak like Cursor.\n",
    );
    home.write(
        "work/.cursor/rules/b.mdc",
        "---\nglobs: *.ts\nalwaysApply: false\n---\nSpeak of TypeScript.\n",
    );
    let sent = ask().await;
    assert!(sent.contains("Speak like Cursor.") && !sent.contains("TypeScript"), "rules for every chat");
    home.write("work/GEMINI.md", "Speak like Gemini.\n");
    let sent = ask().await;
    assert!(sent.contains("Speak like Gemini.") && !sent.contains("Cursor"), "{sent}");
    home.write("work/CLAUDE.md", "Speak like Claude.\n");
    let sent = ask().await;
    assert!(sent.contains("Speak like Claude.") && !sent.contains("Speak like Gemini."), "one file counts");
    home.write("work/AGENTS.md", "Speak plainly.\n");
    let sent = ask().await;
    assert!(sent.contains("Speak plainly.") && !sent.contains("Speak like"), "AGENTS.md goes first");
}
