import { z } from "zod";
import type { EmbedderConfig } from "../protocol/embedder.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { Env } from "../shared/env.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";

const Aliases = z.record(z.string(), z.unknown());

const aliasesOf = (env: Pick<Env, "MODEL_ALIASES">): string[] => {
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
  env: Pick<Env, "MODEL_ALIASES" | "ENVIRONMENT">,
  workspace: Pick<WorkspaceRpc, "secretNames">,
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
