import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embedderIdOf, resolveEmbedder } from "../../../src/models/embedders/embedders.ts";
import type { EmbedderConfig } from "../../../src/protocol/model-config.ts";
import { busySeconds, tokensPerText } from "../../support/fake-embeddings.ts";
import { type FakeOpenAi, startFakeOpenAi } from "../../support/fake-openai.ts";
import { modelEnv } from "../model-env.ts";

let server: FakeOpenAi;
beforeAll(async () => {
  server = await startFakeOpenAi();
});
afterAll(() => server.stop());

const deps = (env = {}) => ({
  env: modelEnv({ ENVIRONMENT: "development", ...env }),
  unsealSecret: async () => undefined,
});
const signal = AbortSignal.timeout(10_000);

const openAi = (name: string): EmbedderConfig => ({ provider: "openai-compatible", name, baseUrl: server.baseUrl });

const embedded = async (config: EmbedderConfig, texts: string[], env = {}) => {
  const embedder = await resolveEmbedder(config, deps(env));
  if (!embedder) throw new Error("no embedder");
  return embedder.embed(texts, signal);
};

describe("an embedder over HTTP", () => {
  test("answers a vector for each text, in order, and the billed tokens", async () => {
    const { vectors, tokens } = await embedded(openAi("letters"), ["aab", "zz"]);
    expect(vectors.map((vector) => [vector[0], vector[1], vector[25]])).toEqual([
      [2, 1, 0],
      [0, 0, 2],
    ]);
    expect(tokens).toBe(2 * tokensPerText);
    const shorter = await embedded({ ...openAi("letters"), dimensions: 8 } as EmbedderConfig, ["aab"]);
    expect(shorter.vectors[0]).toHaveLength(8);
  });

  test.each([
    ["broken", "model_unavailable"],
    ["refusing", "model_rejected"],
    ["short", "model_nonsense"],
    ["uneven", "model_nonsense"],
  ])("[R4] the failure of one that is %s is a typed error", async (name, code) => {
    await expect(embedded(openAi(name), ["a", "b"])).rejects.toMatchObject({ code });
  });

  test("[R4] an abort ends the wait for one that ignores aborts", async () => {
    const AI = { run: () => new Promise(() => undefined) };
    const embedder = await resolveEmbedder({ provider: "workers-ai", name: "@cf/x" }, deps({ AI }));
    await expect(embedder?.embed(["a"], AbortSignal.timeout(10))).rejects.toMatchObject({ code: "model_stalled" });
  });

  test("[R4] a refusal for too many calls carries the provider's pause", async () => {
    const refused = embedded(openAi("busy"), ["a"]);
    await expect(refused).rejects.toMatchObject({ code: "model_unavailable", retryAfterMs: busySeconds * 1000 });
  });

  test("[S3] a forbidden address and a missing secret are refused", async () => {
    const inside: EmbedderConfig = { provider: "openai-compatible", name: "x", baseUrl: "http://10.0.0.1/v1" };
    await expect(resolveEmbedder(inside, deps())).rejects.toMatchObject({ code: "model_misconfigured" });
    const keyed: EmbedderConfig = {
      provider: "openai-compatible",
      name: "x",
      baseUrl: server.baseUrl,
      apiKeySecret: "KEY",
    };
    await expect(resolveEmbedder(keyed, deps())).rejects.toThrow(/KEY/);
  });
});

describe("an embedder of Workers AI", () => {
  const config: EmbedderConfig = { provider: "workers-ai", name: "@cf/baai/bge-m3" };

  test("asks the binding, and estimates the tokens that it does not report", async () => {
    const AI = { run: async (_: string, { text }: { text: string[] }) => ({ data: text.map(() => [1, 0]) }) };
    const { vectors, tokens } = await embedded(config, ["four", "words"], { AI });
    expect(vectors).toEqual([
      [1, 0],
      [1, 0],
    ]);
    expect(tokens).toBe(3);
  });

  test("reports a missing binding and an answer without vectors", async () => {
    await expect(resolveEmbedder(config, deps())).rejects.toThrow(/\[ai\] binding/);
    const AI = { run: async () => ({ data: [["one"]] }) };
    await expect(embedded(config, ["a"], { AI })).rejects.toMatchObject({ code: "model_nonsense" });
  });
});

test("embedders have the same id exactly if they make the same vectors", () => {
  const configs: (EmbedderConfig | undefined)[] = [
    { provider: "none" },
    { provider: "workers-ai", name: "@cf/baai/bge-m3" },
    { provider: "openai-compatible", name: "x", baseUrl: "https://one.example/v1" },
    { provider: "openai-compatible", name: "x", baseUrl: "https://two.example/v1" },
    { provider: "openai-compatible", name: "x", baseUrl: "https://one.example/v1", dimensions: 256 },
    undefined,
  ];
  expect(new Set(configs.map(embedderIdOf)).size).toBe(configs.length);
  expect(embedderIdOf({ provider: "feature-hashing" })).toBe(embedderIdOf(undefined));
});
