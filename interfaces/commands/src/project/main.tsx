import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./generated/runtime/App";
import { Shell } from "./generated/runtime/shell";
import { PLAN } from "./generated/plan";
import "./theme.css";

document.title = PLAN.title;

// To send requests in your own way, give Shell a property `request`:
// async ({ operation, method, path, query, headers, body, text, signal }) => ({ ok, status, headers, data })
// `text` is the JSON of the body with all digits of its numbers; an answer may have `text` in place of `data`.
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Shell App={App} />
  </StrictMode>,
);
