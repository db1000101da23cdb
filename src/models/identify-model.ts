import * as z from "zod";
import type { Env } from "../env/env.ts";
import { type ModelConfig, OpenAiCompatibleModel, RehearsalModel, WorkersAiModel } from "../protocol/model-config.ts";
import { Label } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";
import { contextWindowOf } from "./context-windows.ts";
import type { ModelFamily } from "./model-spec.ts";

/** The operator's models by their aliases, in MODEL_ALIASES. Their keys are in variables of the environment. */
const Aliases = z.record(
  Label,
  z.discriminatedUnion("provider", [
    RehearsalModel,
    WorkersAiModel,
    OpenAiCompatibleModel.omit({ apiKeySecret: true }).extend({
      apiKeyVariable: z
        .string()
        .regex(/^[A-Z][A-Z0-9_]{0,63}$/, "must be the name of an environment variable")
        .refine(
          (name) => !["SIGNING_SECRET", "SIGNING_SECRETS", "ADMIN_KEY"].includes(name),
          "must not be a secret of Colloquy itself",
        )
        .optional(),
    }),
  ]),
);
type Aliases = z.infer<typeof Aliases>;

/** The model that a config names, an alias followed. */
export type ModelTarget = Exclude<ModelConfig, { alias: string }> | Aliases[string];

/** `message` says what to set. */
export const misconfigured = (message: string, cause?: unknown): ColloquyError =>
  new ColloquyError("model_misconfigured", message, { cause });

const parseAliases = (text: string): Aliases => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw misconfigured("MODEL_ALIASES is not JSON: the operator has to correct it.", cause);
  }
  const { data, error } = Aliases.safeParse(json);
  if (data) return data;
  const issue = error.issues[0];
  const place = issue?.path.join(".") || "its root";
  throw misconfigured(`MODEL_ALIASES is wrong at ${place}: ${issue?.message}. The operator has to correct it.`);
};

/** Throws `model_misconfigured` where there is no such alias, naming what to set. */
export const targetOf = (config: ModelConfig, env: Env): ModelTarget => {
  if (!("alias" in config)) return config;
  const aliases = parseAliases(env.MODEL_ALIASES ?? "{}");
  const target = Object.hasOwn(aliases, config.alias) ? aliases[config.alias] : undefined;
  if (target) return target;
  throw misconfigured(
    `There is no model alias "${config.alias}" here: the operator defines aliases in MODEL_ALIASES, or name a provider instead.`,
  );
};

/** The deployment's key in a variable that an alias names. Only aliases reach it. */
export const deploymentKey = (variable: string, env: Env): string => {
  const value: unknown = Reflect.get(env, variable);
  if (typeof value === "string" && value !== "") return value;
  throw misconfigured(`MODEL_ALIASES names the variable ${variable}, and it is not set: the operator has to set it.`);
};

/** The facts of a model that need no secret and no request. */
export type IdentifiedModel = {
  /** The model's own name, an alias followed. */
  name: string;
  /** The same model at the same address, the same id. The calibration of estimates is kept by it. */
  modelId: string;
  family: ModelFamily;
  /** Its context window in tokens; null where it is not known. */
  window: number | null;
};

export const identifyTarget = (target: ModelTarget): IdentifiedModel => {
  const { provider, name = "rehearsal" } = target;
  const host = "baseUrl" in target ? `${new URL(target.baseUrl).host}/` : "";
  const window = provider === "rehearsal" ? null : contextWindowOf(name);
  return { name, modelId: `${provider}/${host}${name}`, family: provider, window };
};

/** Identifies the model of a config. An unknown alias gives a model without known facts: its runs report the error. */
export const identifyModel = (config: ModelConfig, env: Env): IdentifiedModel => {
  try {
    return identifyTarget(targetOf(config, env));
  } catch (error) {
    if (!(error instanceof ColloquyError) || !("alias" in config)) throw error;
    return { name: config.alias, modelId: config.alias, family: "rehearsal", window: null };
  }
};
