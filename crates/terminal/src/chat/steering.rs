//! Text that the user sends while a turn runs: shown until the turn has read it.
//!
//! Invariant: no text is lost. What the turn did not read becomes a prompt, or returns to the input.

use super::screen::{Effect, Screen};

impl Screen {
    /// The turn has read this text; what was added to it later is still on its way.
    pub(super) fn forget_steering(&mut self, read: &str) {
        let Some(rest) = self.steering.as_deref().and_then(|text| text.strip_prefix(read)) else { return };
        match rest.strip_prefix('\n') {
            Some(later) => self.steering = Some(later.to_owned()),
            None if rest.is_empty() => self.steering = None,
            // Another text that begins alike.
            None => {}
        }
    }

    /// The engine refused the text because the turn reads nothing any more. The news of its end may still be on the way:
    /// until then a prompt would be refused, too.
    pub(super) fn send_unsteered(&mut self, text: String) {
        if self.busy.is_some() && self.steering.is_some() {
            self.is_steering_late = true;
            return;
        }
        let is_in_input = self.steering.take().is_none();
        if is_in_input && self.input.text() != text {
            // The end of the turn put it back, and the user goes on writing.
            return;
        }
        if is_in_input {
            self.input.clear();
        }
        self.prompt(text);
    }

    /// The turn has ended.
    pub(super) fn end_steering(&mut self) {
        let is_late = std::mem::take(&mut self.is_steering_late);
        match self.steering.take() {
            None => {}
            Some(text) if is_late => self.prompt(text),
            Some(text) => {
                self.push_effect(Effect::WithdrawSteering);
                self.restore_to_input(&text);
            }
        }
    }
}
