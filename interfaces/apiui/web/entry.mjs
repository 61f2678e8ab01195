// What a page that opens without a build needs of React, under one name. html.rs writes the script that uses it.
import * as react from "react";
import * as runtime from "react/jsx-runtime";
import { createRoot } from "react-dom/client";
import { Shell } from "./shell.ts";

globalThis.dragomanReact = {
  react,
  runtime,
  createRoot,
  mount(App, element) {
    createRoot(element).render(runtime.jsx(Shell, { App }));
  },
};
