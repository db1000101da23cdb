import { open } from "../../auth/sealing.ts";
import type { Env } from "../../shared/env.ts";
import { unwrap } from "../../shared/errors.ts";

/** A secret of the space's workspace, opened; undefined where there is none of this name. */
export const openSecret = async (
  env: Env,
  workspaceId: string,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const sealed = unwrap(await env.WORKSPACE.getByName(workspaceId).sealedSecrets())[name];
  signal.throwIfAborted();
  return sealed === undefined ? undefined : open(env.SIGNING_SECRET, workspaceId, name, sealed);
};
