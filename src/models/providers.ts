import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelSpec } from "./model-spec.ts";

type ProviderFactory<Spec extends ModelSpec> = (spec: Spec, deps: ModelDeps) => Promise<LanguageModel>;

export type Providers = {
  [Spec in ModelSpec as Spec["provider"]]: ProviderFactory<Spec>;
};

let wiredRehearsal: Providers["rehearsal"] = () => Promise.reject(new Error("no rehearsal model is wired"));

/** Wires the embedded model, which this folder does not know. */
export const provideRehearsal = (create: Providers["rehearsal"]): void => {
  wiredRehearsal = create;
};

/**
 * Makes the models of each provider. A provider's code is loaded when it is first used, so that a cold start loads none
 * that its agents do not name. Mutable: tests replace an entry and put it back.
 */
export const providers: Providers = {
  rehearsal: (spec, deps) => wiredRehearsal(spec, deps),
  "workers-ai": async (spec, deps) => (await import("./workers-ai.ts")).createWorkersAiModel(spec, deps),
  "openai-compatible": async (spec, deps) =>
    (await import("./openai-compatible.ts")).createOpenAiCompatibleModel(spec, deps),
};
