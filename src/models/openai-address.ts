import { ColloquyError } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import type { ModelDeps } from "./model-spec.ts";

/** An address of the config that may be asked. Throws `model_misconfigured`. */
export const checkedBaseUrl = (baseUrl: string, deps: Pick<ModelDeps, "env">): string => {
  const checked = checkOutgoing(baseUrl, { allowLoopback: deps.env.ENVIRONMENT === "development" });
  if (checked.ok) return baseUrl;
  throw new ColloquyError("model_misconfigured", `The model's baseUrl cannot be used: ${checked.reason}.`);
};

/** The key in a secret of the workspace. Throws `model_misconfigured`, naming what to set. */
export const secretKey = async (name: string, deps: Pick<ModelDeps, "openSecret">): Promise<string> => {
  const value = (await deps.openSecret(name))?.trim();
  if (value && !/^[\x21-\x7e]+$/.test(value)) {
    throw new ColloquyError(
      "model_misconfigured",
      `The secret "${name}" is no key that can be sent: it holds blanks or characters beyond ASCII. Write it again with PUT /v1/workspace/secrets/${name}.`,
    );
  }
  if (value) return value;
  throw new ColloquyError(
    "model_misconfigured",
    `The model's apiKeySecret names "${name}", and the workspace has no such secret: set it with PUT /v1/workspace/secrets/${name}.`,
  );
};
