import type { Env } from "../../src/env/env.ts";

const refused = (name: string): never => {
  throw new Error(`a model needs no actor, and asked for ${name}`);
};
const noActor = { getByName: refused, idFromName: refused };

/** Bindings as a model may see them: no actor can be reached through them. */
export const modelEnv = (changes: Partial<Env> & Record<string, string | Ai> = {}): Env => ({
  WORKSPACE: noActor,
  SPACE: noActor,
  AGENT: noActor,
  PERSON: noActor,
  ENDPOINT: noActor,
  SIGNING_SECRET: "test-signing-secret-of-32-bytes!!",
  ENVIRONMENT: "development",
  ...changes,
});
