import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Where `npm start` listens; the dev server passes the API and the streams on to it. */
const edge = process.env.COLLOQUY_URL ?? "http://127.0.0.1:8787";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  plugins: [react()],
  build: {
    outDir: fileURLToPath(new URL("../../dist/web", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
  },
  server: { host: "127.0.0.1", proxy: { "/v1": { target: edge, ws: true } } },
});
