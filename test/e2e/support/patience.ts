import { vi } from "vitest";

/** Vitest's setup of each file: by itself Vitest waits for one second, which is little for two browsers on two cores. */
const { waitFor } = vi;
vi.waitFor = (look, options) => waitFor(look, typeof options === "number" ? options : { timeout: 20_000, ...options });
