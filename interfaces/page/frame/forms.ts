// Forms without the permission to submit forms. A frame with nothing but `allow-scripts` fires no `submit` events, so the
// interface would never learn that its button was pressed. Here the event is made by hand; nothing is ever sent by it.

export function makeSubmitEvents(tell: (message: string) => void) {
  const submit = (form: HTMLFormElement, submitter: HTMLElement | null) => {
    if (!form.noValidate && !form.reportValidity()) return;
    const isHandled = !form.dispatchEvent(new SubmitEvent("submit", { bubbles: true, cancelable: true, submitter }));
    if (!isHandled) tell("The interface tried to submit a form.");
  };
  // After the handlers of the interface, which listen further in.
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("button, input") : null;
    if (event.defaultPrevented || button === null || button.disabled || button.form === null) return;
    if (!["submit", "image"].includes(button.type)) return;
    event.preventDefault();
    submit(button.form, button);
  });
  // Enter presses the form's button by itself; a form without one is submitted directly.
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || event.defaultPrevented || event.isComposing) return;
    if (!(field instanceof HTMLInputElement) || field.form === null) return;
    const hasButton = [...field.form.elements].some((one) => (one as HTMLButtonElement).type === "submit");
    if (!hasButton) submit(field.form, null);
  });
  Object.defineProperty(HTMLFormElement.prototype, "submit", {
    configurable: false,
    value: () => tell("The interface tried to submit a form."),
  });
  Object.defineProperty(HTMLFormElement.prototype, "requestSubmit", {
    configurable: false,
    value(this: HTMLFormElement, submitter?: HTMLElement) {
      submit(this, submitter ?? null);
    },
  });
}
