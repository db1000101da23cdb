import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelSpec } from "./model-spec.ts";

type ProviderFactory<Spec extends ModelSpec> = (spec: Spec, deps: ModelDeps) => Promise<LanguageModel>;

export type Providers = {
  [Spec in ModelSpec as Spec["provider"]]: ProviderFactory<Spec>;
};

/**
 * Every provider's way to make a model. Each is loaded when it is first used, so that a cold start pays for none
 * that its agents do not name. Mutable: tests put a scripted model in an entry's place, and the entry back.
 */
export const providers: Providers = {
  rehearsal: async (spec) => (await import("./rehearsal/rehearsal-model.ts")).createRehearsalModel(spec),
  "workers-ai": async (spec, deps) => (await import("./workers-ai.ts")).createWorkersAiModel(spec, deps),
  "openai-compatible": async (spec, deps) =>
    (await import("./openai-compatible.ts")).createOpenAiCompatibleModel(spec, deps),
};

/** Makes the model of a spec by its provider's present entry. */
export const createModel = (spec: ModelSpec, deps: ModelDeps): Promise<LanguageModel> => {
  switch (spec.provider) {
    case "rehearsal":
      return providers.rehearsal(spec, deps);
    case "workers-ai":
      return providers["workers-ai"](spec, deps);
    case "openai-compatible":
      return providers["openai-compatible"](spec, deps);
  }
};
