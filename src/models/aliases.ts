import { z } from "zod";
import type { Env } from "../env.ts";
import { OpenAiCompatibleModel, RehearsalModel, WorkersAiModel } from "../protocol/model-config.ts";
import { Label } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";

/** A model of the deployment. Its key is in a variable of the environment. */
const AliasTarget = z.discriminatedUnion("provider", [
  RehearsalModel,
  WorkersAiModel,
  OpenAiCompatibleModel.omit({ apiKeySecret: true }).extend({
    apiKeyVariable: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]{0,63}$/, "must be the name of an environment variable")
      .refine((name) => name !== "SIGNING_SECRET" && name !== "ADMIN_KEY", "must not be a secret of Colloquy itself")
      .optional(),
  }),
]);
export type AliasTarget = z.infer<typeof AliasTarget>;

const Aliases = z.record(Label, AliasTarget);

const parseAliases = (text: string): Record<string, AliasTarget> => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new ColloquyError("model_misconfigured", "MODEL_ALIASES is not JSON: the operator has to correct it.", {
      cause,
    });
  }
  const parsed = Aliases.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ColloquyError(
    "model_misconfigured",
    `MODEL_ALIASES is wrong at ${issue?.path.join(".") || "its root"}: ${issue?.message}. The operator has to correct it.`,
  );
};

/** The target of the operator's alias. Throws `model_misconfigured`, naming what to set. */
export const followAlias = (alias: string, env: Env): AliasTarget => {
  const aliases = parseAliases(env.MODEL_ALIASES ?? "{}");
  const target = Object.hasOwn(aliases, alias) ? aliases[alias] : undefined;
  if (target) return target;
  throw new ColloquyError(
    "model_misconfigured",
    `There is no model alias "${alias}" here: the operator defines aliases in MODEL_ALIASES, or name a provider instead.`,
  );
};

/** The deployment's key in a variable that an alias names. Only aliases reach it. */
export const deploymentKey = (variable: string, env: Env): string => {
  const value: unknown = Reflect.get(env, variable);
  if (typeof value === "string" && value !== "") return value;
  throw new ColloquyError(
    "model_misconfigured",
    `MODEL_ALIASES names the variable ${variable}, and it is not set: the operator has to set it.`,
  );
};
