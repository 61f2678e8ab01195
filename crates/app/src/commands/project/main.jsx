import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./App.jsx";

// To send requests in your own way, give App a property `request`:
// async ({ operation, method, path, query, headers, body, signal }) => ({ ok, status, headers, data })
createRoot(document.getElementById("root")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
