import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { ToolConfig } from "../protocol/tool.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";

type Named = { id: string; path: string };

const namedBy = (tool: ToolConfig, index: number): Named[] => {
  const [ids = [], place] =
    tool.executionType === "space" ? [tool.answer.by, "answer.by"] : [tool.approval?.approvers, "approval.approvers"];
  return ids.map((id, at) => ({ id, path: `tools.${index}.${place}.${at}` }));
};

/** Refuses tools that ask somebody who could never answer: an entity that is not there, or is no person. */
export const checkApprovers = async (workspace: Pick<WorkspaceRpc, "resolve">, tools: ToolConfig[]): Promise<void> => {
  const named = tools.flatMap(namedBy);
  if (named.length === 0) return;
  const entities = unwrap(await workspace.resolve([...new Set(named.map(({ id }) => id))]));
  const people = new Set(entities.flatMap(({ id, type }) => (type === "human" ? [id] : [])));
  const issues = named.filter(({ id }) => !people.has(id)).map(({ path }) => ({ path, message: "must be a person" }));
  if (issues.length === 0) return;
  throw new ColloquyError("invalid_request", "Only people can approve and answer: name people of this workspace.", {
    issues,
  });
};

/** Refuses a partner that could never consent: an entity that is not there, or is no person. */
export const checkPartner = async (
  workspace: Pick<WorkspaceRpc, "resolve">,
  partnerId: string | null | undefined,
): Promise<void> => {
  if (partnerId === undefined || partnerId === null) return;
  const [partner] = unwrap(await workspace.resolve([partnerId]));
  if (partner?.type === "human") return;
  throw new ColloquyError("invalid_request", "Only people can consent: name a person of this workspace.", {
    issues: [{ path: "partnerEntityId", message: "must be a person" }],
  });
};
