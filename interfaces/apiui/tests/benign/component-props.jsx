import { useState } from "react";

function Modal({ open, title, onClose, style, children }) {
  if (!open) return null;
  return (
    <section style={style} aria-label={title}>
      <button type="button" onClick={onClose}>Close</button>
      {children}
    </section>
  );
}

function TextField(props) {
  return (
    <p>
      <label htmlFor={props.id}>{props.label}</label>
      <input id={props.id} value={props.value} onChange={props.onChange} placeholder={props.placeholder} />
    </p>
  );
}

const Chip = ({ color = "#eee", href, text }) => <span style={{ background: color }} title={href}>{text}</span>;

export default function App({ history = [] }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  const change = (event) => setName(event.target.value);
  return (
    <main>
      <TextField id="first-name" label="First name" value={name} onChange={change} />
      <TextField id="last-name" label="Last name" value="" onChange={(event) => setName(event.target.value.trim())} />
      <button type="button" onClick={() => setOpen(true)}>Open ({history.length})</button>
      <Modal open={open} title="Hello" style={{ padding: 12, backgroundColor: "white" }} onClose={() => setOpen(false)}>
        <Chip text="one" color="linear-gradient(red, blue)" /> <Chip text="two" />
      </Modal>
    </main>
  );
}
