//! "Always allow in this project": the rule that an approval would become, and the page that shows it before it is written.
//!
//! Must not know where rules are kept. Invariant: nothing is written before the user has seen the rule and pressed Enter.

use domain::AskId;
use domain::ask::{Answer, AskKind};
use domain::item::ItemKind;

use super::allow_rule::AllowRule;
use super::page::{Page, PageLine};
use super::screen::{Effect, Overlay, Screen};

impl Screen {
    /// `p` in an approval.
    pub(super) fn preview_project_rule(&mut self) {
        let Some(ask) = self.asks.first().map(|ask| ask.id) else { return };
        match self.project_rule() {
            Some(rule) => self.push_effect(Effect::PreviewRule { ask, rule }),
            None => self.flash("This call is asked each time, so there is no rule for it."),
        }
    }

    /// The rule that would answer the question from now on.
    pub(super) fn project_rule(&self) -> Option<AllowRule> {
        let AskKind::Approval { keys, .. } = &self.asks.first()?.kind else { return None };
        let ItemKind::ToolCall(call) = &self.transcript.item(self.asks.item()?)?.kind else { return None };
        AllowRule::of_call(call, keys)
    }

    pub(super) fn show_rule(&mut self, ask: AskId, rule: AllowRule, lines: Vec<String>) {
        let lines = lines.into_iter().map(PageLine::Diff).collect();
        let page = Page::new("Always allow this in the project?", lines);
        self.overlay = Some(Overlay::Rule { page, ask, rule });
    }

    /// Enter on that page: the rule is written, and the call runs.
    pub(super) fn accept_rule(&mut self, ask: AskId, rule: AllowRule) {
        self.push_effect(Effect::AllowInProject(rule));
        if self.asks.first().is_some_and(|first| first.id == ask) {
            self.answer(Answer::Allow { remember: true });
        }
    }
}
