import { afterEach, describe, expect, test } from "vitest";
import type { Env } from "../../src/env/env.ts";
import type { ModelDeps } from "../../src/models/model-spec.ts";
import { provideRehearsal, providers, resolveModel } from "../../src/models/models.ts";
import type { ModelConfig } from "../../src/protocol/model-config.ts";
import { createRehearsalModel } from "../../src/rehearsal/rehearsal-model.ts";
import { installModel, scriptedModel } from "../support/scripted-model.ts";
import { modelEnv } from "./model-env.ts";

provideRehearsal(async (spec) => createRehearsalModel(spec));

const noSecret: ModelDeps["unsealSecret"] = async () => undefined;

const resolve = (config: ModelConfig, changes: Parameters<typeof modelEnv>[0] = {}, unsealSecret = noSecret) =>
  resolveModel(config, { env: modelEnv(changes), unsealSecret });

const refused = async (config: ModelConfig, env: Parameters<typeof modelEnv>[0] = {}): Promise<string> => {
  const error: unknown = await resolve(config, env).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code: "model_misconfigured" });
  return error instanceof Error ? error.message : "";
};

const openAi = (baseUrl: string, apiKeySecret?: string): ModelConfig => ({
  provider: "openai-compatible",
  name: "m",
  baseUrl,
  ...(apiKeySecret === undefined ? {} : { apiKeySecret }),
});

describe("resolveModel", () => {
  test("the rehearsal model needs nothing", async () => {
    const { model, modelId, family } = await resolve({ provider: "rehearsal", deltasPerSecond: 0 });
    expect(model.specificationVersion).toBe("v4");
    expect({ modelId, family }).toEqual({ modelId: "rehearsal/rehearsal", family: "rehearsal" });
  });

  test("an openai-compatible model is named with its host, without its key", async () => {
    const opened: string[] = [];
    const { modelId } = await resolve(openAi("https://api.example.com/v1", "MY_KEY"), {}, async (name) => {
      opened.push(name);
      return "k";
    });
    expect(modelId).toBe("openai-compatible/api.example.com/m");
    expect(opened).toEqual(["MY_KEY"]);
  });

  test("workers-ai uses the binding, and says what is missing without one", async () => {
    const message = await refused({ provider: "workers-ai", name: "@cf/x/y" });
    expect(message).toContain("[ai] binding");
  });

  test("[S3] a missing secret is named, with how to set it", async () => {
    expect(await refused(openAi("https://api.example.com/v1", "MY_KEY"))).toContain("PUT /v1/workspace/secrets/MY_KEY");
  });

  test.each([
    "http://api.example.com/v1",
    "https://127.0.0.1/v1",
    "https://10.0.0.1/v1",
    "https://u:p@api.example.com/v1",
  ])("[S3] %s is no base URL in production", async (baseUrl) => {
    expect(await refused(openAi(baseUrl), { ENVIRONMENT: "production" })).not.toContain("u:p");
  });

  test("[S3] http to loopback is for development", async () => {
    expect((await resolve(openAi("http://localhost:11434/v1"))).family).toBe("openai-compatible");
  });
});

describe("aliases", () => {
  const aliases = {
    fast: { provider: "rehearsal", deltasPerSecond: 0 },
    smart: {
      provider: "openai-compatible",
      name: "big",
      baseUrl: "https://api.example.com/v1",
      apiKeyVariable: "BIG_KEY",
    },
  };
  const MODEL_ALIASES = JSON.stringify(aliases);

  test("an alias stands for a model of the deployment, with a key of its environment", async () => {
    let authorization: string | null = null;
    const { model, modelId } = await resolveModel(
      { alias: "smart" },
      {
        env: modelEnv({ MODEL_ALIASES, BIG_KEY: "deployment-key" } satisfies Partial<Env> & { BIG_KEY: string }),
        unsealSecret: noSecret,
        fetch: async (_, init) => {
          authorization = new Headers(init?.headers).get("authorization");
          return new Response("{}", { status: 500 });
        },
      },
    );
    await expect(model.doGenerate({ prompt: [] })).rejects.toThrow();
    expect({ authorization, modelId }).toEqual({
      authorization: "Bearer deployment-key",
      modelId: "openai-compatible/api.example.com/big",
    });
  });

  test("[S3] an unset variable is named in the error", async () => {
    expect(await refused({ alias: "smart" }, { MODEL_ALIASES })).toContain("BIG_KEY");
  });

  test.each([
    ["unknown", { alias: "other" }, MODEL_ALIASES, 'no model alias "other"'],
    ["one of every object", { alias: "constructor" }, MODEL_ALIASES, "no model alias"],
    ["not JSON", { alias: "fast" }, "{", "not JSON"],
    ["of a wrong shape", { alias: "fast" }, '{"fast":{"provider":"magic"}}', "MODEL_ALIASES is wrong at fast"],
    [
      "after Colloquy's own secret",
      { alias: "x" },
      JSON.stringify({ x: { ...aliases.smart, apiKeyVariable: "SIGNING_SECRET" } }),
      "must not be a secret of Colloquy",
    ],
  ])("[S3] [S4] an alias that is %s is refused with its reason", async (_, config, text, reason) => {
    expect(await refused(config, { MODEL_ALIASES: text })).toContain(reason);
  });
});

describe("the registry", () => {
  let restore: (() => void) | undefined;
  afterEach(() => restore?.());

  test("a scripted model takes a provider's place, and gives it back", async () => {
    const before = providers.rehearsal;
    const scripted = scriptedModel();
    restore = installModel(scripted);
    expect((await resolve({ provider: "rehearsal", deltasPerSecond: 0 })).model.modelId).toBe(scripted.modelId);
    restore();
    expect(providers.rehearsal).toBe(before);
  });
});
