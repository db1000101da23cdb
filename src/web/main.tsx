import "./no-eval.ts";
import "./look/tokens.css";
import "./look/base.css";
import "./look/shared.css";
import "./look/controls.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { registerServiceWorker } from "./notifications/service-worker.ts";

registerServiceWorker();
const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
