import type { Env } from "../env/env.ts";
import type { SecretUse } from "../protocol/secret.ts";

/** A model ready to be made: aliases followed, secrets opened, the address checked. Lives only in memory. */
export type RehearsalSpec = { provider: "rehearsal"; name: string; deltasPerSecond: number };
export type WorkersAiSpec = { provider: "workers-ai"; name: string };
export type OpenAiCompatibleSpec = {
  provider: "openai-compatible";
  name: string;
  baseUrl: string;
  apiKey: string | undefined;
};
export type ModelSpec = RehearsalSpec | WorkersAiSpec | OpenAiCompatibleSpec;

/** Models that need the same adaptation of messages. */
export type ModelFamily = ModelSpec["provider"];

/** A model's surroundings. `fetch` is for tests; `unsealSecret` unseals a secret of the agent's workspace. */
export type ModelDeps = {
  env: Env;
  unsealSecret: (name: string, use: SecretUse) => Promise<string | undefined>;
  fetch?: typeof globalThis.fetch | undefined;
};
