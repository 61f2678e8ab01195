import { useEffect, useRef, useState } from "react";

function Modal({ title, onClose, children }) {
  const closeButton = useRef(null);
  useEffect(() => {
    closeButton.current?.focus();
  }, []);
  return (
    <div
      role="presentation"
      style={{ position: "fixed", inset: 0, backgroundColor: "rgba(0,0,0,.4)", display: "grid", placeItems: "center" }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") { event.stopPropagation(); onClose(); }
      }}
    >
      <div role="dialog" aria-modal="true" aria-label={title}>
        <button type="button" ref={closeButton} onClick={() => onClose()}>Close</button>
        {children}
      </div>
    </div>
  );
}

export default function App({ request }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setAsking(true)}>Delete</button>
      {asking && (
        <Modal title="Delete this item?" onClose={() => setAsking(false)}>
          <p>This cannot be undone.</p>
          <button type="button" data-operation="DELETE /items/{id}" onClick={() => request({ operation: "DELETE /items/{id}", method: "DELETE", path: "/items/1" })}>Yes, delete</button>
        </Modal>
      )}
    </>
  );
}
