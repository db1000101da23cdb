import { z } from "zod";
import type { UpdateAgent } from "../protocol/agent.ts";
import { Compaction } from "../protocol/context-config.ts";
import type { EmbedderConfig } from "../protocol/embedder.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { Env } from "../shared/env.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";

type CheckedEnv = Pick<Env, "MODEL_ALIASES" | "ENVIRONMENT">;
type CheckedWorkspace = Pick<WorkspaceRpc, "secretNames">;

const Aliases = z.record(z.string(), z.unknown());

const aliasesOf = (env: CheckedEnv): string[] => {
  try {
    return Object.keys(Aliases.parse(JSON.parse(env.MODEL_ALIASES ?? "{}")));
  } catch (cause) {
    throw new ColloquyError(
      "internal",
      "MODEL_ALIASES of this deployment is not a JSON object: the operator has to correct it.",
      {
        cause,
      },
    );
  }
};

/**
 * Refuses a model, or an embedder, that could never be asked: an address that is closed, a secret or an alias that is not there. `path`
 * is where the model stands in the body.
 */
export const checkModel = async (
  env: CheckedEnv,
  workspace: CheckedWorkspace,
  model: ModelConfig | EmbedderConfig,
  path = "model",
): Promise<void> => {
  if ("alias" in model) {
    if (aliasesOf(env).includes(model.alias)) return;
    throw new ColloquyError(
      "unknown_reference",
      `The operator has defined no model alias ${JSON.stringify(model.alias)}.`,
    );
  }
  if (model.provider !== "openai-compatible") return;
  const verdict = checkOutgoing(model.baseUrl, { allowLoopback: env.ENVIRONMENT === "development" });
  if (!verdict.ok) {
    throw new ColloquyError("invalid_request", `${path}.baseUrl cannot be used: ${verdict.reason}.`, {
      issues: [{ path: `${path}.baseUrl`, message: verdict.reason }],
    });
  }
  if (model.apiKeySecret === undefined) return;
  if (unwrap(await workspace.secretNames()).includes(model.apiKeySecret)) return;
  throw new ColloquyError(
    "unknown_reference",
    `The workspace has no secret ${JSON.stringify(model.apiKeySecret)}: write it with PUT /v1/workspace/secrets/${model.apiKeySecret}.`,
  );
};

/** The model that a patch names for summaries; what is no such thing is refused with the whole config. */
export const summaryModelIn = ({ context }: UpdateAgent): ModelConfig | undefined =>
  Compaction.safeParse(context?.compaction).data?.model;

type NamedModels = {
  model?: ModelConfig | undefined;
  embedder?: EmbedderConfig | undefined;
  summaries?: ModelConfig | undefined;
};

/** The same for all models that a config, or a patch of one, names. */
export const checkModels = async (
  env: CheckedEnv,
  workspace: CheckedWorkspace,
  { model, embedder, summaries }: NamedModels,
): Promise<void> => {
  if (model) await checkModel(env, workspace, model);
  if (embedder) await checkModel(env, workspace, embedder, "embedder");
  if (summaries) await checkModel(env, workspace, summaries, "context.compaction.model");
};
