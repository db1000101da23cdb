import { unseal } from "../../auth/sealing.ts";
import type { Parts } from "../run/parts.ts";

/** A secret of the agent's workspace; undefined where there is none of that name. It lives only in memory. */
export const openSecret = async (
  { env, identity }: Pick<Parts, "env" | "identity">,
  name: string,
): Promise<string | undefined> => {
  const { workspaceId, secrets } = identity.get();
  const sealed = secrets[name];
  return sealed === undefined ? undefined : unseal(env.SIGNING_SECRET, workspaceId, name, sealed);
};
