import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";

/** The demo's guest agent, and a token for its program. */
export type Guest = { id: string; token: string };

const program = join(resolve(import.meta.dirname, ".."), "docs/examples/guest.ts");
/** It ends with the process that started it, however that one ends. */
const withStarter = "data:text/javascript,process.stdin.on('end', () => process.exit()).resume()";

/** Runs the guest's program of docs/guests.md beside the server at `url`, as a process of its own. */
export const startCourier = (url: string, { id, token }: Guest): { stop(): Promise<void> } => {
  const child = spawn(process.execPath, ["--import", withStarter, program], {
    stdio: ["pipe", "ignore", "inherit"],
    env: { ...process.env, COLLOQUY_URL: url, GUEST_ID: id, GUEST_TOKEN: token },
  });
  const ended = once(child, "close");
  return {
    stop: async () => {
      child.kill();
      await ended;
    },
  };
};
